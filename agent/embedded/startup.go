package embedded

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/session"
)

// startups are what ~/.bashrc has made, for all sessions of a backend: a thousand sessions would
// read it a thousand times, and wait for what it locks. It is safe for concurrent use.
type startups struct {
	mu  sync.Mutex
	all []*startup
}

// startup is what a file, as it was, has made in an environment.
type startup struct {
	file string
	at   time.Time // of its last change
	size int64
	env  []string

	over chan struct{} // it was read
	text string        // the script; "": there is nothing of it
	void bool          // the reading was given up, so another session reads it
}

// take returns what the file has made. The first session reads it, and the others wait. read
// reports whether what it has found counts for the others, too.
func (s *startups) take(ctx context.Context, exec session.Executor, want startup, read func() (text string, counts bool)) string {
	for ctx.Err() == nil {
		s.mu.Lock()
		i := slices.IndexFunc(s.all, func(o *startup) bool {
			return o.file == want.file && o.at.Equal(want.at) && o.size == want.size && slices.Equal(o.env, want.env)
		})
		if i < 0 {
			first := &want
			first.over = make(chan struct{})
			s.all = append(room(s.all), first)
			s.mu.Unlock()
			s.lead(first, read)
			return first.text
		}
		known := s.all[i]
		s.mu.Unlock()
		if exec.Await(ctx, known.over) == nil && !known.void {
			return known.text
		}
	}
	return ""
}

func (s *startups) lead(first *startup, read func() (string, bool)) {
	counts := false
	defer func() { // also if it panics
		if first.void = !counts; first.void {
			s.mu.Lock()
			s.all = slices.DeleteFunc(s.all, func(o *startup) bool { return o == first })
			s.mu.Unlock()
		}
		close(first.over)
	}()
	first.text, counts = read()
}

package peers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/bench/internal/drive"
)

// served has all sessions in one process.
func served(ctx context.Context, sites []*site) (starts []time.Time, resident float64, err error) {
	starts = slices.Repeat([]time.Time{time.Now()}, len(sites))
	s, err := startServer(sites[0].peer.serve(sites[0]))
	if err != nil {
		return nil, 0, err
	}
	err = s.tasks(ctx, sites)
	s.close()
	return starts, peakOf(s.cmd.ProcessState) / float64(len(sites)), err
}

// tasks opens a session for each site, and has all of them do the task.
func (s *appServer) tasks(ctx context.Context, sites []*site) error {
	return drive.Each(len(sites), len(sites), func(i int) error {
		id, err := s.open(ctx, sites[i].dir)
		if err != nil {
			return err
		}
		return s.task(ctx, id, sites[i].prompt)
	})
}

// sharing is what a further session of one process costs.
type sharing struct {
	sessions         int
	base             float64 // MB of the process after one session
	idle, busy, done float64 // MB
	open, task       time.Duration
}

// errLate says that some sessions were done before others began their last answer.
var errLate = errors.New("not all sessions were busy at the same time: raise -hold")

// together opens many sessions in one process, and has all of them do the task at the same
// time: with a longer answer if they were too late.
func (b *bench) together(ctx context.Context, p peer) (row, error) {
	n := b.Many
	if p.own() {
		n *= 2 // they are small beside what the process's own memory varies by
	}
	for hold := b.Hold; ; hold *= 2 {
		p.script(b.server, hold)
		r, err := b.crowd(ctx, p, n, hold)
		if !errors.Is(err, errLate) || hold > b.Hold*4 {
			return r, err
		}
	}
}

func (b *bench) crowd(ctx context.Context, p peer, many int, hold time.Duration) (r row, err error) {
	r = row{name: p.name, version: p.version, kind: "one process"}
	sites, dirs, err := b.places(&p, many+1, busy)
	if err != nil {
		return r, err
	}
	sites[0].prompt = p.prompt(dirs[0], "")
	defer func() { err = errors.Join(err, b.gone()) }()
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	s, err := startServer(p.serve(sites[0]))
	if err != nil {
		return r, err
	}
	defer s.close()
	if err := s.tasks(ctx, sites[:1]); err != nil {
		return r, err
	}
	b.server.Reset()
	n := float64(many)
	base, used := settled(), cpu()
	ids := make([]string, many)
	err = drive.Each(many, 8, func(i int) (err error) {
		ids[i], err = s.open(ctx, dirs[i+1])
		return err
	})
	if err != nil {
		return r, err
	}
	opened, idle := cpu(), settled()
	ended := make(chan error, 1)
	go func() {
		ended <- drive.Each(many, many, func(i int) error { return s.task(ctx, ids[i], sites[i+1].prompt) })
	}()
	active, err := b.whenBusy(dirs[1:], hold, ended)
	if err != nil {
		return r, err
	}
	if err := <-ended; err != nil {
		return r, err
	}
	done := settled()
	r.sharing = &sharing{
		sessions: many, base: base, idle: (idle - base) / n, busy: (active - base) / n, done: (done - base) / n,
		open: (opened - used) / time.Duration(many), task: (cpu() - opened) / time.Duration(many),
	}
	return r, nil
}

// whenBusy is the memory at the moment in which all sessions read their last answer.
func (b *bench) whenBusy(dirs []string, hold time.Duration, ended chan error) (mb float64, err error) {
	for {
		select {
		case err := <-ended:
			_, _, unseen := seen(b.server.Requests(), dirs)
			return 0, cmp.Or(err, unseen, errLate)
		case <-time.After(100 * time.Millisecond):
		}
		all, _, err := seen(b.server.Requests(), dirs)
		if err != nil { // not yet
			continue
		}
		if late := spread(all); late > hold*3/4 {
			return 0, fmt.Errorf("%w: the last one began its answer %s after the first one", errLate, late)
		}
		return pss(), nil
	}
}

// spread is the time between the first of the last requests and the last one.
func spread(all []traffic) time.Duration {
	first, last := all[0].last, all[0].last
	for _, t := range all {
		if t.last.Before(first) {
			first = t.last
		}
		if t.last.After(last) {
			last = t.last
		}
	}
	return last.Sub(first)
}

// settled is the memory once the processes had a second to come to rest.
func settled() float64 {
	time.Sleep(time.Second)
	return pss()
}

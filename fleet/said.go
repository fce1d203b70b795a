package fleet

import (
	"context"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agent-troupe/troupe/sdk"
)

// sayings is what an agent said before its calls of tools. The job's mu guards it.
type sayings struct {
	last   map[string]string        // by the call that started the subagent; "": the agent itself
	before map[string]string        // by call
	waits  map[string]chan struct{} // by call that a person is to be asked about before its message was read
}

const (
	maxSaid = 2000
	// saidLimit is how long a call that needs a person waits for the message it is in.
	saidLimit = time.Second
)

// says takes a message of the agent.
func (r *run) says(a *attempt, m *sdk.AssistantMessage) {
	if r.job.Approvals == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s, who := &a.said, m.ParentToolUseID
	if s.last == nil {
		s.last, s.before = map[string]string{}, map[string]string{}
	}
	if text := strings.TrimSpace(sdk.TextOf(m)); text != "" {
		s.last[who] = ending(text, maxSaid)
	}
	for _, use := range sdk.ToolUses(m) {
		s.before[use.ID] = s.last[who]
		if seen, waits := s.waits[use.ID]; waits {
			close(seen)
			delete(s.waits, use.ID)
		}
	}
}

// turnSaid forgets what was said in the turn that has ended.
func (r *run) turnSaid(a *attempt) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a.said.last, a.said.before = nil, nil
}

// saidBefore returns what the agent said before a call. Its message may still be on the way.
func (r *run) saidBefore(ctx context.Context, a *attempt, call string) string {
	r.mu.Lock()
	said, known := a.said.before[call]
	if known || call == "" {
		r.mu.Unlock()
		return said
	}
	seen, waits := a.said.waits[call]
	if !waits {
		seen = make(chan struct{})
		if a.said.waits == nil {
			a.said.waits = map[string]chan struct{}{}
		}
		a.said.waits[call] = seen
	}
	r.mu.Unlock()
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	defer r.clock.AfterFunc(saidLimit, stop).Stop()
	_ = r.exec.Await(waiting, seen)
	r.mu.Lock()
	defer r.mu.Unlock()
	return a.said.before[call]
}

// ending is the end of a text, of n bytes at most and the sign that something is missing.
func ending(text string, n int) string {
	if len(text) <= n {
		return text
	}
	text = text[len(text)-n:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	return "…" + text
}

package sdk

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// maxTools is how many calls of tools a run remembers while they have no answer.
const maxTools = 64

// progress is how far a run has come, by the messages that were read. It is safe
// for concurrent use.
type progress struct {
	doing string // "run", "query"
	clock kernel.Clock

	mu       sync.Mutex
	messages int
	called   int
	tools    []tool
	last     *AssistantMessage        // the last one that has a text
	pulling  time.Time                // since when the prompt's next message is waited for; zero: it is not
	err      *session.UnfinishedError // the first one
}

type tool struct {
	id, name string
	since    time.Time
}

// note takes a message that was read.
func (p *progress) note(m Message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.messages++
	switch m := m.(type) {
	case *AssistantMessage:
		if m.Message.Content.Text() != "" {
			p.last = m
		}
		for _, use := range protocol.ToolUses(m) {
			p.called++
			if len(p.tools) < maxTools {
				p.tools = append(p.tools, tool{use.ID, use.Name, p.clock.Now()})
			}
		}
	case *UserMessage:
		for _, r := range protocol.ToolResults(m) {
			p.tools = slices.DeleteFunc(p.tools, func(t tool) bool { return t.id == r.ToolUseID })
		}
	case *ResultMessage:
		p.tools = nil
	}
}

// pull notes that the prompt's next message is waited for, or no more.
func (p *progress) pull(now bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pulling = time.Time{}
	if now {
		p.pulling = p.clock.Now()
	}
}

// stopped makes the error of a context that has ended with err. The first call
// describes the session, which is to be closed only afterwards.
func (p *progress) stopped(s *runtime.Session, err error) *session.UnfinishedError {
	e, now := s.Unfinished(p.doing, err), p.clock.Now() // it waits, so without the lock
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil {
		return p.err
	}
	e.Messages, e.Called = p.messages, p.called
	for _, t := range p.tools {
		e.Tools = append(e.Tools, session.RunningTool{ID: t.id, Name: t.name, Age: now.Sub(t.since)})
	}
	if p.last != nil {
		e.Text = endOf(TextOf(p.last))
	}
	if !p.pulling.IsZero() {
		e.Waits = append(e.Waits, session.Wait{What: "the prompt's next message", Age: now.Sub(p.pulling)})
	}
	p.err = e
	return e
}

// rest bounds what is read once a context has ended: what had come by then. An
// agent may never fall silent.
type rest struct {
	ended bool
	left  int
}

// more reports whether another message may be read.
func (r *rest) more(ctx context.Context, s *runtime.Session) bool {
	if !r.ended && ctx.Err() != nil {
		r.ended, r.left = true, s.Unread()+1
	}
	if r.ended {
		r.left--
	}
	return r.left >= 0
}

// endOf is the end of a text, at most 256 bytes of it.
func endOf(text string) string {
	const most = 256
	if len(text) <= most {
		return text
	}
	cut := len(text) - most
	for cut < len(text) && !utf8.RuneStart(text[cut]) {
		cut++
	}
	return strings.Clone(text[cut:])
}

package actors

import (
	"fmt"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/actors/message"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// flush is the step of a close between the last turn and the end of stdin: the
// requests of [dialect.Dialect.BeforeEOF], one after the other, and then the wait
// until the agent is quiet ([dialect.Traits.QuietBeforeEOF]). Meanwhile what
// the agent asks is answered by the callbacks.
type flush struct {
	begun bool
	since time.Time // when it began
	wake  time.Time // when the timer looks whether the agent is quiet; in the past: there is none
	left  []protocol.HostRequest
	call  *ledger.Call // the one that waits for its answer
}

// flush goes on with the flush, which begins with the first call. Stdin is
// closed when the agent has answered everything, waits for no answer and is quiet,
// and after Graces.Flush in any case: no answer reaches it later.
func (s *sessionActor) flush(c *kernel.Context[message.ToSession]) {
	k := s.core
	f := &k.flushing
	if !f.begun {
		f.begun, f.since, f.left = true, c.Now(), k.beforeEOF()
		k.until = c.Now().Add(k.cfg.Graces.Flush)
		k.Ledger.Serve(k.cfg.Graces.Flush > 0)
		if k.cfg.Graces.Flush > 0 {
			c.After(k.cfg.Graces.Flush, message.CloseStepOver{Flush: true})
		}
	}
	switch err := k.Link.Status().Err; {
	case err != nil || s.finished:
		k.giveUpFlush(session.ErrTransportClosed)
	case !c.Now().Before(k.until):
		k.giveUpFlush(&session.TimeoutError{What: "the flush before the end of stdin", Limit: k.cfg.Graces.Flush, SetBy: "Graces.Flush"})
	}
	for f.call != nil || len(f.left) > 0 {
		if f.call == nil && !k.nextFlush() {
			continue
		}
		select {
		case <-f.call.Done():
		default:
			return
		}
		if _, err := f.call.Answer(); err != nil {
			k.notFlushed(f.call.Subtype, err)
		}
		f.call = nil
	}
	if !c.Now().Before(k.until) || k.Ledger.Unanswered() == 0 && s.quiet(c) {
		s.closeLink(false)
	}
}

// quiet reports whether the agent has written nothing for as long as its dialect
// asks; else it sets a timer to look again.
func (s *sessionActor) quiet(c *kernel.Context[message.ToSession]) bool {
	k := s.core
	last := k.Ledger.LastRead()
	if last.Before(k.flushing.since) {
		last = k.flushing.since
	}
	at := last.Add(k.cfg.Dialect.Traits().QuietBeforeEOF)
	if !c.Now().Before(at) || k.Link.Status().Phase != transport.Up {
		return true
	}
	if !k.flushing.wake.After(c.Now()) { // else a timer is on its way, which looks again
		k.flushing.wake = at
		c.After(at.Sub(c.Now()), message.LedgerChanged{})
	}
	return false
}

// beforeEOF are the requests that the agent wants before the end of its stdin,
// of those that it can serve.
func (k *Core) beforeEOF() []protocol.HostRequest {
	if k.cfg.Graces.Flush <= 0 {
		return nil
	}
	can := k.Ledger.Capabilities()
	return slices.DeleteFunc(k.cfg.Dialect.BeforeEOF(k.Ledger.Initialized()), func(r protocol.HostRequest) bool {
		need := k.cfg.Dialect.Capability(r)
		return need != "" && !slices.Contains(can, need)
	})
}

// nextFlush makes the next request. It reports false if that cannot be made.
func (k *Core) nextFlush() bool {
	f := &k.flushing
	r := f.left[0]
	f.left = f.left[1:]
	body, err := k.cfg.Dialect.Encode(r)
	if err == nil {
		f.call, err = k.Ledger.OpenCall(r.Subtype(), body, ledger.First(), ledger.Within(-1, "")) // the step has its limit
	}
	if err != nil {
		k.notFlushed(r.Subtype(), err)
		return false
	}
	k.router.Tell(nil, message.WorkReady{})
	return true
}

// giveUpFlush ends the flush without what is not answered yet.
func (k *Core) giveUpFlush(why error) {
	f := &k.flushing
	k.until = time.Time{}
	if f.call != nil {
		k.Ledger.Abandon(f.call, why)
	}
	for _, r := range f.left {
		k.notFlushed(r.Subtype(), why)
	}
	f.left = nil
}

func (k *Core) notFlushed(subtype string, err error) {
	k.cfg.Emit(session.WarningIssued{Problem: fmt.Sprintf("%s before the end of stdin failed: %v", subtype, err)})
}

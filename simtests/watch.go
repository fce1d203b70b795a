package simtests

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// watched is a session of the world's, as its events show it.
type watched struct {
	id    string
	state string
	ended int
	steps []string // its states
	// failures are those of the actors below each supervisor, by its name.
	failures map[string][]time.Time
	due      map[string]time.Time // when a supervisor makes the restart that it has announced
}

// errInjected is the error of ErrorCallback.
var errInjected = errors.New("simtests: the fault ErrorCallback")

// watch injects faults into the callbacks of a session, and collects its events. p is
// the client's agent; nil for an agent from outside of the world.
func (w *World) watch(o *sdk.Options, p *program) {
	calls := newToolCalls(o.Policy != nil)
	if p != nil {
		p.calls = calls
	}
	if ask, limit := o.CanUseTool, o.PermissionTimeout; ask != nil {
		o.CanUseTool = func(ctx context.Context, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
			at, k := w.sched.Now(), callKey{p.process(), r.ToolUseID}
			if skip, err := w.callback(ctx, calls, requestKey{k, "CanUseTool"}); skip {
				return protocol.PermissionResult{}, err
			}
			defer w.sched.be(w.sched.be(laneCallbacks))
			res, err := ask(ctx, r)
			if err == nil && res.Behavior == protocol.BehaviorAllow && !w.late(at, limit) {
				calls.allow(k)
			}
			return res, err
		}
	}
	o.Hooks = slices.Clone(o.Hooks)
	for i, h := range o.Hooks {
		if h.Func == nil {
			continue
		}
		o.Hooks[i].Func = func(ctx context.Context, c *session.HookCall) (json.RawMessage, error) {
			k, ok := callKey{p.process(), c.ToolUseID}, false
			if gate(h) {
				defer func() {
					if !ok {
						calls.hookFailed(k)
					}
				}()
			}
			skip, err := w.callback(ctx, calls, requestKey{k, string(h.Event)})
			var out json.RawMessage
			if !skip {
				defer w.sched.be(w.sched.be(laneCallbacks))
				out, err = h.Func(ctx, c)
			}
			ok = err == nil
			return out, err
		}
	}
	tell := o.OnEvent
	o.OnEvent = func(r session.EventRecord) {
		w.onEvent(r)
		if p != nil {
			p.hears(r)
		}
		if tell != nil {
			tell(r)
		}
	}
}

// late reports whether a callback that began at that time has taken so long that its allow
// must not count. A clock that jumps may have the timer come after the answer.
func (w *World) late(began time.Time, limit time.Duration) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return limit > 0 && w.sched.Now().Sub(began) > limit && !w.happened(faultJump)
}

// callback is what goes wrong with a callback before the user's function is called. It
// reports whether the function is not called at all, and what is returned instead.
func (w *World) callback(ctx context.Context, calls *toolCalls, k requestKey) (skip bool, err error) {
	w.note(Event{Kind: "callback", Lane: laneCallbacks, What: k.callback})
	hit := w.strike(laneCallbacks, k.callback, faultSlow, faultPanic, faultGoexit, faultError, faultZero, faultOutlive)
	if hit == nil {
		return false, nil
	}
	switch hit.kind {
	case faultSlow:
		over := make(chan struct{})
		t := w.sched.AfterFunc(hit.d, func() { close(over) })
		defer t.Stop()
		if err := w.sched.Await(ctx, over); err != nil {
			return true, err
		}
		w.uncancelled(calls, k)
	case faultOutlive:
		w.Sleep(hit.d)
	case faultPanic:
		panic("simtests: the fault PanicCallback")
	case faultGoexit:
		runtime.Goexit()
	case faultError:
		return true, errInjected
	case faultZero:
		return true, nil
	}
	return false, nil
}

// onEvent holds a session's events against one-terminal.
func (w *World) onEvent(r session.EventRecord) {
	w.mu.Lock()
	s := w.sessions[r.Session]
	if s == nil {
		s = &watched{id: r.Session}
		w.sessions[r.Session] = s
		w.order = append(w.order, r.Session)
	}
	after := s.ended > 0
	broken := ""
	kind, what := "event", fmt.Sprintf("%T", r.Event)
	switch e := r.Event.(type) {
	case *session.StateChanged:
		kind, what = "state", e.To
		if s.state != "" && s.state != e.From {
			broken = fmt.Sprintf("state-order: the session went from %s to %s, and was %s before", e.From, e.To, s.state)
		}
		w.reached[e.From] = true
		s.state = e.To
		s.steps = append(s.steps, e.To)
		w.reached[e.To] = true
	case *session.Ended:
		s.ended++
		if s.state == session.StateFailed.String() && e.Reason == nil {
			broken = "told: the session has failed, and for no reason"
		}
		if e.Reason != nil {
			what += ": " + firstLine(e.Reason.Error())
		}
	case *session.Supervision:
		if d, ok := e.Decision.(supervisor.Event); ok {
			broken = cmp.Or(s.supervised(d), s.paced(d), w.sound(d))
			w.announced(r.Session, d)
		}
	}
	ended := s.ended
	w.mu.Unlock()
	if broken != "" {
		w.Errorf("%s", broken)
	}
	if w.loops != nil {
		w.loops.secret("an event", r.Event.String())
	}
	e := Event{Kind: kind, Lane: r.Session, What: what}
	if w.full {
		e.Text = r.Event.String()
	}
	w.note(e)
	if after {
		w.Errorf("one-terminal: %T came after the session had ended (%d ends)", r.Event, ended)
	}
}

// supervised holds a supervisor's decision against its intensity, and returns what is
// wrong with it, or "".
func (s *watched) supervised(e supervisor.Event) string {
	const most, window = supervisor.DefaultMaxRestarts, supervisor.DefaultWindow
	if s.failures == nil {
		s.failures = make(map[string][]time.Time)
	}
	within := func(of string) (n int) {
		for _, at := range s.failures[of] {
			if e.When().Sub(at) <= window {
				n++
			}
		}
		return n
	}
	switch e := e.(type) {
	case *supervisor.ChildFailed:
		// The supervisors below it are new ones from now on.
		maps.DeleteFunc(s.failures, func(of string, _ []time.Time) bool {
			return of != e.Supervisor && (strings.HasPrefix(e.Supervisor, "fleet/") || of == e.Supervisor+"/"+e.Child)
		})
		s.failures[e.Supervisor] = append(s.failures[e.Supervisor], e.At)
	case *supervisor.Restarted: // by a strategy, perhaps also those that had not failed
		for _, child := range e.Children {
			delete(s.failures, e.Supervisor+"/"+child)
		}
	case *supervisor.RestartScheduled:
		if n := within(e.Supervisor); n > most {
			return fmt.Sprintf("intensity: %s restarts %s after %d failures within %v, and %d are allowed", e.Supervisor, e.Child, n, window, most)
		}
	case *supervisor.IntensityExceeded:
		if n := within(e.Supervisor); n <= most {
			return fmt.Sprintf("intensity: %s gives up after %d failures within %v, and %d are allowed", e.Supervisor, n, window, most)
		}
	}
	return ""
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// settleLimit is how long a session may take, once nothing goes wrong any more, until
// it waits for its user or has ended.
const settleLimit = 30 * time.Minute

// finish checks what the scenario leaves: liveness first, then everything is shut
// down, and nothing may be left.
func (w *World) finish() {
	defer w.caught()
	w.Calm()
	if w.c.Strategy == Exhaustive {
		w.sched.Plain(true) // the orders of the end are not the scenario's
	}
	at := w.sched.Now()
	w.sched.Quiet()
	if took := w.sched.Now().Sub(at); took > settleLimit {
		w.Errorf("liveness: something went on for %v after the scenario's end%s", took, w.waits())
	}
	full := w.noRoom()
	for _, s := range w.rt.Sessions() {
		switch st := s.State(); {
		case st.Terminal(), st == session.StateReady, st == session.StateAwaitingConsumer, st == session.StatePassivated:
		case st == session.StateAdmitting && full: // it waits for what others have
		case st == session.StateRecovering && recoversLater(s.Tree(context.Background()).Waits, full):
		default:
			w.Errorf("liveness: session %s is %s, and nothing will change that%s", s.ID(), st, w.waits())
		}
	}
	w.stalled()
	w.settled()
	w.shown()
	if err := w.rt.Shutdown(context.Background()); err != nil && !w.excused() {
		w.Errorf("no-orphans: shut down: %v", err)
	}
	w.sched.Quiet()
	if n := len(w.rt.Sessions()); n > 0 {
		w.Errorf("no-orphans: %d sessions are left", n)
	}
	if living, _ := w.Agents(); living > 0 {
		w.Errorf("no-orphans: %d agents are left", living)
	}
	w.shown()
	w.lease.left()
	w.roomy()
	w.restarted()
	w.unannounced()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range w.order {
		if s := w.sessions[id]; s.ended != 1 && s.state != "" {
			w.failures = append(w.failures, fmt.Sprintf("one-terminal: session %s ended %d times; its states were %s", id, s.ended, strings.Join(s.steps, ", ")))
		}
	}
}

// recoversLater reports whether a session that recovers waits for its user, or for a place
// that another one has whose user does not read.
func recoversLater(waits []session.Wait, full bool) bool {
	return len(waits) == 0 || full && strings.HasPrefix(waits[0].What, "place for the agent's process")
}

// excused reports whether agents were made to resist their end, which Shutdown then
// says.
func (w *World) excused() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.fired) > 0
}

// waits shows what the runtime waits for.
func (w *World) waits() string {
	var b strings.Builder
	for _, s := range w.rt.Sessions() {
		fmt.Fprintf(&b, "\n\tsession %s: %s", s.ID(), s.State())
	}
	fmt.Fprintf(&b, "\n\t%d tasks", w.sched.Live())
	return b.String()
}

package simtests

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// watched is a session of the world's, as its events show it.
type watched struct {
	id    string
	state string
	ended int
	steps []string // its states
}

// verdicts are what CanUseTool callbacks allowed, by the id of the tool call. A
// policy or a mode allows without asking them, so where one may, nothing is held
// against the answers.
type verdicts struct {
	allowed map[string]bool
	any     bool // somebody else may allow
}

// errInjected is the error of ErrorCallback.
var errInjected = errors.New("simtests: the fault ErrorCallback")

// watch makes the callbacks of a session go wrong as faults want it, and its events
// known to the world.
func (w *World) watch(o *sdk.Options) {
	if ask := o.CanUseTool; ask != nil {
		o.CanUseTool = func(ctx context.Context, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
			if err := w.callback(ctx, "CanUseTool"); err != nil {
				return protocol.PermissionResult{}, err
			}
			defer w.sched.be(w.sched.be(laneCallbacks))
			res, err := ask(ctx, r)
			if err == nil && res.Behavior == protocol.BehaviorAllow {
				w.allow(r.ToolUseID)
			}
			return res, err
		}
	}
	if o.Policy != nil {
		w.allow("")
	}
	o.Hooks = slices.Clone(o.Hooks)
	for i, h := range o.Hooks {
		if h.Func == nil {
			continue
		}
		o.Hooks[i].Func = func(ctx context.Context, c *session.HookCall) (json.RawMessage, error) {
			if err := w.callback(ctx, string(h.Event)); err != nil {
				return nil, err
			}
			defer w.sched.be(w.sched.be(laneCallbacks))
			return h.Func(ctx, c)
		}
	}
	tell := o.OnEvent
	o.OnEvent = func(r session.EventRecord) {
		w.onEvent(r)
		if tell != nil {
			tell(r)
		}
	}
}

func (w *World) allow(tool string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if tool == "" {
		w.verdicts.any = true
		return
	}
	if w.verdicts.allowed == nil {
		w.verdicts.allowed = make(map[string]bool)
	}
	w.verdicts.allowed[tool] = true
}

func (w *World) allowed(tool string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.verdicts.any || w.verdicts.allowed[tool]
}

// callback is what goes wrong with a callback before the user's function is called.
func (w *World) callback(ctx context.Context, name string) error {
	w.note(Event{Kind: "callback", Lane: laneCallbacks, What: name})
	hit := w.strike(laneCallbacks, name, faultSlow, faultPanic, faultGoexit, faultError)
	if hit == nil {
		return nil
	}
	switch hit.kind {
	case faultSlow:
		over := make(chan struct{})
		t := w.sched.AfterFunc(hit.d, func() { close(over) })
		defer t.Stop()
		return w.sched.Await(ctx, over)
	case faultPanic:
		panic("simtests: the fault PanicCallback")
	case faultGoexit:
		runtime.Goexit()
	case faultError:
		return errInjected
	}
	return nil
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
	kind, what := "event", fmt.Sprintf("%T", r.Event)
	switch e := r.Event.(type) {
	case *session.StateChanged:
		kind, what = "state", e.To
		s.state = e.To
		s.steps = append(s.steps, e.To)
		w.reached[e.To] = true
	case *session.Ended:
		s.ended++
		if e.Reason != nil {
			what += ": " + firstLine(e.Reason.Error())
		}
	}
	ended := s.ended
	w.mu.Unlock()
	e := Event{Kind: kind, Lane: r.Session, What: what}
	if w.full {
		e.Text = r.Event.String()
	}
	w.note(e)
	if after {
		w.Errorf("one-terminal: %T came after the session had ended (%d ends)", r.Event, ended)
	}
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
	at := w.sched.Now()
	w.sched.Quiet()
	if took := w.sched.Now().Sub(at); took > settleLimit {
		w.Errorf("liveness: something went on for %v after the scenario's end%s", took, w.waits())
	}
	for _, s := range w.rt.Sessions() {
		if st := s.State(); !st.Terminal() && st != session.StateReady && st != session.StateAwaitingConsumer {
			w.Errorf("liveness: session %s is %s, and nothing will change that%s", s.ID(), st, w.waits())
		}
	}
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
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, id := range w.order {
		if s := w.sessions[id]; s.ended != 1 && s.state != "" {
			w.failures = append(w.failures, fmt.Sprintf("one-terminal: session %s ended %d times; its states were %s", id, s.ended, strings.Join(s.steps, ", ")))
		}
	}
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

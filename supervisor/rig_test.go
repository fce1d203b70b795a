package supervisor_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/supervisor"
)

var (
	errBoom = errors.New("boom")
	epoch   = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
)

func seeded(seed uint64) kernel.Rand { return kernel.NewRand(&seed) }

// rig drives a supervisor by hand and shows its actions as words.
type rig struct {
	*supervisor.Supervisor
	t           *testing.T
	now         time.Time
	events      []supervisor.Event
	incarnation map[string]int
	tokens      []supervisor.Token // in the order they were asked for
	last        *supervisor.Stopped
	failure     *supervisor.Failure
}

func newRig(t *testing.T, spec supervisor.Spec) *rig {
	t.Helper()
	if spec.Name == "" {
		spec.Name = "sup"
	}
	r := &rig{t: t, now: epoch, incarnation: map[string]int{}}
	s, err := supervisor.New(spec, seeded(1), func(e supervisor.Event) { r.events = append(r.events, e) })
	require.NoError(t, err)
	r.Supervisor = s
	return r
}

func (r *rig) words(actions []supervisor.Action) []string {
	var words []string
	for _, a := range actions {
		switch a := a.(type) {
		case *supervisor.StartChild:
			r.incarnation[a.Name] = a.Incarnation
		case *supervisor.SetTimer:
			r.tokens = append(r.tokens, a.Token)
		case *supervisor.Stopped:
			r.last = a
		case *supervisor.Escalate:
			r.failure = a.Reason
		}
		words = append(words, word(a))
	}
	return words
}

func word(a supervisor.Action) string {
	switch a := a.(type) {
	case *supervisor.StartChild:
		return fmt.Sprintf("start %s#%d", a.Name, a.Incarnation)
	case *supervisor.StopChild:
		return fmt.Sprintf("stop %s#%d", a.Name, a.Incarnation)
	case *supervisor.KillChild:
		return fmt.Sprintf("kill %s#%d", a.Name, a.Incarnation)
	case *supervisor.SetTimer:
		return fmt.Sprintf("timer %v", a.After)
	case *supervisor.Escalate:
		return "escalate"
	case *supervisor.Stopped:
		return "stopped"
	default:
		panic(fmt.Sprintf("unknown action %T", a))
	}
}

func (r *rig) start() []string { return r.words(r.Start(r.now)) }

// down ends the present incarnation of a child.
func (r *rig) down(child string, reason error) []string {
	return r.words(r.ChildDown(r.now, child, r.incarnation[child], reason))
}

func (r *rig) stop(reason error) []string { return r.words(r.Stop(r.now, reason)) }

func (r *rig) restart(child string) []string {
	return r.words(r.RestartChild(r.now, child, errors.New("on purpose")))
}

// fire fires the timer asked for last, after a time.
func (r *rig) fire(after time.Duration) []string {
	r.t.Helper()
	require.NotEmpty(r.t, r.tokens)
	r.now = r.now.Add(after)
	return r.words(r.Timer(r.now, r.tokens[len(r.tokens)-1]))
}

// obey carries on after the words as long as children are asked to stop: each
// goes down at once. Timers are left out of what it returns.
func (r *rig) obey(words []string) []string {
	r.t.Helper()
	var all []string
	for range 100 {
		var next []string
		for _, w := range words {
			var name string
			var n int
			if _, err := fmt.Sscanf(w, "stop %1s#%d", &name, &n); err == nil {
				next = append(next, r.down(name, nil)...)
			}
			if len(w) < 5 || w[:5] != "timer" {
				all = append(all, w)
			}
		}
		if words = next; len(words) == 0 {
			return all
		}
	}
	r.t.Fatal("the supervisor stops children without an end")
	return nil
}

func (r *rig) state(child string) supervisor.ChildState {
	r.t.Helper()
	for _, c := range r.Snapshot() {
		if c.Name == child {
			return c
		}
	}
	r.t.Fatalf("no child %s", child)
	return supervisor.ChildState{}
}

func (r *rig) eventTexts() []string {
	var texts []string
	for _, e := range r.events {
		texts = append(texts, e.String())
	}
	return texts
}

// abc are three children of which b has the given class.
func abc(b supervisor.Class) []supervisor.Child {
	return []supervisor.Child{{Name: "a"}, {Name: "b", Class: b}, {Name: "c"}}
}

// atOnce has no delays.
var atOnce = supervisor.Backoff{Initial: supervisor.NoBackoff}

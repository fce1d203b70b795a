package inspect

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// EventOf returns a record as [Handler] shows it.
func EventOf(r session.EventRecord) Event {
	e := Event{
		At: r.At, Session: r.Session, Type: reflect.TypeOf(r.Event).Elem().Name(),
		Level: r.Event.Level().String(), Text: fmt.Sprint(r.Event), Seq: r.Seq,
	}
	switch of := r.Event.(type) {
	case *session.StateChanged:
		e.Cause = of.Reason
	case *session.ActorFailed:
		e.Actor, e.Cause = of.Actor, causeOf(of.Reason)
	case *session.Supervision:
		e.decided(of.Decision)
	case *session.CallbackFailed:
		e.Cause = causeOf(of.Err)
	case *session.Recovering:
		e.Cause, e.DelayMS = causeOf(of.Death.Err), of.Backoff.Milliseconds()
	case *session.Recovered:
		e.Cause = of.Why
	case *session.StartHeld:
		e.Cause = of.Why
	case *session.BreakerOpened:
		e.Cause, e.DelayMS = of.Reason, of.CoolDown.Milliseconds()
	case *session.CloudReconnecting:
		e.Cause, e.DelayMS = causeOf(of.Err), of.Delay.Milliseconds()
	case *session.AuthExpired:
		e.Cause = of.Reason
	case *session.Ended:
		e.Cause = causeOf(of.Reason)
	case *session.Steered:
		e.By = of.By
	}
	return e
}

func causeOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// decided takes what a supervisor has decided.
func (e *Event) decided(decision any) {
	life := func(child string, incarnation int) string { return fmt.Sprintf("%s#%d", child, incarnation) }
	switch of := decision.(type) {
	case *supervisor.ChildFailed:
		e.Actor, e.Cause = life(of.Child, of.Incarnation), causeOf(of.Reason)
	case *supervisor.ChildKilled:
		e.Actor, e.Cause = life(of.Child, of.Incarnation), of.Why
	case *supervisor.ChildStuck:
		e.Actor = life(of.Child, of.Incarnation)
	case *supervisor.NotRestarted:
		e.Actor, e.Cause = life(of.Child, of.Incarnation), strings.Join(nonEmpty(of.Why, causeOf(of.Reason)), ": ")
	case *supervisor.RestartScheduled:
		e.Actor, e.Cause, e.DelayMS = of.Child, causeOf(of.Reason), of.Delay.Milliseconds()
	case *supervisor.Restarted:
		e.Actor = of.Child
	case *supervisor.IntensityExceeded:
		e.Actor, e.Cause = of.Child, fmt.Sprintf("%d failures, %d allowed in %v", of.Failures, of.Limit.Max, of.Limit.Window)
	case *supervisor.Escalated:
		e.Cause = causeOf(of.Failure)
	}
}

func nonEmpty(texts ...string) (all []string) {
	for _, t := range texts {
		if t != "" {
			all = append(all, t)
		}
	}
	return all
}

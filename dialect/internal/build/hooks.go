package build

import (
	"time"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// hookMatcher is one registration. Timeout is in seconds.
type hookMatcher struct {
	Matcher         string                `json:"matcher,omitempty"`
	HookCallbackIDs []string              `json:"hookCallbackIds"`
	Timeout         float64               `json:"timeout,omitempty"`
	OnFailure       session.FailureAction `json:"onFailure,omitempty"`
}

// Hooks groups the registrations by event, in the order in which the events first appear. onFailure gives the value
// of a registration that says nothing of it; nil: none.
func Hooks(regs []dialect.HookRegistration, onFailure func(protocol.HookEvent) session.FailureAction) *Object {
	var order []protocol.HookEvent
	byEvent := map[protocol.HookEvent][]hookMatcher{}
	for _, r := range regs {
		if _, seen := byEvent[r.Event]; !seen {
			order = append(order, r.Event)
		}
		m := hookMatcher{r.Matcher, r.CallbackIDs, float64(r.Timeout) / float64(time.Second), r.OnFailure}
		if m.OnFailure == "" && onFailure != nil {
			m.OnFailure = onFailure(r.Event)
		}
		byEvent[r.Event] = append(byEvent[r.Event], m)
	}
	out := &Object{}
	for _, e := range order {
		out.Set(string(e), byEvent[e])
	}
	return out
}

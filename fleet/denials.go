package fleet

import (
	"strings"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// maxDenials bounds the denied calls that a result names: an agent can repeat one without
// end.
const maxDenials = 20

// refusals are what the model has read of calls that failed, by the id of the call: a result
// names the denied calls without their reasons. At most maxRefusals of a turn are kept.
type refusals map[string]string

const maxRefusals = 200

// heard keeps what the model reads of calls that failed.
func (a *attempt) heard(m sdk.Message) {
	for _, b := range sdk.ToolResults(m) {
		if !b.IsError || len(a.refusals) >= maxRefusals {
			continue
		}
		if a.refusals == nil {
			a.refusals = refusals{}
		}
		a.refusals[b.ToolUseID] = short(b.Content.Text())
	}
}

// denied counts the denied calls of a turn, and keeps the first ones.
func (a *attempt) denied(result *sdk.ResultMessage) {
	a.Denied += len(result.PermissionDenials)
	for i := range result.PermissionDenials[:min(len(result.PermissionDenials), maxDenials-len(a.Denials))] {
		d := &result.PermissionDenials[i]
		a.Denials = append(a.Denials, Denial{short(d.ToolName), short(string(d.ToolInput)), a.reason(d)})
	}
	a.refusals = nil
}

func (a *attempt) reason(d *protocol.PermissionDenial) string {
	text := a.refusals[d.ToolUseID]
	for _, said := range []string{d.DecisionReason, d.Message} {
		if text == "" {
			text = short(said)
		}
	}
	return strings.TrimPrefix(text, "PreToolUse:"+d.ToolName+" hook error: ")
}

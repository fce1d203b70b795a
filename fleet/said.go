package fleet

import (
	"context"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/sdk"
)

const (
	maxSaid = 2000
	// saidLimit is how long a call that needs a person waits for the message it is in.
	saidLimit = time.Second
)

// says notes what the agent said before its calls of tools.
func (r *runner) says(a *attempt, m *sdk.AssistantMessage) {
	if r.job.Approvals == nil {
		return
	}
	in := says{id: a.id, number: a.number, who: m.ParentToolUseID}
	if text := strings.TrimSpace(sdk.TextOf(m)); text != "" {
		in.text = shown.Tail(text, maxSaid)
	}
	for _, use := range sdk.ToolUses(m) {
		in.uses = append(in.uses, use.ID)
	}
	r.tell(in)
}

// turnSaid forgets what was said in the turn that has ended.
func (r *runner) turnSaid(a *attempt) {
	if r.job.Approvals != nil {
		r.tell(turned{a.id, a.number})
	}
}

// saidBefore returns what the agent said before a call. Its message may still be on the way.
func (r *runner) saidBefore(ctx context.Context, a *attempt, call string) string {
	to := kernel.NewPromise[string]()
	r.tell(saidBefore{a.id, a.number, call, to})
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	defer r.clock.AfterFunc(saidLimit, stop).Stop()
	text, _ := to.Wait(waiting, r.exec)
	return text
}

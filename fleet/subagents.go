package fleet

import (
	"context"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// Subagents limits the subagents that agents start with the tools Agent, Task and Workflow.
// A call beyond a limit is denied by a hook, and the model reads why. A zero field: no
// limit. A Workflow counts as one when it starts; the subagents that it starts itself cannot
// be denied, but count.
type Subagents struct {
	// Max is the most subagents of one attempt; negative: none is allowed.
	Max int `json:"max,omitempty"`
	// MaxJob is the most of the whole job, in this process.
	MaxJob int `json:"maxJob,omitempty"`
	// Depth is how deep subagents may be nested: with 1 only the agent itself starts them.
	Depth int `json:"depth,omitempty"`
	// AtOnce is the most of one attempt at the same time. A call that something else denies
	// keeps its place until the turn ends.
	AtOnce int `json:"atOnce,omitempty"`
}

const subagentTools = "Agent|Task|Workflow"

// limit puts hooks into the options of an attempt that count its subagents. They are called
// concurrently.
func (r *runner) limit(a *attempt, o *sdk.Options) {
	hook := func(f fanned) string {
		f.id, f.number = a.id, a.number
		why, _ := question(r.env, func(to *kernel.Promise[string]) note { f.reply = to; return f })
		return why
	}
	tools := sdk.Match(subagentTools)
	o.Hooks = append(o.Hooks[:len(o.Hooks):len(o.Hooks)],
		sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			if why := hook(fanned{what: fanAsks, call: in.ToolUseID, agent: in.AgentID}); why != "" {
				return sdk.DenyPreToolUse(why + ". Do the work yourself."), nil
			}
			return sdk.PreToolUseOutput{}, nil
		}, tools),
		sdk.OnPostToolUse(func(_ context.Context, in *sdk.PostToolUseInput) (sdk.PostToolUseOutput, error) {
			hook(fanned{what: fanReturned, call: in.ToolUseID, ok: true})
			return sdk.PostToolUseOutput{}, nil
		}, tools),
		sdk.OnPostToolUseFailure(func(_ context.Context, in *protocol.PostToolUseFailureInput) (sdk.FeedbackOutput, error) {
			hook(fanned{what: fanReturned, call: in.ToolUseID})
			return sdk.FeedbackOutput{}, nil
		}, tools),
		sdk.OnSubagentStart(func(_ context.Context, in *protocol.SubagentStartInput) (sdk.ContextOutput, error) {
			hook(fanned{what: fanBegan, agent: in.AgentID})
			return sdk.ContextOutput{}, nil
		}),
		sdk.OnSubagentStop(func(_ context.Context, in *protocol.SubagentStopInput) (sdk.FeedbackOutput, error) {
			hook(fanned{what: fanStopped, agent: in.AgentID})
			return sdk.FeedbackOutput{}, nil
		}),
		sdk.OnStop(func(context.Context, *protocol.StopInput) (sdk.FeedbackOutput, error) {
			hook(fanned{what: fanTurned})
			return sdk.FeedbackOutput{}, nil
		}),
	)
}

// subagents are Job.Subagents; the zero value without it.
func (j *Job) subagents() Subagents {
	if j.Subagents == nil {
		return Subagents{}
	}
	return *j.Subagents
}

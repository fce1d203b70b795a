package fleet

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// Subagents limits the subagents that agents start with the tools Agent, Task and Workflow.
// A call beyond a limit is denied by a hook, and the model reads why. A zero field is no
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

// subagentGate counts the subagents of one attempt. Its hooks are called concurrently. The
// lock of the run is taken under its own, never the other way round.
type subagentGate struct {
	run *run
	max Subagents

	mu      sync.Mutex
	began   int            // so far, those that run or ran
	calls   []*subagent    // that may begin, or run
	depths  map[string]int // of agents, by their id
	refused int
}

// subagent is a call that was let through.
type subagent struct {
	call  string // the tool call; "" for one that no call of ours started
	agent string // its id; "": it has not begun
	depth int
}

// limit puts the gate into the options of an attempt.
func (g *subagentGate) limit(o *sdk.Options) {
	tools := sdk.Match(subagentTools)
	o.Hooks = append(o.Hooks[:len(o.Hooks):len(o.Hooks)],
		sdk.OnPreToolUse(g.ask, tools),
		sdk.OnPostToolUse(func(_ context.Context, in *sdk.PostToolUseInput) (sdk.PostToolUseOutput, error) {
			g.returned(in.ToolUseID, true)
			return sdk.PostToolUseOutput{}, nil
		}, tools),
		sdk.OnPostToolUseFailure(func(_ context.Context, in *protocol.PostToolUseFailureInput) (sdk.FeedbackOutput, error) {
			g.returned(in.ToolUseID, false)
			return sdk.FeedbackOutput{}, nil
		}, tools),
		sdk.OnSubagentStart(func(_ context.Context, in *protocol.SubagentStartInput) (sdk.ContextOutput, error) {
			g.started(in.AgentID)
			return sdk.ContextOutput{}, nil
		}),
		sdk.OnSubagentStop(func(_ context.Context, in *protocol.SubagentStopInput) (sdk.FeedbackOutput, error) {
			g.stopped(in.AgentID)
			return sdk.FeedbackOutput{}, nil
		}),
		sdk.OnStop(func(context.Context, *sdk.StopInput) (sdk.FeedbackOutput, error) {
			g.turned()
			return sdk.FeedbackOutput{}, nil
		}),
	)
}

// ask decides about a call.
func (g *subagentGate) ask(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	depth := g.depths[in.AgentID] + 1
	if in.AgentID != "" && depth == 1 {
		depth = 2 // nobody has said when this agent began, but it is a subagent
	}
	var why string
	switch {
	case g.max.Max < 0:
		why = "this task may not start subagents"
	case g.max.Depth > 0 && depth > g.max.Depth:
		why = fmt.Sprintf("subagents of this task may be nested %d deep, and this one would be at depth %d", g.max.Depth, depth)
	case g.max.Max > 0 && g.began+g.waiting() >= g.max.Max:
		why = fmt.Sprintf("this task may start %s, and has started %s", shown.Count(g.max.Max, "subagent"), shown.Verb(g.max.Max, "it", "them"))
	case g.max.AtOnce > 0 && len(g.calls) >= g.max.AtOnce:
		why = fmt.Sprintf("this task may have %s at the same time; wait until %s has ended", shown.Count(g.max.AtOnce, "subagent"), shown.Verb(g.max.AtOnce, "it", "one of them"))
	default:
		if why = g.run.reserve(g.max.MaxJob); why == "" {
			g.calls = append(g.calls, &subagent{call: in.ToolUseID, depth: depth})
			return sdk.PreToolUseOutput{}, nil
		}
	}
	g.refused++
	return sdk.DenyPreToolUse(why + ". Do the work yourself."), nil
}

// waiting counts the calls that were let through and have begun no subagent yet; mu is held.
func (g *subagentGate) waiting() (n int) {
	for _, s := range g.calls {
		if s.agent == "" {
			n++
		}
	}
	return n
}

// started takes note of a subagent. Its hook does not name the call: of those that wait for
// one, the deepest is assumed, so that no subagent counts as less deep than it is.
func (g *subagentGate) started(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.began++
	var of *subagent
	for _, s := range g.calls {
		if s.agent == "" && (of == nil || s.depth > of.depth) {
			of = s
		}
	}
	if of == nil {
		of = &subagent{depth: 1}
		g.run.counted(1)
		g.calls = append(g.calls, of)
	}
	if of.agent = id; id == "" {
		of.agent = "?"
	}
	if g.depths == nil {
		g.depths = make(map[string]int)
	}
	g.depths[id] = of.depth
}

// returned takes note of the end of a call. If no subagent began, the place is free; it
// counts if the call was a success, as of an agent that does not report subagents.
func (g *subagentGate) returned(call string, ok bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	gone := g.drop(func(s *subagent) bool { return s.call == call && s.agent == "" })
	if ok {
		g.began += gone
	} else {
		g.run.counted(-gone)
	}
}

// stopped takes note of the end of a subagent.
func (g *subagentGate) stopped(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.drop(func(s *subagent) bool { return s.agent != "" && s.agent == id })
}

// turned takes note of the end of a turn: something else has denied what has not begun.
func (g *subagentGate) turned() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.run.counted(-g.drop(func(s *subagent) bool { return s.agent == "" }))
}

// drop forgets the calls that match, and returns how many did; mu is held.
func (g *subagentGate) drop(match func(*subagent) bool) int {
	before := len(g.calls)
	g.calls = slices.DeleteFunc(g.calls, match)
	return before - len(g.calls)
}

// counts returns how many subagents began, and how many were denied.
func (g *subagentGate) counts() (began, refused int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.began, g.refused
}

// reserve counts one more subagent of the job, or says why there must be none.
func (r *run) reserve(most int) (why string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if spent := r.job.Budget.exceeded(r.spent()); spent != "" {
		return fmt.Sprintf("the job's budget of %s is spent", spent)
	}
	if most > 0 && r.fanout >= most {
		return fmt.Sprintf("the tasks of the job may start %s, and have started %s", shown.Count(most, "subagent"), shown.Verb(most, "it", "them"))
	}
	r.fanout++
	return ""
}

// counted corrects the number of the job's subagents.
func (r *run) counted(more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.fanout += more
}

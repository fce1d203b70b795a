package policy

import "github.com/agent-troupe/troupe/protocol"

// Default is what happens to a call that matches no rule. It does not apply to tools that
// change nothing outside the agent: the task list, the tool search, the structured
// output, the output and the end of background tasks, and the start of plan mode. These
// are allowed unless a rule names them.
type Default string

const (
	// Ask passes the call to the host's callback. Without a callback the call is denied.
	// "ask" means the same.
	Ask Default = ""
	// Deny denies the call without calling the callback.
	Deny Default = "deny"
	// Agent lets the agent decide by its permission mode. In every mode the agent runs
	// some calls without asking: commands that only read, reads in the working directory,
	// subagents. With this default a policy is not an allowlist.
	Agent Default = "agent"
)

func (d Default) problem() error {
	switch d {
	case Ask, "ask", Deny, Agent:
		return nil
	}
	return &ParseError{List: "Default", Index: -1, Rule: string(d), Problem: "is not a default", Fix: "use ask, deny or agent"}
}

// orDefault is the decision about a call for which the rules gave e.
func (p *Policy) orDefault(c Call, e Explanation) Explanation {
	if e.Rule.Text != "" || e.Behavior != protocol.BehaviorAsk {
		return e
	}
	switch {
	case bookkeeping(c.Tool):
		return Explanation{Behavior: protocol.BehaviorAllow, Reason: c.Tool + " changes nothing outside of the agent"}
	case p.byDefault == Deny:
		e.Behavior = protocol.BehaviorDeny
	case p.byDefault == Agent:
		e.ByAgent = true
	}
	return e
}

// bookkeeping reports whether a built-in tool changes nothing outside of the
// agent. Tools of MCP servers have other names.
func bookkeeping(tool string) bool {
	switch tool {
	case "StructuredOutput", "ToolSearch", "EnterPlanMode", // the answer, the list of tools, a stricter mode
		"TodoWrite", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", // the list of tasks
		"TaskOutput", "BashOutput", "TaskStop", "KillShell", "KillBash": // background tasks that ran through the rules
		return true
	}
	return false
}

package runtime

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/actors/hooks"
	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/session"
)

// Timeout is one time limit of a session.
type Timeout struct {
	What    string        // what the session waits for
	Limit   time.Duration // the longest time; 0: no limit
	Option  string        // the option that sets the limit, as in session.TimeoutError.SetBy; empty: no option sets it
	Default bool          // the option was not given, so that Limit is its default
}

// timeouts lists the limits of what a session of the spec may wait for, in the
// order of its life. o is the spec's input, with the policy in force.
func (spec *Spec) timeouts(o *dialect.Input) []Timeout {
	var list []Timeout
	add := func(what, option string, given, inForce time.Duration) {
		list = append(list, Timeout{what, max(inForce, 0), option, given == 0})
	}
	limits := spec.limits().WithDefaults()
	add("the start of the agent's process", "Limits.Start", spec.Options.Limits.Start, limits.Start)
	option := "Limits.Initialize"
	if spec.Options.Limits.Initialize == 0 && spec.Options.InitializeTimeout != 0 {
		option = "InitializeTimeout"
	}
	add("the answer to initialize", option, spec.limits().Initialize, limits.Initialize)
	add("the answer to any other request", "Limits.Control", spec.Options.Limits.Control, limits.Control)
	add("retries of the model's API in a turn", "Limits.Retry", spec.Options.Limits.Retry, limits.Retry)
	add("progress in a turn", "Limits.Stall", spec.Options.Limits.Stall, limits.Stall)
	add("progress after the interrupt of a stalled turn", "Limits.StallKill", spec.Options.Limits.StallKill, limits.StallKill)
	add("somebody to read the messages", "Limits.Consumer", spec.Options.Limits.Consumer, limits.Consumer)
	if o.CanUseTool != nil {
		limit, option := spec.Options.PersonLimit()
		add("a permission", option, spec.Options.PermissionTimeout, limit)
	}
	for _, h := range o.Hooks {
		what := "a hook of " + string(h.Event)
		if h.Matcher != "" {
			what += " for " + h.Matcher
		}
		add(what, "the hook's Timeout", h.Timeout, hooks.HostLimit(h.Timeout))
	}
	for _, s := range spec.Options.SDKMCPServers {
		ofServer := spec.Options.SDKMCPServerConfigs[s.Name()].Timeout
		for _, tool := range toolsOf(s.Name(), o) {
			option, given := mcp.ToolOption, s.Timeout(tool)
			if given == 0 && ofServer > 0 {
				option, given = mcp.ServerOption(s.Name()), ofServer
			}
			add("a call of mcp__"+s.Name()+"__"+tool, option, given, cmp.Or(given, mcp.DefaultTimeout))
		}
	}
	if spec.Options.ResolveModel != nil {
		given := spec.Options.ResolveModelTimeout
		add("a model", "ResolveModelTimeout", given, cmp.Or(given, callback.ModelPolicyTimeout))
	}
	list = append(list, inquiryTimeouts(&spec.Options)...)
	graces, interrupt := spec.graces()
	add("close: an interrupted turn", "InterruptGrace", spec.Options.InterruptGrace, interrupt)
	if graces.Flush > 0 {
		add("close: memories and skills are written out", "Graces.Flush", spec.Options.Graces.Flush, graces.Flush)
	}
	add("close: the exit after the end of stdin", "Graces.EOF", spec.Options.Graces.EOF, graces.EOF)
	add("close: the exit after SIGTERM", "Graces.Terminate", spec.Options.Graces.Terminate, graces.Terminate)
	add("close: the rest of the output", "Graces.Output", spec.Options.Graces.Output, graces.Output)
	add("close: the sweep of what is left", "Graces.Sweep", spec.Options.Graces.Sweep, graces.Sweep)
	return list
}

func inquiryTimeouts(o *session.Options) []Timeout {
	var list []Timeout
	add := func(there bool, what, option string, given, otherwise time.Duration) {
		if there {
			list = append(list, Timeout{what, cmp.Or(given, otherwise), option, given == 0})
		}
	}
	add(o.OnElicitation != nil, "an elicitation", "", 0, 0)
	add(o.OnUserDialog != nil, "a dialog", "", 0, 0)
	add(o.FetchJobToken != nil, "a job token", "", 0, callback.InquiryTimeout)
	add(o.FetchServiceAccountToken != nil, "a service account's token", "", 0, callback.InquiryTimeout)
	add(o.ShouldGenerateMemory != nil, "whether to generate a memory", "Memory", callback.MemoryLimit(o), callback.InquiryTimeout)
	add(o.ShouldReviewSkills != nil, "whether to review the skills", "Evolution", callback.SkillsLimit(o), callback.InquiryTimeout)
	add(o.ResolveSessionArtifacts != nil, "the artifacts of a session", "", 0, callback.InquiryTimeout)
	return list
}

// toolsOf are the names in a server's manifest, sorted.
func toolsOf(server string, o *dialect.Input) []string {
	i := slices.IndexFunc(o.Servers, func(s dialect.SDKMCPServer) bool { return s.Name == server })
	var list struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if i < 0 || json.Unmarshal(o.Servers[i].ToolsListResult, &list) != nil {
		return nil // the agent will ask
	}
	names := make([]string, len(list.Tools))
	for i, t := range list.Tools {
		names[i] = t.Name
	}
	slices.Sort(names)
	return names
}

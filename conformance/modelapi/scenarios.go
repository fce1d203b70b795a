package modelapi

import (
	"maps"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Builtin returns a fresh copy of the scenarios every server starts with, by
// name.
func Builtin() map[string]Scenario {
	all := map[string]Scenario{}
	for _, group := range []map[string]Scenario{
		textScenarios(), shellScenarios(), fileScenarios(), agentScenarios(),
		mcpScenarios(), dialogScenarios(), failureScenarios(), toolScenarios(),
	} {
		maps.Copy(all, group)
	}
	return all
}

// forever is more often than any client retries.
const forever = 99

func textScenarios() map[string]Scenario {
	return map[string]Scenario{
		"text":     {Say(Text("Hello from the scripted model."))},
		"thinking": {Say(Thinking("Let me think about it."), Text("Thought it through."))},
		"slowtext": {Always(Reply{
			Blocks: []Block{Text(strings.Repeat("word ", 60))},
			Chunks: 60, ChunkDelay: 100 * time.Millisecond,
		})},
		"maxtok":  {Always(Reply{Blocks: []Block{Text("truncated answ")}, Stop: "max_tokens"})},
		"refusal": {Always(Reply{Blocks: []Block{Text("I cannot")}, Stop: "refusal"})},
		"echo": {func(c Call) Reply {
			return Reply{Blocks: []Block{Text(c.Arg)}}
		}},
	}
}

func shellScenarios() map[string]Scenario {
	loop := make(Scenario, 12)
	for i := range loop {
		loop[i] = Say(bash("echo loop"+strconv.Itoa(i), "loop", nil))
	}
	background := Args{"run_in_background": true}
	return map[string]Scenario{
		"bash":      {Say(Text("I will run a command."), bash("echo hi-from-bash", "say hi", nil)), Say(Text("Bash done."))},
		"bashwrite": {Say(bash("touch made-by-bash && echo ok", "touch", nil)), Say(Text("Bashwrite done."))},
		"bashfail":  {Say(bash("echo oops >&2; exit 7", "fail", nil)), Say(Text("Bashfail done."))},
		"bashslow1": {Say(bash("sleep 1; echo slow1", "slow", nil)), Say(Text("slow1 done."))},
		"slowbash":  {Say(Text("Running slow."), bash("sleep 20; echo slept", "sleep", nil)), Say(Text("Slept."))},
		"long35": {
			Say(bash("for i in $(seq 1 34); do sleep 1; done; echo slept", "long", Args{"timeout": 60000})),
			Say(Text("Long done.")),
		},
		"prog":   {Say(bash("for i in 1 2 3 4 5; do echo $i; sleep 1; done", "progress", nil)), Say(Text("Prog done."))},
		"bgbash": {Say(bash("sleep 1; echo bg-output", "bg", background)), Say(Text("Background started.")), Say(Text("Notified."))},
		"bglong": {Say(bash("sleep 30; echo bg-output", "bg long", background)), Say(Text("Background long started.")), Say(Text("Notified."))},
		"loop":   loop,
		// run executes the marker's argument as a shell command.
		"run": {
			func(c Call) Reply { return Reply{Blocks: []Block{bash(c.Arg, "run", nil)}} },
			Say(Text("Run done.")),
		},
		"parallel": {
			func(c Call) Reply {
				return Reply{Blocks: []Block{
					Text("Three at once."),
					bash("sleep 0.3; echo one", "one", nil),
					bash("echo two", "two", nil),
					ToolUse("Read", Args{"file_path": c.file("seed.txt")}),
				}}
			},
			Say(Text("Parallel done.")),
		},
	}
}

func fileScenarios() map[string]Scenario {
	return map[string]Scenario{
		"rwe": {
			onFile("Write", "f1.txt", Args{"content": "alpha\nbeta\n"}),
			onFile("Read", "f1.txt", nil),
			onFile("Edit", "f1.txt", Args{"old_string": "beta", "new_string": "gamma"}),
			Say(ToolUse("Glob", Args{"pattern": "*.txt"})),
			func(c Call) Reply {
				return Reply{Blocks: []Block{ToolUse("Grep", Args{"pattern": "gamma", "path": c.WorkDir})}}
			},
			Say(Text("Files done.")),
		},
		"write":     {onFile("Write", "w1.txt", Args{"content": "w\n"}), Say(Text("Write done."))},
		"planwrite": {onFile("Write", "planned.txt", Args{"content": "x"}), Say(Text("Planwrite done."))},
	}
}

func agentScenarios() map[string]Scenario {
	foreground, background := Args{"run_in_background": false}, Args{"run_in_background": true}
	const general = "general-purpose"
	return map[string]Scenario{
		"agent":       {subagent("nested job", "Do the nested job [[scn:bash]]", general, nil), Say(Text("Agent done."))},
		"agentslow":   {subagent("slow nested", "Slow [[scn:slowbash]]", general, foreground), Say(Text("Agent slow done."))},
		"agentcustom": {subagent("custom job", "Custom [[scn:bash]]", "rev", nil), Say(Text("Agent done."))},
		"agentbg": {
			subagent("bg nested job", "Do the nested job [[scn:bashslow1]]", general, background),
			Say(Text("Agent launched.")), Say(Text("Agent notification handled.")),
		},
		"agentfg":     {subagent("fg nested job", "Do the nested job [[scn:bash]]", general, foreground), Say(Text("Agent fg done."))},
		"agentfgdeny": {subagent("fg nested job", "Do the nested job [[scn:bashwrite]]", general, foreground), Say(Text("Agent fg done."))},
	}
}

func mcpScenarios() map[string]Scenario {
	call := func(tool string, input Args, done string) Scenario {
		return Scenario{
			func(c Call) Reply {
				return Reply{Blocks: []Block{ToolUse(c.ToolLike("^mcp__.*"+tool, "mcp__srv__"+tool), input)}}
			},
			Say(Text(done)),
		}
	}
	return map[string]Scenario{
		"mcp":       call("echo", Args{"x": "hey"}, "MCP done."),
		"mcpslow":   call("slow", Args{}, "MCP slow done."),
		"mcpboom":   call("boom", Args{}, "MCP boom done."),
		"mcpelicit": call("elicit", Args{}, "MCP elicit done."),
	}
}

func dialogScenarios() map[string]Scenario {
	question := Args{
		"question": "Which color?", "header": "Color", "multiSelect": false,
		"options": []Args{{"label": "Red", "description": "r"}, {"label": "Blue", "description": "b"}},
	}
	return map[string]Scenario{
		"ask": {Say(ToolUse("AskUserQuestion", Args{"questions": []Args{question}})), Say(Text("Asked."))},
		"plan": {
			Say(Text("Here is the plan."), ToolUse("ExitPlanMode", Args{"plan": "1. do it\n2. done"})),
			Say(bash("echo after-plan", "x", nil)),
			Say(Text("Plan done.")),
		},
		"enterplan": {Say(ToolUse("EnterPlanMode", Args{})), Say(Text("Entered plan."))},
	}
}

func failureScenarios() map[string]Scenario {
	fail := func(f Fault, then string) Scenario {
		return Scenario{Always(Reply{Fault: &f, Blocks: []Block{Text(then)}})}
	}
	return map[string]Scenario{
		"err429":        fail(Fault{Status: 429, Type: "rate_limit_error", Times: 2, RetryAfter: time.Second}, "Recovered from 429."),
		"err500":        fail(Fault{Status: 500, Type: "api_error", Times: 2}, "Recovered from 500."),
		"err529":        fail(Fault{Status: 529, Type: "overloaded_error", Times: 2}, "Recovered from 529."),
		"err400":        fail(Fault{Status: 400, Type: "invalid_request_error", Times: forever}, "never"),
		"err403":        fail(Fault{Status: 403, Type: "permission_error", Times: forever}, "never"),
		"err413":        fail(Fault{Status: 413, Type: "request_too_large", Times: forever}, "never"),
		"err401":        fail(Fault{Status: 401, Type: "authentication_error", Times: forever}, "never"),
		"err500forever": fail(Fault{Status: 500, Type: "api_error", Times: forever}, "never"),
		"hang":          {Always(Reply{Hang: true})},
		"reset":         fail(Fault{Times: forever}, "never"),
		"html":          {Always(Reply{Raw: &Raw{ContentType: "text/html", Body: "<html><body>502 Bad Gateway</body></html>"}})},
		"empty":         {Always(Reply{Raw: &Raw{}})},
		"garbage":       {Always(Reply{Raw: &Raw{Body: "event: message_start\ndata: {\"type\":\"message_start\",\n\nnot an event\n\n"}})},
		// partial breaks off once; the retry gets it all.
		"partial": {Always(Reply{
			Blocks: []Block{Text("This answer broke off once.")}, Chunks: 4, Cut: &Cut{After: 2, Times: 1, Stall: time.Second}, // for the client to read what came
		})},
	}
}

func toolScenarios() map[string]Scenario {
	structured := func(answer any) Step {
		return func(c Call) Reply {
			return Reply{Blocks: []Block{ToolUse(c.ToolLike("StructuredOutput", "StructuredOutput"), Args{"answer": answer})}}
		}
	}
	return map[string]Scenario{
		"structured":    {structured("42"), Say(Text("Structured done."))},
		"structuredbad": {structured(42), structured("fixed"), Say(Text("Structured done."))},
		"badtool":       {Say(ToolUse("NoSuchTool", Args{"a": 1})), Say(Text("badtool done."))},
		"badinput":      {Say(ToolUse("Bash", Args{"cmd": "nope"})), Say(Text("badinput done."))},
		"skill":         {Say(ToolUse("Skill", Args{"skill": "nosuch"})), Say(Text("skill done."))},
		"toolsearch": {
			Say(ToolUse("ToolSearch", Args{"query": "select:AskUserQuestion", "max_results": 5})),
			Say(Text("ts done")),
		},
		"todo": {
			func(c Call) Reply {
				name := c.Tool("TodoWrite", "TaskCreate")
				input := Args{"todos": []Args{{"content": "A", "status": "in_progress", "activeForm": "Doing A"}}}
				if name == "TaskCreate" {
					input = Args{"subject": "A", "description": "do A", "activeForm": "Doing A"}
				}
				return Reply{Blocks: []Block{ToolUse(name, input)}}
			},
			Say(Text("Todo done.")),
		},
	}
}

// with returns base and more in one map; more wins.
func with(base, more Args) Args {
	out := make(Args, len(base)+len(more))
	maps.Copy(out, base)
	maps.Copy(out, more)
	return out
}

func bash(command, description string, more Args) Block {
	return ToolUse("Bash", with(Args{"command": command, "description": description}, more))
}

func onFile(tool, name string, more Args) Step {
	return func(c Call) Reply {
		return Reply{Blocks: []Block{ToolUse(tool, with(Args{"file_path": c.file(name)}, more))}}
	}
}

func subagent(description, prompt, kind string, more Args) Step {
	return func(c Call) Reply {
		input := with(Args{"description": description, "prompt": prompt, "subagent_type": kind}, more)
		return Reply{Blocks: []Block{ToolUse(c.Tool("Agent", "Task"), input)}}
	}
}

func (c Call) file(name string) string { return filepath.Join(c.WorkDir, name) }

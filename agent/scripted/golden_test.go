package scripted_test

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
)

// A trace is recorded traffic between the vendor's SDK and Claude Code 2.1.329.
// The golden tests play the host's half of one against a script that stands for
// the model, and compare the kinds and the order of the agent's frames.
type trace struct {
	args   []string
	host   []hostLine
	agent  []frame
	tasks  []string // ids, in order
	code   int
	exits  bool
	signal error
}

// hostLine is a line of the host's, and after how many of the agent's frames it
// was written. An answer names the agent's request by its number.
type hostLine struct {
	after  int
	answer int // which request of the agent's this answers; -1: none
	line   map[string]any
	raw    string
	err    error // end of stdin, or a signal
}

func readTrace(t *testing.T, name string) trace {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name+".ndjson"))
	require.NoError(t, err)
	defer func() { require.NoError(t, file.Close()) }()
	var tr trace
	requests := map[string]int{}
	in := bufio.NewScanner(file)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var l struct {
			Dir string
			Msg map[string]any
		}
		require.NoError(t, json.Unmarshal(in.Bytes(), &l))
		msg := frame(l.Msg)
		switch l.Dir {
		case "cli->sdk":
			if msg.str("type") == "control_request" {
				requests[msg.str("request_id")] = len(requests)
			}
			if kind(msg) == "system/task_started" {
				tr.tasks = append(tr.tasks, msg.str("task_id"))
			}
			tr.agent = append(tr.agent, msg)
		case "sdk->cli":
			h := hostLine{after: len(tr.agent), answer: -1, line: l.Msg}
			if msg.str("type") == "control_response" {
				if n, ok := requests[msg.str("response", "request_id")]; ok {
					h.answer = n
				}
			}
			if raw, ok := msg["raw"].(string); ok {
				h.raw, h.line = raw, nil
			}
			tr.host = append(tr.host, h)
		default:
			tr.meta(msg)
		}
	}
	require.NoError(t, in.Err())
	return tr
}

func (tr *trace) meta(msg frame) {
	switch msg.str("event") {
	case "spawn":
		args, _ := msg["args"].([]any)
		for _, a := range args {
			tr.args = append(tr.args, a.(string))
		}
	case "stdin_end":
		if !tr.exits && tr.signal == nil {
			tr.host = append(tr.host, hostLine{after: len(tr.agent), answer: -1, err: io.EOF})
		}
	case "kill SIGTERM":
		tr.signal = agent.ErrTerminated
	case "kill SIGINT":
		tr.signal = agent.ErrInterrupted
	case "exit":
		tr.exits = true
		if code, ok := msg["code"].(float64); ok {
			tr.code = int(code)
		}
	}
	if tr.signal != nil && strings.HasPrefix(msg.str("event"), "kill") {
		tr.host = append(tr.host, hostLine{after: len(tr.agent), answer: -1, err: tr.signal})
	}
}

// play makes p's host write tr's lines, each after as many frames as in the
// trace, in the same order.
func (tr *trace) play(p *tape, settle time.Duration) {
	var asked []string
	var names []string // task ids of the trace and of this run, in turns
	step := func() {
		for len(tr.host) > 0 && tr.host[0].after <= len(p.frames) {
			h := tr.host[0]
			if h.answer >= len(asked) {
				return
			}
			tr.host = tr.host[1:]
			switch {
			case h.err != nil:
				p.errAt(p.now+settle, h.err)
			case h.line == nil:
				p.sendAt(p.now+settle, h.raw)
			case h.answer >= 0:
				h.line["response"].(map[string]any)["request_id"] = asked[h.answer]
				p.sendAt(p.now+settle, h.line)
			default:
				b, err := json.Marshal(h.line)
				require.NoError(p.t, err)
				p.sendAt(p.now+settle, strings.NewReplacer(names...).Replace(string(b)))
			}
		}
	}
	p.host = func(f frame) {
		if f.str("type") == "control_request" {
			asked = append(asked, f.str("request_id"))
		}
		if id := f.str("task_id"); kind(f) == "system/task_started" && len(names)/2 < len(tr.tasks) {
			names = append(names, tr.tasks[len(names)/2], id)
		}
		step()
	}
	step()
}

// golden is a trace and the script of its model.
type golden struct {
	trace  string
	script string
	env    []string
	args   []string // instead of the trace's
	// races are frames whose place in the trace is a matter of luck: they are
	// compared as a set.
	races []string
	exit  *agent.Exit
}

func (g golden) run(t *testing.T) *tape {
	t.Helper()
	return g.with(t, (*scripted.Agent).Serve)
}

func (g golden) with(t *testing.T, serve func(*scripted.Agent, agent.Launch, agent.Port) agent.Exit) *tape {
	t.Helper()
	tr := readTrace(t, g.trace)
	p := newTape(t)
	tr.play(p, time.Millisecond)
	args := tr.args
	if g.args != nil {
		args = g.args
	}
	env := g.env
	if len(tr.args) > 0 { // the SDK started it; else a plain process did
		env = append(slices.Clone(env), "CLAUDE_CODE_SDK_READS_SESSION_STATE=1")
	}
	a := scripted.New(
		scripted.WithScript(parse(t, g.script)),
		scripted.WithEffect(func(string, string) error { return nil }),
	)
	exit := serve(a, agent.Launch{Args: args, Env: env, Dir: "/work", Seed: 7}, p)
	require.False(t, p.stuck, "the agent waits for what the trace does not have:\n%s", strings.Join(kinds(p.frames), "\n"))

	race := func(k string) bool {
		return slices.ContainsFunc(g.races, func(r string) bool { return strings.HasPrefix(k, r) })
	}
	want, got := kinds(tr.agent), kinds(p.frames)
	require.Equal(t, without(want, race), without(got, race))
	for _, r := range g.races {
		count := func(k []string) (n int) {
			for _, s := range k {
				if strings.HasPrefix(s, r) {
					n++
				}
			}
			return n
		}
		require.Equal(t, count(want), count(got), "frames %q", r)
	}
	for _, path := range telling() {
		require.Equal(t, values(tr.agent, path), values(p.frames, path), "values of %s", strings.Join(path, "."))
	}
	if g.exit != nil {
		require.Equal(t, *g.exit, exit)
	} else {
		require.Equal(t, agent.Exit{Code: tr.code}, exit)
	}
	return p
}

// telling are the members whose values must be those of the trace.
func telling() [][]string {
	return [][]string{
		{"is_error"}, {"num_turns"}, {"stop_reason"}, {"terminal_reason"}, {"result_index"}, {"queued_turn_count"},
		{"permission_denials"}, {"structured_output"}, {"user_message_uuid"}, {"user_message_uuids"}, {"aborted"},
		{"origin", "kind"}, {"errors"}, {"isReplay"}, {"isSynthetic"}, {"command_uuid"}, {"sdk_host_only"},
		{"response", "error"}, {"response", "error_code"}, {"response", "response", "still_queued"},
		{"response", "response", "added"}, {"response", "response", "removed"},
		{"request", "tool_name"}, {"request", "display_name"}, {"request", "callback_id"},
		{"request", "decision_reason"}, {"request", "requires_user_interaction"},
		{"request", "input", "hook_event_name"}, {"request", "input", "stop_hook_active"},
		{"request", "input", "permission_mode"}, {"request", "input", "agent_type"},
		{"request", "server_name"}, {"request", "message", "method"}, {"request", "message", "id"},
		{"request", "message", "params", "name"}, {"request", "message", "params", "requestId"},
		{"request", "message", "params", "reason"}, {"request", "message", "params", "_meta", "progressToken"},
		{"subagent_type"}, {"task_description"}, {"is_backgrounded"}, {"task_type"}, {"status"}, {"patch", "status"},
		{"permissionMode"}, {"attempt"}, {"error_status"}, {"retry_delay_ms"}, {"deferred_tool_use", "name"},
		{"level"}, {"tag"}, {"prevent_continuation"}, {"event", "type"}, {"event", "delta", "type"},
	}
}

// values lists what frames of a kind carry at a path, sorted: order is compared
// elsewhere.
func values(frames []frame, path []string) []string {
	var out []string
	for _, f := range frames {
		v := f.get(path...)
		if v == nil || v == "" {
			continue
		}
		if denials, ok := v.([]any); ok && path[0] == "permission_denials" {
			v = len(denials) // their ids differ
		}
		b, err := json.Marshal(v)
		if err != nil {
			b = []byte(err.Error())
		}
		out = append(out, f.str("type")+" "+string(b))
	}
	slices.Sort(out)
	return out
}

func without(list []string, drop func(string) bool) []string {
	return slices.DeleteFunc(slices.Clone(list), drop)
}

const (
	sayHello = `
turns:
- steps: [text: Hello from the fake model.]
default: [text: Hello from the fake model.]
`
	// bashWrite is a command that asks, bash one that is known to be harmless.
	bashWrite = `
turns:
- steps:
  - tool_use: {name: Bash, input: {command: touch made, description: touch}, result: ok, gate: ask}
  - text: Bashwrite done.
`
	bash = `
turns:
- steps:
  - text: I will run a command.
  - tool_use: {name: Bash, input: {command: echo hi, description: say hi}, result: hi, gate: allow}
  - text: Bash done.
`
	slowBash = `
turns:
- steps:
  - text: Running slow.
  - tool_use: {name: Bash, input: {command: sleep 20, description: sleep}, takes: 2500ms}
default: [text: Hello from the fake model.]
`
	slowText = `
turns:
- steps:
  - partial: {text: word word word word, chunk: 5, pause: 1s}
default: [text: Hello from the fake model.]
`
	prog = `
turns:
- steps:
  - tool_use: {name: Bash, input: {command: for, description: progress}, takes: 5s, result: "5"}
  - text: Prog done.
`
)

func TestGolden(t *testing.T) {
	t.Parallel()
	for _, g := range goldens() {
		t.Run(g.trace, func(t *testing.T) {
			t.Parallel()
			served := g.run(t)
			played := g.with(t, openAndPlay)
			require.Equal(t, served.out.String(), played.out.String())
		})
	}
}

// openAndPlay is Serve by somebody who opens the conversation and plays it.
func openAndPlay(a *scripted.Agent, l agent.Launch, port agent.Port) agent.Exit {
	p := port.(*tape)
	talk := a.Open(a, l, p)
	for {
		exit, ended := talk.Play()
		if ended {
			return exit
		}
		if len(p.in) == 0 {
			p.stuck = true
			p.errAt(p.now, agent.ErrKilled)
		}
		p.now = max(p.now, p.in[0].at)
	}
}

func TestAProgramThatEmbedsAnotherIsServed(t *testing.T) {
	t.Parallel()
	outer := struct{ *scripted.Agent }{scripted.New()}
	require.Nil(t, outer.Open(outer, agent.Launch{}, newTape(t)), "its Serve may be its own")
	require.NotNil(t, outer.Open(outer.Agent, agent.Launch{}, newTape(t)))
}

func goldens() []golden {
	asking := []string{"--permission-prompt-tool=stdio"}
	return []golden{
		{trace: "text", script: sayHello},
		{trace: "thinking", script: `
turns:
- steps: [thinking: Let me think about it., text: Thought it through.]
`},
		{trace: "bash_allow", script: bashWrite},
		{trace: "bash_nocb", script: bashWrite},
		{trace: "bash_cbthrow", script: bashWrite},
		{trace: "bash_badresp", script: bashWrite},
		{trace: "raw_oldperm", script: bashWrite, args: asking},
		{trace: "bash_setmode", script: `
default:
- tool_use: {name: Write, input: {file_path: w1.txt, content: w}, result: written}
- text: Write done.
`},
		{trace: "hook_pre_deny", script: bashWrite},
		{trace: "hook_pre_allow", script: bashWrite},
		{trace: "hook_pre_modify", script: bashWrite},
		{trace: "hook_pre_ask", script: bash},
		{trace: "hook_pre_defer", script: bashWrite},
		{trace: "hook_pre_continue_false", script: bash},
		{trace: "hook_pre_throw", script: bash},
		{trace: "hook_pre_timeout", script: bash},
		{trace: "hook_async", script: bash},
		{trace: "hook_post_block", script: bash},
		{trace: "hook_permreq", script: bashWrite},
		{trace: "hook_permreq_deny", script: bashWrite},
		{trace: "permreq_race_hookfirst", script: bashWrite},
		{trace: "hook_stop_block", script: sayHello + "on_stop_block: [text: Hello from the fake model.]"},
		{trace: "hook_ups_block", script: sayHello},
		{trace: "hooks_fail", script: `
turns:
- steps:
  - tool_use: {name: Bash, input: {command: exit 7, description: fail}, error: "Exit code 7\noops", gate: ask}
  - text: Bashfail done.
`},
		{trace: "parallel", script: `
turns:
- steps:
  - text: Three at once.
  - parallel:
    - tool_use: {name: Bash, input: {command: one}, takes: 300ms, result: one}
    - tool_use: {name: Bash, input: {command: two}, takes: 30ms, result: two}
    - tool_use: {name: Read, input: {file_path: seed.txt}, result: seed}
  - text: Parallel done.
`},
		{trace: "mcp", script: `
turns:
- steps:
  - mcp_call: {server: srv, tool: echo, arguments: {x: hey}}
  - text: MCP done.
`},
		{trace: "mcp_interrupt", script: `
turns:
- steps:
  - mcp_call: {server: srv, tool: slow}
  - text: MCP done.
`},
		{trace: "interrupt_stream", script: slowText},
		{trace: "interrupt_queued", script: slowText},
		{trace: "interrupt_tool", script: slowBash},
		{trace: "interrupt_perm", script: bashWrite},
		{trace: "interrupt_idle", script: sayHello},
		{trace: "siginttool", script: slowBash},
		{trace: "sigtermtool", script: slowBash},
		{trace: "queue_midturn", script: prog},
		{trace: "raw_eof_midturn", script: prog, args: []string{"--permission-mode=bypassPermissions"}},
		{trace: "dup_uuid", script: sayHello},
		{trace: "replay", script: sayHello},
		{trace: "two_at_once", script: sayHello},
		{trace: "noquery", script: sayHello},
		{trace: "raw_noinit", script: sayHello},
		{trace: "raw_unknowntype", script: sayHello},
		{trace: "raw_bad", script: sayHello},
		{trace: "raw_badrole", script: sayHello},
		{trace: "raw_eof_perm", script: bashWrite, args: asking},
		{trace: "agentfg", script: `
turns:
- steps:
  - agent:
      description: fg nested job
      prompt: Do the nested job
      report: Bash done.
      steps:
      - text: I will run a command.
      - tool_use: {name: Bash, input: {command: echo hi, description: say hi}, result: hi, gate: allow}
      - text: Bash done.
  - text: Agent fg done.
`, races: []string{"system/task_progress"}},
		{trace: "subagent_kill_interrupt", script: `
turns:
- steps:
  - agent:
      description: slow nested
      prompt: Slow
      steps:
      - text: Running slow.
      - tool_use: {name: Bash, input: {command: sleep 20, description: sleep}, takes: 20s}
`, races: []string{"system/task_progress"}},
		{trace: "agentbg", script: `
turns:
- steps:
  - agent:
      description: bg nested job
      prompt: Do the nested job
      background: true
      report: slow1 done.
      steps:
      - delay: 50ms
      - tool_use: {name: Bash, input: {command: sleep 1, description: slow}, takes: 1s, result: slow1, gate: allow}
      - text: slow1 done.
      then: [text: Agent notification handled.]
  - delay: 10ms
  - text: Agent launched.
  - delay: 100ms
`, races: []string{"system/task_progress"}},
		{trace: "bgbash", script: `
turns:
- steps:
  - shell: {command: sleep 1, description: bg, gate: allow, takes: 1s, then: [text: Notified.]}
  - text: Background started.
`},
		{trace: "bgstop", script: `
turns:
- steps:
  - shell: {command: sleep 30, description: bg long, gate: allow, takes: 30s}
  - text: Background long started.
`, races: []string{"system/session_state_changed idle"}},
		{trace: "structured", script: `
turns:
- steps:
  - tool_use: {name: StructuredOutput, input: {answer: "42"}, result: Structured output provided successfully}
  - result: {text: '{"answer":"42"}', structured_output: {answer: "42"}, stop_reason: tool_use}
`},
		{trace: "maxturns", script: `
default:
- tool_use: {name: Bash, input: {command: loop0}, result: loop0, gate: allow}
- tool_use: {name: Bash, input: {command: loop1}, result: loop1, gate: allow}
- text: never said
`},
		{trace: "maxbudget", script: `
default:
- tool_use: {name: Bash, input: {command: loop0}, result: loop0, gate: allow}
- tool_use: {name: Bash, input: {command: loop1}, result: loop1, gate: allow}
- text: never said
`},
		{trace: "err429", script: `
turns:
- steps:
  - api_retry: {attempt: 1, delay: 1137ms, status: 429, error: rate_limit}
  - api_retry: {attempt: 2, delay: 1240ms, status: 429, error: rate_limit}
  - text: Recovered from 429.
`},
		{trace: "err400", script: `
turns:
- steps:
  - text: "API Error: 400 fake 400"
  - result: {is_error: true, api_error_status: 400, stop_reason: stop_sequence}
`},
		{trace: "elicitstdio", script: `
turns:
- steps:
  - tool_use:
      name: mcp__std__elicit
      result: got ${answer}
      steps: [elicitation: {server: std, message: "Your name?"}]
  - text: MCP elicit done.
`},
		{trace: "enterplan", script: `
turns:
- steps:
  - tool_use: {name: EnterPlanMode, result: Entered plan mode.}
  - text: Entered plan.
`},
		{trace: "agent_fwd", script: `
turns:
- steps:
  - agent:
      description: nested job
      prompt: Do the nested job
      background: true
      report: Bash done.
      steps:
      - delay: 50ms
      - text: I will run a command.
      - tool_use: {name: Bash, input: {command: echo hi, description: say hi}, result: hi, gate: allow, takes: 30ms}
      - text: Bash done.
      then: [partial: {text: Script over (agent step 2)., chunk: 14}]
  - delay: 10ms
  - partial: {chunks: ["Agent ", done.]}
  - delay: 60ms
`, races: []string{"stream_event message_delta", "stream_event message_stop", "stream_event content_block_delta"}},
		{trace: "hooks_all_agent", script: `
turns:
- steps:
  - agent:
      description: nested job
      prompt: Do the nested job
      background: true
      report: Bash done.
      steps:
      - delay: 5ms
      - text: I will run a command.
      - tool_use: {name: Bash, input: {command: echo hi, description: say hi}, result: hi, gate: allow, takes: 60ms}
      - text: Bash done.
      then: [text: Script over (agent step 2).]
  - delay: 10ms
  - text: Agent done.
  - delay: 5ms
`},
		{trace: "ask", script: `
turns:
- steps:
  - tool_use: {name: AskUserQuestion, input: {questions: []}, result: answered}
  - text: Asked.
`},
		{trace: "plan", script: `
turns:
- steps:
  - text: Here is the plan.
  - tool_use: {name: ExitPlanMode, result: User has approved exiting plan mode.}
  - tool_use: {name: Bash, input: {command: echo after}, result: after-plan, gate: allow}
  - text: Plan done.
`},
		{trace: "controls", script: sayHello},
		{trace: "compact", script: `
turns:
- steps: [text: Hello from the fake model.]
- when: /compact
  steps: [compact: {summary: Script over.}]
default: [text: Hello from the fake model.]
`},
	}
}

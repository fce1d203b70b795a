package scripted_test

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
)

func TestChoice(t *testing.T) {
	t.Parallel()
	const script = `
turns:
- steps: [text: first]
- when: weather
  steps: [text: "sunny, ${prompt} ${turn}"]
- match: ^\d+$
  steps: [text: a number]
- steps: [text: second]
default: [text: the rest]
resumed:
- steps: [text: again]
`
	say := func(args ...string) string {
		p := newTape(t)
		p.send(initialize(nil))
		prompts := []string{"the weather", "a", "42", "b", "c", "weather"}
		for _, s := range prompts {
			p.send(user(s))
		}
		p.closing(len(prompts))
		require.Equal(t, agent.Exit{}, p.serve(script, args...))
		var said []string
		for _, r := range p.pick("result") {
			said = append(said, r.str("result"))
		}
		return strings.Join(said, "; ")
	}
	require.Equal(t, "sunny, the weather 0; first; a number; second; the rest; sunny, weather 5", say())
	require.Equal(t, "again; the rest; the rest; the rest; the rest; the rest", say("--resume", "some-id"))
}

func TestEchoWithoutScript(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(user("no initialize"))
	p.closing(1)
	require.Equal(t, agent.Exit{}, p.serve(""))
	require.Equal(t, "no initialize", p.pick("result")[0].str("result"))
}

func TestDemo(t *testing.T) {
	t.Parallel()
	for _, permitted := range []bool{true, false} {
		p := newTape(t)
		p.send(initialize(nil))
		for _, s := range []string{"hi", "list the files", "bye"} {
			p.send(user(s))
		}
		p.closing(3)
		args := []string{"--include-partial-messages"}
		if permitted {
			args = append(args, "--permission-prompt-tool=stdio")
		}
		p.answering("can_use_tool", func(f frame) any {
			return success(f.str("request_id"), map[string]any{"behavior": "allow"})
		})
		require.Equal(t, "scripted", scripted.New().AgentName())
		exit := scripted.New().Serve(agent.Launch{Args: args, Seed: 1}, p)
		require.Equal(t, agent.Exit{}, exit)
		require.Len(t, p.pick("result/success"), 3)
		require.Len(t, p.pick("assistant thinking"), 3)
		require.NotEmpty(t, p.pick("stream_event content_block_delta"))
		require.Len(t, p.pick("control_request can_use_tool"), map[bool]int{true: 2}[permitted])
		require.Len(t, p.pick("system/permission_denied"), map[bool]int{false: 2}[permitted])
	}
}

// busy is a script with something of everything that takes time.
const busy = `
session_state: true
partials: true
turns:
- steps:
  - thinking: hm
  - partial: {text: some words in pieces, chunk: 5, pause: 10ms}
  - tool_use: {id: t1, name: Bash, input: {command: a}, gate: ask, takes: 20ms, effect: n}
  - parallel:
    - tool_use: {id: t2, name: Bash, input: {command: b}, gate: ask, takes: 30ms, effect: n}
    - tool_use: {id: t3, name: Bash, input: {command: c}, gate: ask, takes: 10ms, effect: n}
    - mcp_call: {id: t4, server: srv, tool: echo, arguments: {x: 1}}
  - agent:
      prompt: nested
      report: done
      steps:
      - delay: 5ms
      - tool_use: {id: t5, name: Bash, input: {command: d}, gate: ask, takes: 20ms, effect: n}
  - agent:
      prompt: beside
      background: true
      report: done
      steps:
      - tool_use: {id: t6, name: Bash, input: {command: e}, gate: ask, takes: 50ms, effect: n}
      then: [text: noted]
  - shell: {command: sleep, description: s, gate: allow, takes: 40ms}
  - delay: 20ms
  - text: done
`

// hostOf answers everything a little later.
func hostOf(p *tape, later time.Duration) {
	hooks := map[string]any{}
	for _, e := range []string{"UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SubagentStart", "SubagentStop"} {
		hooks[e] = []any{map[string]any{"hookCallbackIds": []any{"h_" + e}}}
	}
	p.send(initialize(map[string]any{"hooks": hooks, "sdkMcpServers": []any{"srv"}}))
	answers := map[string]func(f frame) any{
		"can_use_tool":  func(frame) any { return map[string]any{"behavior": "allow"} },
		"hook_callback": func(frame) any { return map[string]any{} },
		"mcp_message": func(f frame) any {
			result := map[string]any{"content": []any{map[string]any{"type": "text", "text": "ok"}}}
			if f.str("request", "message", "method") == "tools/list" {
				result = map[string]any{"tools": []any{map[string]any{"name": "echo"}}}
			}
			return map[string]any{"mcp_response": map[string]any{
				"jsonrpc": "2.0", "id": f.get("request", "message", "id"), "result": result,
			}}
		},
	}
	for subtype, answer := range answers {
		p.answering(subtype, func(f frame) any {
			p.sendAt(p.now+later, success(f.str("request_id"), answer(f)))
			return nil
		})
	}
}

func TestDeterminism(t *testing.T) {
	t.Parallel()
	run := func(seed uint64) (string, agent.Exit) {
		p := newTape(t)
		hostOf(p, 3*time.Millisecond)
		p.send(userID("11111111-0000-4000-8000-000000000000", "go"))
		p.sendAt(45*time.Millisecond, userID("22222222-0000-4000-8000-000000000000", "more"))
		p.errAt(time.Second, errEOF)
		a := scripted.New(scripted.WithScript(parse(t, busy)), scripted.WithEffect(func(string, string) error { return nil }))
		exit := a.Serve(agent.Launch{Args: []string{"--permission-prompt-tool=stdio"}, Dir: "/w", Seed: seed}, p)
		require.False(t, p.stuck)
		return p.out.String(), exit
	}
	one, exit := run(1)
	require.Equal(t, agent.Exit{}, exit)
	for range 5 {
		again, _ := run(1)
		require.Equal(t, one, again)
	}
	other, _ := run(2)
	require.NotEqual(t, one, other)
	require.Equal(t, strings.Count(one, "\n"), strings.Count(other, "\n"))
}

// The engine lives with a port that tells no time: what differs is only how
// long a delay lasts that a line interrupts.
func TestPortWithoutTime(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	hostOf(p, 0)
	p.send(user("go"))
	p.errAt(time.Hour, errEOF)
	a := scripted.New(scripted.WithScript(parse(t, busy)), scripted.WithEffect(func(string, string) error { return nil }))
	exit := a.Serve(agent.Launch{Args: []string{"--permission-prompt-tool=stdio"}}, struct{ agent.Port }{p})
	require.Equal(t, agent.Exit{}, exit)
	require.Len(t, p.pick("result/success"), 3)
}

// An interrupt at any moment ends the turn once, leaves no call without its
// result, starts nothing new, and the session goes on.
func TestInterruptAnywhere(t *testing.T) {
	t.Parallel()
	script := parse(t, busy)
	rapid.Check(t, func(r *rapid.T) {
		at := time.Duration(rapid.IntRange(0, 260).Draw(r, "ms")) * time.Millisecond
		later := time.Duration(rapid.IntRange(0, 9).Draw(r, "answer_ms")) * time.Millisecond
		p := newTape(t)
		hostOf(p, later)
		p.send(user("go"))
		p.sendAt(at, control("stop", "interrupt", nil))
		p.sendAt(2*time.Second, user("more"))
		p.errAt(4*time.Second, errEOF)
		var ran []string
		receipt := -1
		a := scripted.New(
			scripted.WithScript(script),
			scripted.WithEffect(func(_, line string) error {
				if receipt >= 0 && p.now < 2*time.Second && !strings.Contains(line, " t6 ") { // the background goes on
					return fmt.Errorf("ran after the receipt: %s", line)
				}
				ran = append(ran, line)
				return nil
			}),
		)
		before := p.host
		p.host = func(f frame) {
			before(f)
			if f.str("response", "request_id") == "stop" {
				receipt = len(p.frames)
			}
		}
		a.Serve(agent.Launch{Args: []string{"--permission-prompt-tool=stdio"}, Seed: 3}, p)
		require.False(r, p.stuck)
		require.NotContains(r, p.out.String(), "ran after the receipt")
		require.Len(r, ran, len(distinct(ran)))

		open := map[string]bool{}
		asked := map[string]bool{}
		turns := 0
		for _, f := range p.frames {
			switch k := kind(f); {
			case k == "assistant tool_use":
				open[block(f).str("id")] = true
			case k == "user tool_result":
				id := block(f).str("tool_use_id")
				require.True(r, open[id], "result of %s without a call", id)
				delete(open, id)
			case f.str("type") == "control_request":
				asked[f.str("request_id")] = true
			case f.str("type") == "control_cancel_request":
				require.True(r, asked[f.str("request_id")])
			case k == "system/init":
				turns++
			case f.str("type") == "result":
				turns--
			}
		}
		require.Empty(r, open)
		require.LessOrEqual(r, len(p.pick("result/error_during_execution")), 1)
		require.Equal(r, "idle", p.frames[len(p.frames)-1].str("state"))
	})
}

func block(f frame) frame {
	return frame(f.get("message", "content").([]any)[0].(map[string]any))
}

func distinct(list []string) map[string]bool {
	set := map[string]bool{}
	for _, s := range list {
		set[s] = true
	}
	return set
}

func TestStop(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(initialize(nil))
	p.send(user("go"))
	p.answering("can_use_tool", func(frame) any {
		p.errAt(p.now, agent.ErrKilled)
		return nil
	})
	exit, ran := effects(p, counted, "--permission-prompt-tool=stdio")
	require.Equal(t, agent.Exit{Signal: "KILL"}, exit)
	require.Empty(t, ran)
	written := p.out.Len()
	require.True(t, bytes.HasSuffix(p.out.Bytes()[:written], []byte("\n")))
	require.Equal(t, "control_request can_use_tool", kind(p.frames[len(p.frames)-1]), "a killed agent writes nothing more")
}

// A port may belong to the goroutine that serves it.
func TestPortStaysOnItsGoroutine(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	hostOf(p, time.Millisecond)
	p.send(user("go"))
	p.errAt(time.Hour, errEOF)
	script := parse(t, busy+"misbehave: {die: {at: after-result, nth: 9}}")
	script.Turns[0].Steps = append(script.Turns[0].Steps,
		scripted.Stderr("x"), &scripted.Flood{Count: 9000, Size: 100}, &scripted.Huge{Bytes: 1 << 20})
	a := scripted.New(
		scripted.WithScript(script),
		scripted.WithEffect(func(string, string) error { return nil }),
	)
	a.Dialect = agent.Claude
	owned := &ownedPort{Port: p, t: t, owner: goroutine()}
	require.Equal(t, agent.Exit{}, a.Serve(agent.Launch{Args: []string{"--permission-prompt-tool=stdio"}}, owned))
	require.Len(t, p.pick("result"), 3)
}

// goroutine names the calling goroutine.
func goroutine() string {
	b := make([]byte, 64)
	return string(bytes.Fields(b[:runtime.Stack(b, false)])[1])
}

type ownedPort struct {
	agent.Port
	t     *testing.T
	owner string
}

func (p *ownedPort) check() {
	if g := goroutine(); g != p.owner {
		p.t.Errorf("called on goroutine %s, served on %s", g, p.owner)
	}
}

func (p *ownedPort) Next(wait time.Duration) ([]byte, error) {
	p.check()
	return p.Port.Next(wait)
}

func (p *ownedPort) Write(b []byte) error {
	p.check()
	return p.Port.Write(b)
}

func (p *ownedPort) Stderr(b []byte) {
	p.check()
	p.Port.Stderr(b)
}

func TestHostGone(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(initialize(nil))
	exit := scripted.New().Serve(agent.Launch{}, broken{p})
	require.Equal(t, agent.Exit{Code: 1}, exit)
}

type broken struct{ agent.Port }

func (broken) Write([]byte) error { return errEOF }

package scripted_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
)

const calm = "turns: [{steps: [text: grüße]}]\n"

func TestInitializeFaults(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		yaml string
		want []string
		at   time.Duration
	}{
		"never":  {"{mode: never}", nil, 0},
		"refuse": {"{mode: refuse, error: go away, code: nope}", []string{"control_response error"}, 0},
		"empty":  {"{mode: empty}", []string{"control_response success"}, 0},
		"twice":  {"{mode: twice}", []string{"control_response success", "control_response success", "system/background_tasks_changed"}, 0},
		"late":   {"{delay: 3s}", []string{"control_response success"}, 3 * time.Second},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newTape(t)
			p.send(initialize(nil))
			p.eof()
			exit := p.serve(calm + "misbehave: {initialize: " + tt.yaml + "}")
			require.Equal(t, agent.Exit{}, exit)
			require.Equal(t, append([]string{}, tt.want...), kinds(p.frames))
			require.Equal(t, tt.at, p.now)
		})
	}
}

func TestRefuseAndIgnore(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(initialize(nil))
	p.send(control("r1", "set_model", map[string]any{"model": "x"}))
	p.send(control("r2", "mcp_status", nil))
	p.send(control("r3", "get_usage", nil))
	p.send(map[string]any{"type": "control_cancel_request", "request_id": "r3"})
	p.eof()
	p.serve("misbehave: {refuse: [set_model], ignore: [mcp_status], answer_delay: 1s}")
	require.Equal(t, []string{"control_response success", "control_response error"}, kinds(p.frames), "the cancelled one is not answered")
	require.Equal(t, "refused", p.frames[1].str("response", "error_code"))
}

func TestDeathAtPoints(t *testing.T) {
	t.Parallel()
	const script = `
turns:
- steps:
  - text: before
  - tool_use: {name: Bash, input: {command: x}, gate: ask}
`
	tests := map[string]struct {
		lines int    // whole lines that were written
		last  string // kind of the last
	}{
		"before-init-response": {0, ""},
		"after-init-response":  {1, "control_response success"},
		"mid-assistant":        {2, "system/init"},
		"pending-permission":   {5, "control_request can_use_tool"},
		"before-result":        {6, "user tool_result"},
		"after-result":         {7, "result/success"},
	}
	for at, tt := range tests {
		t.Run(at, func(t *testing.T) {
			t.Parallel()
			p := newTape(t)
			p.send(initialize(nil))
			p.send(user("go"))
			p.answering("can_use_tool", func(f frame) any {
				return success(f.str("request_id"), map[string]any{"behavior": "allow"})
			})
			exit := p.serve(script+"misbehave: {die: {at: "+at+", code: 3}}", "--permission-prompt-tool=stdio")
			require.Equal(t, agent.Exit{Code: 3}, exit)
			require.Len(t, p.frames, tt.lines)
			if tt.last != "" {
				require.Equal(t, tt.last, kind(p.frames[len(p.frames)-1]))
			}
			require.Equal(t, at == "mid-assistant", p.out.Len() > p.cut, "half a line is left only mid-assistant")
		})
	}
}

func TestDeathByLinesAndLife(t *testing.T) {
	t.Parallel()
	for lines := 1; lines <= 4; lines++ {
		p := newTape(t)
		p.send(initialize(nil))
		p.send(user("go"))
		exit := p.serve(calm + fmt.Sprintf("misbehave: {die: {lines: %d, signal: KILL}}", lines))
		require.Equal(t, agent.Exit{Signal: "KILL"}, exit)
		require.Len(t, p.frames, lines)
	}
	p := newTape(t)
	p.send(initialize(nil))
	p.send(user("go"))
	p.closing(1)
	exit := p.serve(calm+"misbehave: {die: {lines: 2, only: fresh}}", "--resume=00000000-0000-4000-8000-000000000001")
	require.Equal(t, agent.Exit{}, exit)
	require.Equal(t, "00000000-0000-4000-8000-000000000001", p.pick("result")[0].str("session_id"))

	p = newTape(t)
	p.send(initialize(nil))
	p.send(user("one"))
	p.send(user("two"))
	exit = p.serve("misbehave: {die: {at: after-result, nth: 2, code: 9}}")
	require.Equal(t, agent.Exit{Code: 9}, exit)
	require.Len(t, p.pick("result"), 2)
}

// Whatever the pieces and the line ends, the text between them is the same.
func TestFraming(t *testing.T) {
	t.Parallel()
	plain := play(t, calm)
	lines := bytes.Count(plain, []byte{'\n'})
	for _, split := range []string{"bytes", "runes", "halves"} {
		p := newTape(t)
		w := &writes{Port: p}
		require.Equal(t, agent.Exit{}, serveOn(t, w, p, calm+"misbehave: {split: "+split+"}"))
		require.Equal(t, string(plain), p.out.String())
		require.Greater(t, len(w.all), lines)
		if split == "runes" {
			broken := 0
			for _, b := range w.all {
				if !utf8.Valid(b) {
					broken++
				}
			}
			require.Positive(t, broken)
		}
	}
	crlf := play(t, calm+"misbehave: {newline: crlf}")
	require.Equal(t, lines, bytes.Count(crlf, []byte("\r\n")))
	blank := play(t, calm+"misbehave: {newline: blank}")
	require.Equal(t, lines, bytes.Count(blank, []byte("\n\n")))
	const last = "turns: [{steps: [text: a, result: {}, exit: {}]}]\n"
	missing := play(t, last+"misbehave: {newline: missing}")
	require.Equal(t, string(bytes.TrimSuffix(play(t, last), []byte{'\n'})), string(missing))
	noise := play(t, calm+`misbehave: {noise: ["null", "42", '"x"', "[]", "{broken", ""]}`)
	require.Equal(t, lines*2, bytes.Count(noise, []byte{'\n'}))
	require.Contains(t, string(noise), "\nnull\n")
	require.Contains(t, string(noise), "\n[]\n")
}

// writes keeps every call of Write.
type writes struct {
	agent.Port
	all [][]byte
}

func (w *writes) Write(b []byte) error {
	w.all = append(w.all, bytes.Clone(b))
	return w.Port.Write(b)
}

func serveOn(t *testing.T, port agent.Port, p *tape, script string) agent.Exit {
	t.Helper()
	p.send(initialize(nil))
	p.send(user("go"))
	p.closing(1)
	return scripted.New(scripted.WithScript(parse(t, script))).Serve(agent.Launch{Dir: "/work", Seed: 7}, port)
}

// play plays one turn and returns all that was written.
func play(t *testing.T, script string) []byte {
	t.Helper()
	p := newTape(t)
	require.Equal(t, agent.Exit{}, serveOn(t, p, p, script))
	return p.out.Bytes()
}

func TestRepeatedRequests(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(initialize(nil))
	p.send(user("go"))
	p.closing(1)
	ids := map[string]int{}
	p.answering("can_use_tool", func(f frame) any {
		ids[f.str("request_id")]++
		return success(f.str("request_id"), map[string]any{"behavior": "allow"})
	})
	_, ran := effects(p, counted+"misbehave: {repeat_requests: 2}", "--permission-prompt-tool=stdio")
	require.Len(t, ran, 1)
	require.Len(t, ids, 1)
	for _, n := range ids {
		require.Equal(t, 3, n)
	}
	require.Len(t, p.pick("user tool_result"), 1)
}

func TestEOFAndTerm(t *testing.T) {
	t.Parallel()
	t.Run("exits late", func(t *testing.T) {
		t.Parallel()
		p := newTape(t)
		p.eof()
		require.Equal(t, agent.Exit{}, p.serve("misbehave: {exit_delay: 4s}"))
		require.Equal(t, 4*time.Second, p.now)
	})
	t.Run("stays, ends at TERM", func(t *testing.T) {
		t.Parallel()
		p := newTape(t)
		p.eof()
		p.errAt(time.Minute, agent.ErrTerminated)
		require.Equal(t, agent.Exit{Code: 143}, p.serve("misbehave: {ignore_eof: true}"))
	})
	t.Run("stays, traps TERM, ends at KILL", func(t *testing.T) {
		t.Parallel()
		p := newTape(t)
		p.eof()
		p.errAt(time.Minute, agent.ErrTerminated)
		p.errAt(time.Hour, agent.ErrKilled)
		require.Equal(t, agent.Exit{Signal: "KILL"}, p.serve("misbehave: {ignore_eof: true, trap_term: true}"))
		require.Equal(t, time.Hour, p.now)
	})
	t.Run("TERM when idle", func(t *testing.T) {
		t.Parallel()
		p := newTape(t)
		p.send(initialize(nil))
		p.errAt(time.Second, agent.ErrTerminated)
		require.Equal(t, agent.Exit{Code: 143}, p.serve(calm))
	})
	t.Run("never reads", func(t *testing.T) {
		t.Parallel()
		p := newTape(t)
		p.send(initialize(nil))
		p.errAt(time.Second, agent.ErrTerminated)
		require.Equal(t, agent.Exit{Code: 143}, p.serve("misbehave: {never_read: true}"))
		require.Empty(t, p.frames)
	})
}

func TestDiagnostics(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.eof()
	p.serve("misbehave: {stderr: 1KiB, stdout: 100}")
	require.Equal(t, 1024, p.stderr.Len())
	require.Equal(t, 100, p.out.Len())
}

func TestOddFrames(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(initialize(nil))
	p.send(user("go"))
	p.closing(1)
	p.answering("brand_new", func(f frame) any { return failure(f.str("request_id"), "what?") })
	exit := p.serve(`
turns:
- steps:
  - answer: {id: nobody}
  - cancel: {id: nobody}
  - raw: '{"type":"brand_new"}'
  - raw: 'not json'
  - system: {subtype: brand_new, fields: {x: 1}}
  - message: {fields: {type: brand_new_message}}
  - request: {subtype: brand_new, fields: {y: 2}}
  - text: "${answer}"
  - request: {subtype: slow_one, id: fixed, copies: 1, cancel: in_flight}
  - request: {subtype: brand_new, cancel: late}
  - request: {subtype: slow_one, limit: 2s}
  - request: {subtype: slow_one, no_wait: true}
  - huge: {bytes: 1MiB}
  - result: {subtype: error_during_execution, errors: [bad], fields: {extra: true}, cost: 0.5}
  - exit: {code: 4}
`)
	require.Equal(t, agent.Exit{Code: 4}, exit)
	require.Equal(t, []string{
		"control_response success", "system/init",
		"control_response success", "control_cancel_request", "brand_new", "system/brand_new", "brand_new_message",
		"control_request brand_new", "assistant text",
		"control_request slow_one", "control_request slow_one", "control_cancel_request",
		"control_request brand_new", "control_cancel_request",
		"control_request slow_one", "control_cancel_request",
		"control_request slow_one", "assistant text", "result/error_during_execution",
	}, kinds(p.frames))
	require.Contains(t, text(t, p.frames[8]), `{\"error\":\"what?\"}`)
	require.Equal(t, "fixed", p.frames[9].str("request_id"))
	require.Equal(t, "fixed", p.frames[11].str("request_id"))
	require.Greater(t, len(text(t, p.frames[17])), 1<<20)
	require.True(t, p.frames[18].get("extra").(bool))
	require.Contains(t, p.out.String(), "\nnot json\n")
	require.Equal(t, 2*time.Second, p.now)
}

func TestExitWithoutResult(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(initialize(nil))
	p.send(user("go"))
	require.Equal(t, agent.Exit{Signal: "SEGV"}, p.serve("turns: [{steps: [text: a, exit: {signal: SEGV}, text: b]}]"))
	require.Equal(t, []string{"control_response success", "system/init", "assistant text"}, kinds(p.frames))
}

func TestSpawn(t *testing.T) {
	t.Parallel()
	script := "turns: [{steps: [spawn: {token: b}]}]\nmisbehave: {children: [{token: a, session: true, hold_stdout: true, reparent: true, trap_term: true, forks: 1s}]}"
	var got []scripted.Child
	p := newTape(t)
	p.send(initialize(nil))
	p.send(user("go"))
	p.closing(1)
	scripted.New(scripted.WithScript(parse(t, script)), scripted.WithSpawn(func(c scripted.Child) error {
		got = append(got, c)
		return nil
	})).Serve(agent.Launch{}, p)
	require.Equal(t, []scripted.Child{
		{Token: "a", Session: true, HoldStdout: true, Reparent: true, TrapTerm: true, Forks: time.Second},
		{Token: "b"},
	}, got)
	require.Equal(t, agent.Exit{}, newTape(t).withEOF().serve(script), "in memory nothing is started")
}

func (p *tape) withEOF() *tape {
	p.eof()
	return p
}

func TestFlood(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(initialize(nil))
	p.send(user("go"))
	p.closing(1)
	p.serve("turns: [{steps: [flood: {count: 5000, size: 300}]}]")
	require.Len(t, p.pick("stream_event"), 5000)
	require.Equal(t, "0 ns", p.pick("result")[0].str("result"))
	require.Equal(t, strings.Repeat("x", 300), p.pick("stream_event")[4999].str("event", "delta", "text"))
}

func TestFloodCanBeInterrupted(t *testing.T) {
	t.Parallel()
	p := newTape(t)
	p.send(initialize(nil))
	p.send(user("go"))
	p.closing(1)
	p.host = func(f frame) {
		if n := len(p.frames); f.str("type") == "stream_event" && n == 100 {
			p.send(control("stop", "interrupt", nil))
		}
		if f.str("type") == "result" {
			p.eof()
		}
	}
	exit := p.serve("turns: [{steps: [flood: {count: 100000, size: 300}]}]")
	require.Equal(t, agent.Exit{Code: 1}, exit)
	require.Less(t, len(p.pick("stream_event")), 100000)
	require.Equal(t, "aborted_streaming", p.pick("result")[0].str("terminal_reason"))
}

package scripted_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
)

const sessionID = "99999999-0000-4000-8000-000000000000"

const sessionPath = "projects/-work/" + sessionID + ".jsonl"

// life is one life of a session.
type life struct {
	t       *testing.T
	history agent.History
	ran     *[]string
}

func newLife(t *testing.T) life {
	t.Helper()
	return life{t, &scripted.MemoryHistory{}, &[]string{}}
}

func (l life) serve(p *tape, script string, env []string, args ...string) agent.Exit {
	l.t.Helper()
	a := scripted.New(
		scripted.WithScript(parse(l.t, script)), scripted.WithHistory(l.history),
		scripted.WithEffect(func(_, line string) error {
			*l.ran = append(*l.ran, line)
			return nil
		}),
	)
	exit := a.Serve(agent.Launch{Args: args, Env: env, Dir: "/work", Seed: uint64(len(*l.ran)) + 7}, p)
	require.False(l.t, p.stuck)
	return exit
}

// kept reads the session's file: for each line its type and what it holds.
func (l life) kept(path string) (lines []frame, kinds []string) {
	l.t.Helper()
	b, err := l.history.Load(path)
	require.NoError(l.t, err)
	leaf := any(nil)
	for line := range bytes.Lines(b) {
		var f frame
		require.NoError(l.t, json.Unmarshal(line, &f))
		require.Equal(l.t, leaf, f.get("parentUuid"), "a chain without gaps")
		leaf = f.get("uuid")
		lines = append(lines, f)
		kinds = append(kinds, f.str("type")+" "+content(f))
	}
	return lines, kinds
}

const remembering = `
turns:
- steps:
  - text: let me
  - tool_use: {id: t1, name: Bash, input: {command: x}, gate: allow, takes: 1s, result: ok, effect: n}
  - text: done
default: [text: "${history}"]
`

func TestSessionIsKept(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	p := newTape(t)
	p.send(initialize(nil))
	p.send(userID("u1", "one"))
	p.closing(1)
	require.Equal(t, agent.Exit{}, l.serve(p, remembering, nil, "--session-id="+sessionID))
	lines, kinds := l.kept(sessionPath)
	require.Equal(t, []string{
		"user text", "assistant text", "assistant tool_use", "user tool_result", "assistant text",
	}, kinds)
	require.Equal(t, "u1", lines[0].str("uuid"))
	require.Equal(t, "tool_use", lines[2].str("message", "stop_reason"))
	require.Equal(t, "end_turn", lines[4].str("message", "stop_reason"))
	require.Equal(t, p.pick("assistant")[1].str("uuid"), lines[2].str("uuid"), "the frame's own uuid")
	require.Equal(t, sessionID, lines[4].str("sessionId"))

	p = newTape(t)
	p.send(initialize(nil))
	p.send(userID("u1", "one"))
	p.send(userID("u2", "two"))
	p.closing(1)
	l.serve(p, "default: [text: '${history}']", nil, "--resume="+sessionID, "--replay-user-messages")
	require.Equal(t, []string{
		"control_response success", "command_lifecycle completed", "user text replay",
		"command_lifecycle queued", "command_lifecycle started", "system/init", "user text replay",
		"assistant text", "result/success", "command_lifecycle completed",
	}, kindsOf(p))
	require.Equal(t, "one | two", p.pick("result")[0].str("result"))
	require.Equal(t, sessionID, p.pick("result")[0].str("session_id"))
}

func kindsOf(p *tape) []string { return kinds(p.frames) }

// killed lets a life end in the middle of its tool.
func killed(t *testing.T) life {
	t.Helper()
	l := newLife(t)
	p := newTape(t)
	p.send(initialize(nil))
	p.send(userID("u1", "one"))
	p.errAt(500*time.Millisecond, agent.ErrKilled)
	require.Equal(t, agent.Exit{Signal: "KILL"}, l.serve(p, remembering, nil, "--session-id="+sessionID))
	require.Len(t, *l.ran, 1)
	return l
}

func TestResumeAfterKill(t *testing.T) {
	t.Parallel()
	l := killed(t)
	_, before := l.kept(sessionPath)
	require.Equal(t, []string{"user text", "assistant text", "assistant tool_use"}, before)

	p := newTape(t)
	p.send(initialize(nil))
	p.send(userID("u2", "are you back?"))
	p.closing(1)
	l.serve(p, "default: [text: '${history}']", nil, "--resume="+sessionID)
	require.Equal(t, "one | are you back?", p.pick("result")[0].str("result"))
	lines, after := l.kept(sessionPath)
	require.Equal(t, append(before, "user tool_result", "assistant text", "user text", "assistant text"), after)
	require.Equal(t, "interrupted", lines[3].str("toolDenialKind"))
	require.Equal(t, "No response requested.", block(lines[4]).str("text"))
	require.Len(t, *l.ran, 1, "nothing ran twice")
}

func TestRerunAfterKill(t *testing.T) {
	t.Parallel()
	l := killed(t)
	p := newTape(t)
	p.sendAt(100*time.Millisecond, initialize(nil))
	p.sendAt(200*time.Millisecond, userID("u1", "one"))
	p.closing(1)
	l.serve(p, remembering, []string{"CLAUDE_CODE_RESUME_INTERRUPTED_TURN=1"}, "--resume="+sessionID)
	require.Equal(t, []string{
		"command_lifecycle started", "system/init", "assistant text", "assistant tool_use",
		"control_response success", "command_lifecycle completed",
		"user tool_result", "assistant text", "result/success", "command_lifecycle completed",
	}, kindsOf(p), "the turn runs again before initialize, the line of the host does not")
	require.Equal(t, "interrupted_turn", p.pick("assistant")[0].str("resume_reason"))
	require.Equal(t, "interrupted_turn", p.pick("result")[0].str("resume_reason"))
	require.Len(t, *l.ran, 2, "the tool runs again")
}

func TestFork(t *testing.T) {
	t.Parallel()
	l := killed(t)
	_, before := l.kept(sessionPath)
	p := newTape(t)
	p.send(initialize(nil))
	p.send(user("two"))
	p.closing(1)
	l.serve(p, "default: [text: '${history}']", nil, "--resume="+sessionID, "--fork-session")
	id := p.pick("result")[0].str("session_id")
	require.NotEqual(t, sessionID, id)
	_, same := l.kept(sessionPath)
	require.Equal(t, before, same)
	lines, forked := l.kept("projects/-work/" + id + ".jsonl")
	require.Equal(t, before, forked[:len(before)])
	require.Equal(t, id, lines[0].str("sessionId"))
}

func TestResumeUnknown(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	p := newTape(t)
	p.send(initialize(nil))
	require.Equal(t, agent.Exit{Code: 1}, l.serve(p, "", nil, "--resume="+sessionID))
	require.Equal(t, []string{"result/error_during_execution"}, kindsOf(p))
	require.Equal(t, sessionID, p.frames[0].str("session_id"))
	require.Contains(t, p.stderr.String(), sessionID)
}

func TestNoPersistence(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	p := newTape(t)
	p.send(user("one"))
	p.closing(1)
	l.serve(p, "", nil, "--session-id="+sessionID, "--no-session-persistence")
	_, err := l.history.Load(sessionPath)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestInterruptIsKept(t *testing.T) {
	t.Parallel()
	l := newLife(t)
	p := newTape(t)
	p.send(initialize(nil))
	p.send(user("one"))
	p.sendAt(50*time.Millisecond, control("stop", "interrupt", nil))
	p.closing(1)
	l.serve(p, "turns: [{steps: [partial: {text: long text, chunk: 1, pause: 20ms}]}]", nil, "--session-id="+sessionID)
	lines, kinds := l.kept(sessionPath)
	require.Equal(t, []string{"user text", "assistant text", "user text"}, kinds)
	require.Equal(t, "lon", block(lines[1]).str("text"))
	require.Nil(t, lines[1].get("message", "stop_reason"))
}

func TestDirHistory(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	p := newTape(t)
	p.send(user("one"))
	p.closing(1)
	a := scripted.New(scripted.WithScript(parse(t, "transcript: true")))
	exit := a.Serve(agent.Launch{Args: []string{"--session-id", sessionID}, Env: []string{"HOME=" + home}, Dir: "/work"}, p)
	require.Equal(t, agent.Exit{}, exit)
	b, err := scripted.DirHistory(filepath.Join(home, ".claude")).Load(sessionPath)
	require.NoError(t, err)
	require.Equal(t, 2, bytes.Count(b, []byte{'\n'}))
}

package machine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// scene is what comes out of a routing whose agent is ready, after a script. The words of
// the script are in [play.do], and those of what comes out in [play.note].
type scene struct {
	name   string
	script []string
	want   []string
}

func do(script ...string) []string { return script }

// holds plays the script of each scene. see says which words of what comes out count.
func holds(t *testing.T, scenes []scene, see string, change func(*machine.Config)) {
	t.Helper()
	for _, l := range scenes {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			p := newPlay(t, change)
			p.ready()
			for _, step := range l.script {
				p.do(step)
			}
			seen := slices.DeleteFunc(p.log, func(s string) bool {
				what, _, _ := strings.Cut(s, " ")
				return !slices.Contains(strings.Fields(see), what)
			})
			assert.Equal(t, l.want, slices.Clip(append([]string(nil), seen...)))
			assert.Len(t, p.open, p.m.Open(), "the callback of a request that is over was told so")
			assert.Equal(t, p.persons(), p.gates, "the session knows how many requests wait for a person")
		})
	}
}

// lawRules deny with the kind and the reason.
type lawRules struct{ plain }

func (lawRules) Denial(k session.Kind, _ protocol.Frame, reason string) ([]byte, string) {
	return fmt.Appendf(nil, `{"denied":%q,"why":%q}`, k, reason), ""
}

// play is a routing with what comes out of it.
type play struct {
	t   *testing.T
	m   *machine.Routing
	now time.Time
	ran map[string]machine.Run // the last request of each id
	log []string

	open  map[uint64]machine.Run
	gates int
	off   string // how it was seen that the agent calls no hooks
}

func (p *play) persons() (n int) {
	for _, r := range p.open {
		if r.Kind == session.KindPermission || r.Kind == session.KindInquiry {
			n++
		}
	}
	return n
}

func newPlay(t *testing.T, change func(*machine.Config)) *play {
	t.Helper()
	cfg := machine.Config{Rules: lawRules{}}
	if change != nil {
		change(&cfg)
	}
	p := &play{t: t, m: machine.New(cfg), now: time.Unix(0, 0), ran: map[string]machine.Run{}, open: map[uint64]machine.Run{}}
	p.step(machine.Connected{Gen: 1})
	return p
}

// ready answers the agent's initialize.
func (p *play) ready() {
	p.read(answered("troupe-1", `{}`))
	p.log = nil
}

func (p *play) step(in machine.Input) {
	for _, e := range p.m.Step(p.now, in, nil) {
		p.note(e)
	}
}

// read gives the routing lines of the agent, as one read.
func (p *play) read(lines string) {
	var all []protocol.Frame
	for line := range strings.SplitSeq(lines, "\n") {
		all = append(all, frame("%s", line))
	}
	p.step(machine.FramesRead{Frames: all})
}

// do makes a step of a script: the agent's lines, or a word of the host's.
func (p *play) do(step string) {
	p.t.Helper()
	if strings.HasPrefix(step, "{") {
		p.read(step)
		return
	}
	word, rest, _ := strings.Cut(step, " ")
	id, more, _ := strings.Cut(rest, " ")
	run := p.ran[id]
	reply := machine.Answered{Seq: run.Seq, ID: id, Kind: run.Kind}
	switch word {
	case "send", "command": // a command is not a prompt
		p.step(machine.UserSent{ID: id, Line: []byte("line " + id), Prompt: word == "send"})
	case "call": // with its subtype
		p.step(machine.Called{ID: id, Subtype: more, Body: json.RawMessage(`{}`)})
	case "own":
		p.step(machine.Called{ID: id, Subtype: more, Body: json.RawMessage(`{}`), Own: true})
	case "skip": // a line of which this is the head
		p.step(machine.FramesRead{Frames: []protocol.Frame{protocol.OversizeFrame([]byte(rest), 1<<30, 1<<20)}})
	case "answer":
		if more != "" {
			reply.Response = json.RawMessage(more)
		}
		p.step(reply)
	case "error":
		reply.ErrText = more
		p.step(reply)
	case "code":
		reply.ErrText, reply.Code = more, "code"
		p.step(reply)
	case "deny": // no callback decides
		reply.Deny, reply.Cause = more, io.ErrUnexpectedEOF
		p.step(reply)
	case "drop":
		reply.Drop = true
		p.step(reply)
	case "lose":
		p.step(machine.CallbacksLost{Seqs: []uint64{run.Seq}, Reason: more})
	case "wait": // for a second
		p.log = append(p.log, "-")
		p.now = p.now.Add(time.Second)
		p.step(machine.TimerFired{})
	case "unplug":
		p.step(machine.Disconnected{})
	case "eof":
		p.step(machine.OutputEnded{})
	case "close":
		p.step(machine.Closing{})
	case "die":
		p.step(machine.Closing{Reason: io.ErrUnexpectedEOF})
	case "end":
		p.step(machine.Ended{})
	case "fail":
		p.step(machine.Ended{Reason: io.ErrUnexpectedEOF})
	default:
		p.t.Fatalf("no such word: %s", step)
	}
}

// note writes an effect down: turn, call, line, run, cancel, answer or event.
func (p *play) note(e machine.Effect) {
	add := func(format string, args ...any) {
		p.log = append(p.log, strings.TrimSpace(fmt.Sprintf(format, args...)))
	}
	switch e := e.(type) {
	case machine.TurnOver:
		add("turn %s: %s", e.ID, ended(e.Outcome))
	case machine.Deliver:
		for _, entry := range e.Entries {
			for _, o := range entry.Ends {
				add("turn %s: %s", o.ID, ended(o))
			}
		}
	case machine.CallOver:
		switch {
		case strings.HasPrefix(e.ID, machine.OwnID):
		case e.Err != nil:
			add("call %s: %s", e.ID, why(e.Err))
		default:
			add("call %s: %s", e.ID, e.Response.Response)
		}
	case machine.Run:
		p.ran[e.Frame.ID.Text()], p.open[e.Seq] = e, e
		add("run %v %s", e.Kind, e.Frame.ID.Text())
	case machine.Cancel:
		delete(p.open, e.Seq)
		if e.Why != nil {
			add("cancel %v: %s", e.Kind, why(e.Why))
		}
	case machine.Emit:
		add("event %s", strings.TrimPrefix(fmt.Sprintf("%T", e.Event), "*session."))
	case machine.Changed:
		p.off, p.gates = e.Summary.GatesOff, e.Summary.Gates
	case machine.Write:
		p.written(strings.TrimSuffix(string(e.Line), "\n"), add)
	}
}

func (p *play) written(line string, add func(string, ...any)) {
	var w struct {
		Type     string `json:"type"`
		ID       string `json:"request_id"`
		Response struct {
			ID       json.RawMessage `json:"request_id"`
			Error    string          `json:"error"`
			Response json.RawMessage `json:"response"`
		} `json:"response"`
	}
	switch {
	case strings.HasPrefix(line, "line "):
		add("%s", line)
		return
	case !assert.NoError(p.t, json.Unmarshal([]byte(line), &w), line):
	case w.Type == "control_response":
		id := string(w.Response.ID)
		if plain := strings.Trim(id, `"`); `"`+plain+`"` == id {
			id = plain
		}
		add("answer %s %s%s", id, w.Response.Response, w.Response.Error)
	default:
		add("line %s %s", w.Type, w.ID)
	}
}

func ended(o machine.Outcome) string {
	switch {
	case o.Err != nil:
		return why(o.Err)
	case o.Result.Failed():
		return "failed " + o.Result.Text()
	}
	return o.Result.Result
}

// why names an error.
func why(err error) string {
	for _, known := range []struct {
		err  error
		name string
	}{
		{session.ErrNotRun, "not run"}, {session.ErrResultSkipped, "skipped"}, {session.ErrAnswerSkipped, "skipped"},
		{session.ErrClosed, "closed"}, {io.ErrUnexpectedEOF, "dead"}, {machine.ErrSameID, "same id"},
	} {
		if errors.Is(err, known.err) {
			return known.name
		}
	}
	if _, ok := errors.AsType[*protocol.UnreadableResultError](err); ok {
		return "unreadable"
	}
	if _, ok := errors.AsType[*session.ProtocolVersionError](err); ok {
		return "another age"
	}
	return err.Error()
}

func answered(id, response string) string {
	return fmt.Sprintf(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":%s}}`, id, response)
}

// The agent's lines.
const (
	ok        = `{"type":"result","subtype":"success","is_error":false,"result":"ok"}`
	stray     = `{"type":"result","subtype":"success","is_error":false,"result":"stray"}`
	okOf      = `{"type":"result","subtype":"success","is_error":false,"result":"ok","user_message_uuids":`
	own       = `{"type":"result","subtype":"success","is_error":false,"result":"own","origin":{"kind":"task-notification"}}`
	broke     = `{"type":"result","subtype":"error_during_execution","is_error":true}`
	inits     = `{"type":"system","subtype":"init","session_id":"s"}`
	initsA    = `{"type":"system","subtype":"init","session_id":"s","user_message_uuids":["a"]}`
	says      = `{"type":"assistant","parent_tool_use_id":null,"message":{"role":"assistant","model":"claude-x","content":[]}}`
	idle      = `{"type":"system","subtype":"session_state_changed","state":"idle"}`
	running   = `{"type":"system","subtype":"session_state_changed","state":"running"}`
	promptsUp = `{"type":"control_request","request_id":"h","request":{"subtype":"hook_callback","callback_id":"x","input":{"hook_event_name":"UserPromptSubmit"}}}`
)

// is is a command_lifecycle of the agent.
func is(state, id string) string {
	return fmt.Sprintf(`{"type":"command_lifecycle","command_uuid":%q,"state":%q}`, id, state)
}

// asks is a request of the agent under an id that is any JSON; "": without one.
func asks(id, subtype, more string) string {
	if id != "" {
		id = `"request_id":` + id + `,`
	}
	return fmt.Sprintf(`{"type":"control_request",%s"request":{"subtype":%q%s}}`, id, subtype, more)
}

// bash asks for permission for a command.
func bash(id, command string) string {
	return asks(id, "can_use_tool", fmt.Sprintf(`,"tool_name":"Bash","input":{"command":%q}`, command))
}

func tool(id, amount string) string {
	return asks(id, "mcp_message", `,"server_name":"s","message":{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"pay","arguments":{"amount":`+amount+`}}}`)
}

func takesBack(id string) string {
	return fmt.Sprintf(`{"type":"control_cancel_request","request_id":%s}`, id)
}

func repeats(c *machine.Config) { c.RepeatsInit = true }

func TestIsPrompt(t *testing.T) {
	t.Parallel()
	no := false
	for want, m := range map[string]*protocol.UserMessage{
		"a prompt":               {Message: protocol.UserContent{Content: protocol.StringContent("hi")}},
		"a command":              {Message: protocol.UserContent{Content: protocol.TextContent(" /context")}},
		"a line for the history": {Message: protocol.UserContent{Content: protocol.StringContent("hi")}, ShouldQuery: &no},
	} {
		require.Equal(t, want == "a prompt", machine.IsPrompt(m), want)
	}
}

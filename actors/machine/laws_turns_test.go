package machine_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/session"
)

// A result that names no message, and comes after the first message was written and
// before the agent says anything of it.
func TestLawsOfAResultBeforeItsTurn(t *testing.T) {
	t.Parallel()
	isOK, isStray, isOpen := []string{"turn a: ok"}, []string{"turn a: stray"}, []string(nil)
	holds(t, []scene{
		{"the turn begins", do("send a", stray, inits, says, ok), isOK},
		{"several", do("send a", stray, stray, inits, says, ok), isOK},
		{"the agent runs", do("send a", stray, running, inits, says, ok), isOK},
		{"the turn begins, and has no end", do("send a", stray, inits, says), isOpen},
		{"the agent names the message", do("send a", stray, is("started", "a"), ok), isOK},
		{"the hook of the prompt", do("send a", stray, promptsUp), isOpen},
		{"the next message says nothing", do("send a", stray, `{"type":"system","subtype":"hook_started"}`), isOpen},

		{"the message is completed", do("send a", stray, is("completed", "a")), isStray},
		{"another one is completed", do("send a", stray, is("completed", "b")), isOpen},
		{"the agent is idle", do("send a", stray, idle), isStray},
		{"an agent without init", do("send a", says, ok), isOK},
		{"that writes them late", do("send a", stray, says, ok), isStray},
		{"a result that says it", do("send a", okOf+`["a"]}`), isOK},
		{"init came before", do("send a", inits, stray), isStray},
		{"the agent ran before", do("send a", running, stray, inits), isStray},
		{"a turn of the agent's", do("send a", inits, own, stray, inits, ok), isOK},
		{"the message was echoed", do("send a", `{"type":"user","uuid":"a","isReplay":true}`, stray), isStray},
		{"init names the message", do("send a", stray, initsA, okOf+`["a"]}`), isOK},
		{"its output ends", do("send a", ok, "eof"), isOK},
		{"a close", do("send a", ok, "close"), isOK},
		{"interrupted before it began", do("send a", "send b", stray, inits, says, ok), []string{"turn a: stray", "turn b: ok"}},
		{"and the hook of the next prompt", do("send a", "send b", stray, promptsUp, inits, says, ok), []string{"turn a: stray", "turn b: ok"}},
	}, "turn", repeats)
	holds(t, []scene{
		{"nothing but a result", do("send a", stray, "wait"), []string{"-", "turn a: stray"}},
		{"only the first result of a minimal agent is waited for", do("send a", "send b", ok+"\n"+ok, "wait", "send c", ok),
			[]string{"-", "turn a: ok", "turn b: ok", "turn c: ok"}},
		{"which stays one when it says that it runs", do("send a", ok, "wait", "send b", running, ok, "send c", ok),
			[]string{"-", "turn a: ok", "turn b: ok", "turn c: ok"}},
		{"and is none from its first init on", do("send a", ok, "wait", "send b", inits, ok, "send c", ok),
			[]string{"-", "turn a: ok", "turn b: ok"}},
	}, "turn -", repeats)
}

func TestLawsOfTurns(t *testing.T) {
	t.Parallel()
	three := func(result string) []string { return do("send a", "send b", "send c", says, result) }
	failed := `{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["x"],"result":01,"user_message_uuid":"a"}`
	deep := strings.Repeat("[", 20_000) + strings.Repeat("]", 20_000)
	denied := func(event string) []string {
		return do("send a", asks(`"h"`, "hook_callback", `,"callback_id":"hook_0","input":{"hook_event_name":"`+event+`"}`), "close", okOf+`["a"]}`)
	}
	holds(t, []scene{
		{"a result by uuid", three(okOf + `["b"]}`), []string{"turn b: ok"}},
		{"by one uuid", three(`{"type":"result","subtype":"success","is_error":false,"result":"ok","user_message_uuid":"b"}`), []string{"turn b: ok"}},
		{"two lines in one turn", three(okOf + `["a","c"]}`), []string{"turn a: ok", "turn c: ok"}},
		{"of messages nobody knows", three(okOf + `["x"]}`), nil},
		{"by order", three(ok), []string{"turn a: ok"}},
		{"of a turn that the agent started", three(own), nil},
		{"an error", three(broke), []string{"turn a: failed"}},
		{"one that does not decode", three(`{"type":"result","subtype":7,"is_error":"maybe"}`), []string{"turn a: failed"}},
		{"one that came before the agent can have read a message", do(ok, "send a"), nil},

		{"a uuid the agent knew", do("send a", "send b", is("completed", "a"), ok), []string{"turn a: not run", "turn b: ok"}},
		{"cancelled in its queue", do("send a", "send b", is("queued", "a"), is("cancelled", "a")), []string{"turn a: not run"}},
		{"thrown away", do("send a", is("queued", "a"), is("discarded", "a")), []string{"turn a: not run"}},
		{"refused", do("send a", is("refused", "a")), []string{"turn a: not run"}},
		{"queued", do("send a", is("queued", "a")), nil},
		{"started", do("send a", is("queued", "a"), is("started", "a")), nil},
		{"its result comes later", do("send a", is("started", "a"), is("completed", "a"), ok), []string{"turn a: ok"}},
		{"interrupted", do("send a", is("started", "a"), is("cancelled", "a")), nil},
		{"a state of a later year", do("send a", is("deferred", "a")), nil},
		{"a state of another message", do("send a", is("completed", "x"), `{"type":"command_lifecycle","command_uuid":7}`), nil},
		{"cancelled after it began, of most agents", do("send a", inits, is("cancelled", "a")), []string{"turn a: not run"}},

		{"what an interrupt took along", do("send a", "send b", "send c", "call i interrupt", answered("i", `{"still_queued":["c"],"cancelled":["b","nobody"]}`), okOf+`["a"]}`),
			[]string{"turn b: not run", `call i: {"still_queued":["c"],"cancelled":["b","nobody"]}`, "turn a: ok"}},
		{"only interrupts cancel", do("send a", "call i cancel_async_message", answered("i", `{"cancelled":["a"]}`)), []string{`call i: {"cancelled":["a"]}`}},
		{"a receipt that is no list", do("send a", "call i interrupt", answered("i", `{"cancelled":true}`)), []string{`call i: {"cancelled":true}`}},

		{"a dead transport takes no message", do("unplug", "send a"), nil},
		{"the end", do("send a", "close", "send c", "end", "send d"), []string{"turn c: closed", "turn a: closed", "turn d: closed"}},
		{"a failure", do("send a", "die", "send c", "fail", "send d"), []string{"turn c: closed", "turn a: dead", "turn d: closed"}},
		{"an agent that cannot be used", do("send a", `{"type":"system","subtype":"init","protocol_version":"9.9","session_id":"s"}`, broke), []string{"turn a: another age"}},

		{"a prompt that the close blocks", denied("UserPromptSubmit"), []string{"turn a: closed"}},
		{"a hook of a tool call is no prompt's", denied("PreToolUse"), []string{"turn a: ok"}},
		{"a prompt's hook that is denied while the session is open", do("send a", promptsUp, "deny h no", okOf+`["a"]}`), []string{"turn a: ok"}},
		{"nor is one that names the prompt's", denied(`PreToolUse","tool_input":{"text":"UserPromptSubmit"},"x":"`), []string{"turn a: ok"}},

		{"a skipped result ends its turn", do("send a", `skip {"uuid":"x","type":"result","subtype":"success","result":"aaa`), []string{"turn a: skipped"}},
		{"a skipped answer ends its call", do("send a", "call c set_model", "call d get_usage",
			`skip {"type":"control_response","response":{"subtype":"success","request_id":"c","response":{"a":"aaa`,
			`skip {"type":"control_response","response":{"subtype":"success","request_id":"nobody","response":{"a":"aaa`), []string{"call c: skipped"}},
		{"what may be a result does, once the agent is idle", do("send a", `skip {"uuid":"x","result":"aaa`, is("started", "a"), "wait", idle), []string{"turn a: skipped"}},
		{"but not while it runs", do("send a", `skip {"uuid":"x","result":"aaa`, is("started", "a"), running), nil},
		{"a line before the result does not", do("send a", `skip {"uuid":"x","message":{`, okOf+`["a"]}`, idle), []string{"turn a: ok"}},
		{"what cannot be a result does not", do("send a", `skip {"type":"assistant","message":{`, `skip [{"type":"result"`, "skip "+strings.Repeat("x", 256), "skip ", is("started", "a"), idle), nil},
		{"a type deeper down is none", do("send a",
			`skip {"type":"assistant","message":{"content":[{"type":"tool_use","input":{"type":"result","x":"`+strings.Repeat("y", 50),
			`skip {"message":{"type":"result"},"x":"`, `skip {"x":"\"type\":\"result\"","y":"`), nil},
		{"a type after a text that looks like one", do("send a", `skip {"x":"\"type\":\"assistant\"","type" : "result","y":"`), []string{"turn a: skipped"}},
		{"a skipped result comes after the one before", do("send a", "send b", okOf+`["a"]}`+"\n"+says, `skip {"type":"result","subtype":"success"`), []string{"turn a: ok", "turn b: skipped"}},
	}, "turn call", nil)

	holds(t, []scene{
		{"an odd escape in a result", do("send a", `{"type":"result","subtype":"success","result":"a\qb","uuid":"x"}`), []string{"event NoiseLine", `turn a: a\qb`}},
		{"a deep member beside it", do("send a", `{"type":"result","subtype":"success","result":"fine","x":`+deep+`}`), []string{"event NoiseLine", "turn a: fine"}},
		{"a bad number beside it", do("send a", `{"type":"result","subtype":"success","result":"\u00e9","usage":01}`), []string{"event NoiseLine", "turn a: \u00e9"}},
		{"a bad number in its place", do("send a", `{"type":"result","subtype":"success","result":01}`), []string{"event NoiseLine", "turn a: unreadable"}},
		{"something deep in its place", do("send a", `{"type":"result","subtype":"success","result":`+deep+`}`), []string{"event NoiseLine", "turn a: unreadable"}},
		{"a number in its place", do("send a", `{"type":"result","subtype":"success","result":5}`), []string{"event NoiseLine", "turn a: unreadable"}},
		{"none, and a bad number", do("send a", `{"type":"result","subtype":"success","usage":01}`), []string{"event NoiseLine", "turn a: unreadable"}},
		{"an error that cannot be read whole", do("send a", failed), []string{"event NoiseLine", "turn a: failed x"}},
	}, "turn event", nil)

	// qodercli says of a turn that fails: queued, cancelled, and then the result.
	holds(t, []scene{
		{"cancelled after it began", do(inits, "send a", "send b", is("queued", "a"), is("queued", "b"), inits, is("cancelled", "b"), is("cancelled", "a"), ok),
			[]string{"turn b: not run", "turn a: ok"}},
		{"cancelled, and the agent says when it starts", do("send a", "send b", is("started", "a"), inits, okOf+`["a"]}`, inits, is("cancelled", "b")),
			[]string{"turn a: ok", "turn b: not run"}},
	}, "turn", func(c *machine.Config) { c.ResultAfterCancelled = true })
}

// The orders of messages are those of Claude Code 2.1.329 and, where no init names its
// messages, 2.1.197 (observed). c is a command.
func TestLawsOfGates(t *testing.T) {
	t.Parallel()
	initOf := func(ids string) string { return strings.Replace(initsA, `["a"]`, ids, 1) }
	var (
		hook      = asks(`"h"`, "hook_callback", `,"callback_id":"hook_0"`)
		question  = asks(`"p"`, "can_use_tool", "")
		initC     = initOf(`["c"]`)
		initAB    = initOf(`["a","b"]`)
		subSays   = strings.Replace(says, "null", `"toolu_1"`, 1)
		writes    = strings.Replace(says, "claude-x", "<synthetic>", 1)
		compact   = `{"type":"system","subtype":"compact_boundary"}`
		ofA, ofC  = okOf + `["a"]}`, okOf + `["c"]}`
		stop      = "call i interrupt"
		otherCase = `{"type":"assistant","message":{"model":"claude-x"},"Message":{"model":"<synthetic>"}}`
	)
	for _, l := range []struct {
		name   string
		script []string
		seen   string // "": the gates are on
	}{
		{"a prompt", do("send a", is("started", "a"), hook, initsA, says, ofA), ""},
		{"a prompt of the older release", do("send a", hook, inits, says, ofA), ""},
		{"two prompts joined", do("send a", "send b", is("started", "a"), hook, hook, initAB, says, ofA), ""},
		{"a command", do("command c", is("started", "c"), initC, writes, ofC), ""},
		{"a command of the older release", do("command c", inits, writes, ofC), ""},
		{"a compaction repeats messages", do("command c", is("started", "c"), initC, compact, says, ofC), ""},
		{"a command before a prompt", do("command c", "send a", inits, writes, ofC, hook, inits, says), ""},
		{"a prompt that was joined, a command", do("send a", "command c", inits, writes), ""},
		{"a turn of a task", do(hook, inits, says, own), ""},
		{"a subagent of a command", do("command c", is("started", "c"), initC, subSays), ""},
		{"a hook of any event", do("send a", question, hook, initsA, says), ""},
		{"a message that is not known", do("send a", initOf(`["x"]`)), ""},
		{"nothing was sent", do(inits), ""},
		{"a prompt without a hook", do("send a", is("started", "a"), initsA, says, ofA), "system/init"},
		{"a prompt without a hook, older", do("send a", inits, says, ofA), "system/init"},
		{"keys in another case", do("send a", otherCase), "assistant"},
		{"no init", do("send a", says), "assistant"},
		{"a question is no hook", do("send a", question, initsA), "system/init"},
		{"one of two is a prompt, the other too", do("send a", "send b", initAB), "system/init"},
		{"a command that asks a model", do("command c", is("started", "c"), initC, says), "assistant"},
		{"a turn of a task without a hook", do(inits, says), "assistant"},
		{"interrupted before its hook", do("send a", stop, is("started", "a"), initsA, ofA), ""},
		{"interrupted, and a model speaks", do("send a", stop, initsA, says), "assistant"},
		{"an interrupt that hits the next turn", do("send a", "send b", hook, initsA, stop, says, ofA, initOf(`["b"]`)), ""},
		{"an interrupt of the turn before", do("send a", "send b", hook, initsA, stop, answered("i", "{}"), ofA, initOf(`["b"]`)), "system/init"},
		{"the second turn", do("send a", hook, initsA, says, ofA, inits, says), "assistant"},
		{"a repetition ends with its turn", do("command c", initC, compact, says, ofC, inits, says), "assistant"},
	} {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			for _, wanted := range []bool{true, false} {
				p := newPlay(t, func(c *machine.Config) { c.ProveGates, c.Discard = wanted, true })
				p.ready()
				for _, step := range l.script {
					p.do(step)
				}
				want := l.seen // and it says what may be the reason
				require.Contains(t, (&session.GatesOffError{Seen: want}).Error(), "CLAUDE_CODE_SIMPLE")
				if !wanted {
					want = ""
				}
				if want != p.off {
					t.Errorf("the agent's gates are off: %q, want %q", p.off, want)
				}
				p.log = nil
				if p.do(asks(`"late"`, "can_use_tool", "")); (p.log[0] == "run permission late") == (want != "") {
					t.Errorf("a gate that is off is asked, or another one is not: %q", p.log)
				}
			}
		})
	}
}

// A result that came before the agent can have read a message is of no turn.
func TestAResultBeforeAnyMessageWasWritten(t *testing.T) {
	t.Parallel()
	p := newPlay(t, nil)
	p.do("send a")
	p.do(ok)
	p.do(answered("troupe-1", "{}"))
	require.NotContains(t, p.log, "turn a: ok")
	p.do(ok)
	require.Contains(t, p.log, "turn a: ok")
}

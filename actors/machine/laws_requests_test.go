package machine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

const (
	allow  = `{"behavior":"allow"}`
	askP   = `{"type":"control_request","request_id":"p","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{}}}`
	askH   = `{"type":"control_request","request_id":"h","request":{"subtype":"hook_callback"}}`
	noMore = `{"denied":"hook","why":"the request was longer than a line may be"}`
)

func denied(kind, why string) string { return fmt.Sprintf(`{"denied":%q,"why":%q}`, kind, why) }

func TestLawsOfRequests(t *testing.T) {
	t.Parallel()
	const sameID = "another request is open under the same id"
	closing, unsure := "the session is closing", denied("hook", sameID)
	head := askP[:100]
	both := []string{"run permission x", "event RepeatedRequest", "cancel permission: same id", "answer x " + unsure, "answer x " + unsure, "event LateAnswer", "run permission x"}
	scenes := []scene{
		{"of each kind", do(askP, askH, tool(`"m"`, "1"), asks(`"e"`, "elicitation", "")), []string{"run permission p", "run hook h", "run mcp m", "run inquiry e"}},
		{"of none", do(asks(`"x"`, "of_next_week", ""), asks(`"y"`, "", "")),
			[]string{"answer x Unsupported control request subtype: of_next_week", "answer y Unsupported control request subtype:"}},
		{"answered once", do(askP, "answer p "+allow, "answer p "+allow, "error p no", "deny p no"),
			[]string{"run permission p", "answer p " + allow, "event LateAnswer", "event LateAnswer"}},
		{"forms of answers", do(askH, "answer h", strings.Replace(askH, `"h"`, `"i"`, 1), "answer i null", strings.Replace(askH, `"h"`, `"j"`, 1), "error j wrong",
			strings.Replace(askH, `"h"`, `"k"`, 1), "code k wrong", strings.Replace(askH, `"h"`, `"l"`, 1), "drop l"),
			[]string{"run hook h", "answer h", "run hook i", "answer i null", "run hook j", "answer j wrong", "run hook k", "answer k wrong", "run hook l"}},
		{"what is no JSON is no answer", do(askH, "answer h {"), []string{"run hook h", "event CallbackFailed", "answer h " + denied("hook", "the answer could not be encoded")}},
		{"one that comes again is not run again", do(askP, askP, "answer p "+allow, askP, askP),
			[]string{"run permission p", "event RepeatedRequest", "answer p " + allow, "event RepeatedRequest", "answer p " + allow, "event RepeatedRequest", "answer p " + allow}},
		{"nor after a deny", do(askP, "deny p no", askP),
			[]string{"run permission p", "cancel permission: dead", "answer p " + denied("permission", "no"), "event RepeatedRequest", "answer p " + denied("permission", "no")}},
		{"the agent takes it back", do(askP, takesBack(`"p"`), "answer p "+allow, askP, "answer p "+allow),
			[]string{"run permission p", "event LateAnswer", "run permission p", "answer p " + allow}},
		{"by the older name", do(askP, strings.Replace(takesBack(`"p"`), "control_cancel_request", "control_cancel", 1), "answer p "+allow), []string{"run permission p", "event LateAnswer"}},
		{"a word after the answer", do(askP, "answer p "+allow, takesBack(`"p"`), takesBack(`"nobody"`), askP),
			[]string{"run permission p", "answer p " + allow, "event RepeatedRequest", "answer p " + allow}},
		{"a close denies everything, in order", do(askP, askH, asks(`"e"`, "elicitation", ""), "close", "answer p "+allow, asks(`"q"`, "can_use_tool", "")),
			[]string{"run permission p", "run hook h", "run inquiry e", "answer p " + denied("permission", closing), "answer h " + denied("hook", closing),
				"answer e " + denied("inquiry", closing), "event LateAnswer", "answer q " + denied("permission", closing)}},
		{"so does the end", do(askP, "fail", "answer p "+allow), []string{"run permission p", "answer p " + denied("permission", "the session has ended"), "event LateAnswer"}},
		{"an actor dies", do(askP, askH, "lose p gone", "lose nobody gone", "answer h "+allow), []string{"run permission p", "run hook h", "answer p " + denied("permission", "gone"), "answer h " + allow}},

		{"nobody is left to be answered", do(askP, "unplug", "answer p "+allow), []string{"run permission p"}},

		{"two under one id", do(bash(`"x"`, "ls"), bash(`"x"`, "rm"), "answer x "+allow, bash(`"x"`, "third")), both},
		{"spelt in another way", do(bash(`"x"`, "ls"), bash(`"\u0078"`, "rm"), "answer x "+allow, bash(`"x"`, "third")),
			[]string{both[0], both[1], both[2], both[3], `answer \u0078 ` + unsure, both[5], both[6]}},
		{"of two kinds", do(bash(`"x"`, "ls"), strings.Replace(askH, `"h"`, `"x"`, 1), "answer x "+allow, bash(`"x"`, "third")), both},
		{"a tool's", do(bash(`"x"`, "ls"), tool(`"x"`, "1"), "answer x "+allow, bash(`"x"`, "third")), both},
		{"without an id", do(bash("", "ls"), asks("", "mcp_message", ""), bash(`"\q"`, "ls")), slicesRepeat(3, "event RepeatedRequest", "answer  "+denied("hook", "the request has no id"))},

		{"a skipped one is denied by its kind", do(`skip {"type":"control_request","request_id":"p","request":{"subtype":"can_use_tool","input":{"a":"`),
			[]string{"answer p " + denied("permission", "the request was longer than a line may be")}},
		{"which may come before", do(`skip {"request":{"a":{"subtype":"x"},"subtype":"can_use_tool"},"type":"control_request","request_id":"p","x":"`),
			[]string{"answer p " + denied("permission", "the request was longer than a line may be")}},
		{"as everything, if its kind does not show", do(`skip {"type":"control_request","request_id":"p","request":{"input":{"subtype":"can_use_tool","b":"`), []string{"answer p " + noMore}},
		{"under its id as it was written", do(`skip {"type":"control_request","request_id":"p\"","x":"`), []string{`answer "p\"" ` + noMore}},
		{"not at all, if whose it is does not show", do(`skip {"type":"control_request","x":{"request_id":"p"},"y":"`, `skip {"type":"control_request","request":{"request_id":"p","x":"`), nil},
		{"a skipped one under an id that is open", do(askP, "skip "+head, "answer p "+allow),
			[]string{"run permission p", "event RepeatedRequest", "cancel permission: same id", "answer p " + unsure, "answer p " + unsure, "event LateAnswer"}},
	}
	for _, kind := range []struct{ name, safe, evil string }{
		{"permission", bash(`"x"`, "ls"), bash(`"x"`, "rm -rf /")},
		{"hook", asks(`"x"`, "hook_callback", `,"input":{"command":"ls"}`), asks(`"x"`, "hook_callback", `,"input":{"command":"rm"}`)},
		{"mcp", tool(`"x"`, "1"), tool(`"x"`, "1000000")},
		{"inquiry", asks(`"x"`, "elicitation", `,"message":"a"`), asks(`"x"`, "elicitation", `,"message":"b"`)},
	} {
		no := `answer x {"behavior":"deny"}`
		scenes = append(scenes, scene{"an id that is used again for another " + kind.name, do(kind.safe, "answer x "+allow, kind.evil, no, kind.safe, kind.evil),
			[]string{"run " + kind.name + " x", "answer x " + allow, "run " + kind.name + " x", no, "event RepeatedRequest", "answer x " + allow, "event RepeatedRequest", no}})
	}
	holds(t, scenes, "run cancel answer event", nil)
	holds(t, []scene{
		{"more than two", do(askP, askH, asks(`"q"`, "can_use_tool", ""), "answer p "+allow, strings.Replace(askH, `"h"`, `"i"`, 1)),
			[]string{"run permission p", "run hook h", "answer q " + denied("permission", "too many requests are open"), "answer p " + allow, "run hook i"}},
	}, "run answer", func(c *machine.Config) { c.Limits = &session.Limits{Requests: 2} })
}

func slicesRepeat(n int, of ...string) (all []string) {
	for range n {
		all = append(all, of...)
	}
	return all
}

func TestLawsOfAnswersThatWereGiven(t *testing.T) {
	t.Parallel()
	big := `"` + strings.Repeat("x", 40<<10) + `"`
	kept := `"` + strings.Repeat("x", 5<<10) + `"`
	var five, once []string
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		five = append(five, tool(`"`+id+`"`, "1"), "answer "+id+" "+kept)
		once = append(once, "run mcp "+id)
	}
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		five = append(five, tool(`"`+id+`"`, "1"))
	}
	paid := tool(`"m"`, "1")
	holds(t, []scene{
		{"a gate is asked again in the next turn", do("send u", askP, "answer p "+big, askP, okOf+`["u"]}`, askP), []string{"run permission p", "run permission p"}},
		{"in a turn 64 KiB of answers are kept", do("send u", askP, "answer p "+big, asks(`"q"`, "can_use_tool", ""), "answer q "+kept, askP), []string{"run permission p", "run permission q"}},
		{"and between turns 4 KiB", do(askP, "answer p "+kept, asks(`"q"`, "can_use_tool", ""), "answer q "+kept, askP), []string{"run permission p", "run permission q", "run permission p"}},
		{"a tool does not run twice", do("send u", paid, `answer m "paid"`, paid, okOf+`["u"]}`, paid), []string{"run mcp m"}},
		{"but another call under the id does", do(paid, `answer m "paid"`, tool(`"m"`, "2")), []string{"run mcp m", "run mcp m"}},
		{"the last three calls of tools are known", five, append(once, "run mcp a", "run mcp b")},
	}, "run", func(c *machine.Config) { c.Limits = &session.Limits{Answers: 3} })
	holds(t, []scene{
		{"an answer that is too large to keep", do("send u", askP, `answer p "`+strings.Repeat("x", 70<<10)+`"`, askP), []string{"run permission p", "run permission p"}},
	}, "run", nil)
	holds(t, []scene{
		{"why it does not", do("send u", paid, `answer m "paid"`, okOf+`["u"]}`, paid),
			[]string{`answer m "paid"`, "answer m " + denied("mcp", "the message came before and was answered; it is not run again")}},
	}, "answer", nil)
}

func TestLawsOfIDs(t *testing.T) {
	t.Parallel()
	for _, id := range []string{
		`"a"`, `""`, `5`, `1e0`, `-0`, `1.50`, `12345678901234567890123`, `1e400`, `null`, `true`, `{"a" : [1, "\u0061"]}`, `[]`,
		`"\ud800"`, `"\uD800\udc00"`, `"\u0061\/\""`, `"<&> "`, "\"a\xffb\"",
	} {
		p := newPlay(t, nil)
		p.ready()
		raw := func(in machine.Input) (lines []string) {
			for _, e := range p.m.Step(p.now, in, nil) {
				switch e := e.(type) {
				case machine.Run:
					p.ran["it"] = e
				case machine.Write:
					lines = append(lines, string(e.Line))
				}
			}
			return lines
		}
		ask := func(command string) []string {
			return raw(machine.FramesRead{Frames: []protocol.Frame{frame("%s", bash(id, command))}})
		}
		require.Empty(t, ask("ls"), id)
		first := raw(machine.Answered{Seq: p.ran["it"].Seq, Response: []byte(allow)})
		require.Len(t, first, 1)
		assert.Contains(t, first[0], `"request_id":`+id+`,`, "it is sent back as it was written")
		assert.Equal(t, first, ask("ls"))
		require.Empty(t, ask("rm"), "%s: another body", id)
		refused := raw(machine.Answered{Seq: p.ran["it"].Seq, ErrText: "no", Code: "code"})
		assert.Contains(t, refused[0], `"request_id":`+id+`,`)
	}

	p := newPlay(t, nil)
	p.ready()
	ids := []string{`"a"`, `"A"`, `"\ud800"`, `"\ud801"`, `"\ufffd"`, `"a\u0000"`, `" a"`, `"\u212a"`, `"k"`, `5`, `50`, `null`, `{}`}
	for _, id := range ids {
		p.do(bash(id, "ls"))
	}
	require.Equal(t, len(ids), p.m.Open(), "ids that differ are different requests, however alike they are")
	for _, id := range []string{`"5"`, `"null"`, `"\ud802"`, `""`} {
		p.do(takesBack(id))
	}
	assert.Equal(t, len(ids), p.m.Open(), "none was taken back")
	p.do(takesBack("5.0"))
	p.do(takesBack(`"\u0061"`))
	assert.Equal(t, len(ids)-2, p.m.Open(), "the same number, the same text")

	p.do("call c set_model")
	for _, id := range []string{`"Cx"`, `null`, `5`, `["c"]`, `{}`, `" c"`} {
		p.do(`{"type":"control_response","response":{"subtype":"success","request_id":` + id + `}}`)
	}
	assert.NotContains(t, strings.Join(p.log, "\n"), "call c")
	p.do(answered("c", `"yes"`))
	assert.Contains(t, p.log, `call c: "yes"`)
}

package machine_test

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// bench is a routing whose processes die.
type bench struct {
	t   *testing.T
	m   *machine.Routing
	now time.Time
	gen int
	out []machine.Effect // of the last step
	all []machine.Effect
}

func newBench(t *testing.T, remembers bool) *bench {
	t.Helper()
	return &bench{t: t, now: time.Unix(0, 0), m: machine.New(machine.Config{
		Rules: rules{}, RepeatsInit: true, Recovers: true, RemembersMessages: remembers,
	})}
}

func (b *bench) step(in machine.Input) []machine.Effect {
	b.t.Helper()
	b.out = b.m.Step(b.now, in, nil)
	b.all = append(b.all, b.out...)
	return b.out
}

func (b *bench) read(frames ...protocol.Frame) []machine.Effect {
	b.t.Helper()
	return b.step(machine.FramesRead{Frames: frames})
}

// ready connects the next process and returns what the user's side is written first.
func (b *bench) ready() []string {
	b.t.Helper()
	b.gen++
	from := len(b.all)
	b.step(machine.Connected{Gen: b.gen})
	answered := make(map[string]bool)
	for range 3 {
		for _, line := range written(b.all[from:]) {
			if id := line.ID.Text(); !answered[id] && strings.HasPrefix(id, machine.OwnID) {
				answered[id] = true
				b.read(frame(`{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":{}}}`, id))
			}
		}
	}
	require.True(b.t, b.m.Snapshot().Told.Initialized)
	return lines(b.all[from:])
}

// lines are the lines of the user's that out writes.
func lines(out []machine.Effect) (all []string) {
	for _, e := range out {
		if w, ok := e.(machine.Write); ok && !strings.Contains(string(w.Line), machine.OwnID) {
			all = append(all, strings.TrimSpace(string(w.Line)))
		}
	}
	return all
}

func (b *bench) send(id string) []machine.Effect {
	b.t.Helper()
	return b.step(machine.UserSent{ID: id, Line: []byte(id), Prompt: true})
}

// die ends the process and returns what the routing says was open.
func (b *bench) die(policy session.Recovery) machine.Parted {
	b.t.Helper()
	b.step(machine.Disconnected{})
	b.step(machine.OutputEnded{})
	var parted machine.Parted
	for _, e := range b.step(machine.Lost{Gen: b.gen, Reason: io.ErrUnexpectedEOF}) {
		switch e := e.(type) {
		case machine.Parted:
			parted = e
		case machine.Write:
			b.t.Fatalf("nothing reaches a process that has ended: %s", e.Line)
		}
	}
	b.step(machine.Verdict{Gen: b.gen, Policy: policy, Reason: io.ErrUnexpectedEOF})
	return parted
}

// over are the turns and calls of the user's that out ends.
func over(out []machine.Effect) map[string]error {
	ended := make(map[string]error)
	for _, e := range out {
		switch e := e.(type) {
		case machine.TurnOver:
			ended[e.ID] = e.Err
		case machine.CallOver:
			if !strings.HasPrefix(e.ID, machine.OwnID) {
				ended[e.ID] = e.Err
			}
		case machine.Deliver:
			for _, entry := range e.Entries {
				for _, o := range entry.Ends {
					ended[o.ID] = o.Err
				}
			}
		}
	}
	return ended
}

func events[E session.Event](out []machine.Effect) (all []E) {
	for _, e := range out {
		if e, ok := e.(machine.Emit); ok {
			if e, ok := e.Event.(E); ok {
				all = append(all, e)
			}
		}
	}
	return all
}

func lifecycle(id, state string) protocol.Frame {
	return frame(`{"type":"command_lifecycle","command_uuid":%q,"state":%q}`, id, state)
}

func begin(uuids ...string) protocol.Frame {
	list, err := json.Marshal(uuids)
	if err != nil {
		panic(err)
	}
	return frame(`{"type":"system","subtype":"init","session_id":"s","user_message_uuids":%s}`, list)
}

func resultOf(uuids ...string) protocol.Frame {
	list, err := json.Marshal(uuids)
	if err != nil {
		panic(err)
	}
	return frame(`{"type":"result","subtype":"success","is_error":false,"result":"ok","user_message_uuids":%s}`, list)
}

var toolUse = frame(`{"type":"assistant","message":{"model":"m","content":[{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"pay"}}]}}`)

// TestAnotherProcess: requests of a process that died are nobody's, calls that were
// written end unless they only read, what was not written goes to the next process.
func TestAnotherProcess(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	b.ready()
	b.send("old")
	b.read(begin("old"), frame(`{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool"}}`))
	asked := b.m.Snapshot().Requests[0].Seq
	for _, subtype := range []string{"x", "get_settings"} {
		b.step(machine.Called{ID: subtype, Subtype: subtype, Body: json.RawMessage(`{"subtype":"x"}`)})
	}
	b.step(machine.Disconnected{})
	b.send("new")
	b.step(machine.Called{ID: "unwritten", Subtype: "x", Body: json.RawMessage(`{"subtype":"x"}`)})
	from := len(b.all)
	parted := b.die(session.RecoverReport)
	require.Equal(t, map[string]error{"old": io.ErrUnexpectedEOF, "x": io.ErrUnexpectedEOF}, over(b.all[from:]))
	require.Contains(t, b.all[from:], machine.Effect(machine.Cancel{Seq: asked, Kind: session.KindPermission}))
	require.Equal(t, machine.Parted{Gen: 1, SessionID: "s", Messages: []session.FailedMessage{{UUID: "old", Accepted: true}}, Gates: 1,
		Wanted: machine.Wanted{Messages: []string{"old"}}}, parted)
	require.False(t, b.m.Snapshot().Told.Initialized)
	require.True(t, b.m.Snapshot().Told.Waiting)

	again := b.ready()
	require.Len(t, again, 3)
	require.Contains(t, again[0], `"get_settings"`)
	require.Equal(t, "new", again[1])
	require.Contains(t, again[2], `"unwritten"`)
	b.read(frame(`{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool"}}`))
	for _, e := range b.step(machine.Answered{Seq: asked, Kind: session.KindPermission, ID: "r1", Response: json.RawMessage(`{"behavior":"allow"}`)}) {
		_, wrote := e.(machine.Write)
		require.False(t, wrote, "a late answer is not one to the next process's request of that id")
	}
	require.Len(t, b.m.Snapshot().Requests, 1)
	require.Equal(t, "s", b.die(session.RecoverReport).SessionID, "also if this one did not say it")
	require.Len(t, events[*session.Recovered](b.all), 1)
}

// TestAnotherSession: an agent that is in another session is not used.
func TestAnotherSession(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	b.ready()
	b.send("u")
	b.read(lifecycle("u", "started"), begin("u"))
	b.die(session.RecoverContinue)
	b.ready()
	out := b.read(frame(`{"type":"system","subtype":"init","session_id":"another"}`))
	var wrong *machine.Unusable
	for _, e := range out {
		if e, ok := e.(machine.Unusable); ok {
			wrong = &e
		}
	}
	require.NotNil(t, wrong)
	require.ErrorAs(t, wrong.Err, new(*session.RecoveryError))
	require.ErrorContains(t, wrong.Err, "in session another, not in s")
	require.ErrorIs(t, over(b.read(resultOf("u")))["u"], io.ErrUnexpectedEOF, "what it says does not count")
}

// TestContinue, by what the agent was seen to do before it died, and by whether the
// message had reached its transcript.
func TestContinue(t *testing.T) {
	t.Parallel()
	seen := map[string][]protocol.Frame{
		"nothing":       nil,
		"queued":        {lifecycle("u", "queued")},
		"started":       {lifecycle("u", "queued"), lifecycle("u", "started")},
		"begun":         {lifecycle("u", "queued"), lifecycle("u", "started"), begin("u")},
		"a tool called": {lifecycle("u", "started"), begin("u"), toolUse},
	}
	for name, frames := range seen {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tools := name == "a tool called"
			began := func(b *bench) {
				t := b.t
				t.Helper()
				require.Equal(t, []string{"u"}, lines(b.send("u")))
				if len(frames) == 0 { // it has shown what it is before
					b.read(lifecycle("earlier", "completed"))
				}
				b.read(frames...)
				parted := b.die(session.RecoverContinue)
				require.Equal(t, name != "nothing" && name != "queued", parted.Messages[0].Accepted)
				if tools {
					require.Equal(t, []session.RunningTool{{ID: "t1", Name: "Bash"}}, parted.Tools)
				}
				require.Empty(t, over(b.all), "its turn lives on")
			}
			want := "u"
			if tools {
				want = `{"again":"u","done":1}`
			}
			t.Run("lost", func(t *testing.T) {
				t.Parallel()
				b := newBench(t, true)
				b.ready()
				began(b)
				require.Equal(t, []string{want}, b.ready())
				require.Empty(t, lines(b.send("later")), "one after the other")
				out := b.read(lifecycle("u", "queued"), lifecycle("u", "started"))
				require.Equal(t, []string{"later"}, lines(out))
				said := events[*session.Recovered](out)
				require.Len(t, said, 1)
				require.Equal(t, session.SentAgain, said[0].Sent)
				b.read(begin("u"), resultOf("u"))
				end := over(b.all)
				require.Contains(t, end, "u")
				require.NoError(t, end["u"])
				require.NotContains(t, end, "later")
				requireRecovered(t, b.out)
			})
			t.Run("accepted", func(t *testing.T) {
				t.Parallel()
				b := newBench(t, true)
				b.ready()
				began(b)
				require.Equal(t, []string{want}, b.ready())
				require.Empty(t, lines(b.send("later")))
				out := b.read(lifecycle("u", "completed"))
				alias := b.m.Snapshot().Turns[0].Alias
				require.Len(t, alias, 36)
				done := 0
				if tools {
					done = 1
				}
				require.Equal(t, []string{fmt.Sprintf(`{"onward":"u","uuid":%q,"done":%d,"quote":false}`, alias, done), "later"}, lines(out))
				require.Equal(t, session.SentContinuation, events[*session.Recovered](out)[0].Sent)
				b.read(lifecycle(alias, "started"), begin(alias), resultOf(alias), lifecycle(alias, "completed"))
				end := over(b.all)
				require.Contains(t, end, "u")
				require.NoError(t, end["u"])
				require.NotContains(t, end, "later")
				requireRecovered(t, b.out)
			})
			t.Run("it dies again", func(t *testing.T) {
				t.Parallel()
				b := newBench(t, true)
				b.ready()
				began(b)
				b.ready()
				b.read(lifecycle("u", "completed"))
				first := b.m.Snapshot().Turns[0].Alias
				b.die(session.RecoverContinue)
				require.Contains(t, b.ready()[0], fmt.Sprintf(`"uuid":%q`, first), "now that message may be lost, or not")
				b.read(lifecycle(first, "completed"))
				second := b.m.Snapshot().Turns[0].Alias
				require.NotEqual(t, first, second)
				b.read(lifecycle(second, "started"), resultOf(second))
				require.NoError(t, over(b.all)["u"])
			})
			t.Run("no signal", func(t *testing.T) {
				t.Parallel()
				b := newBench(t, false)
				b.ready()
				require.Equal(t, []string{"u"}, lines(b.send("u")))
				b.read(frames...)
				b.die(session.RecoverContinue)
				if name == "nothing" || name == "queued" {
					require.Equal(t, map[string]error{"u": io.ErrUnexpectedEOF}, over(b.out), "nobody knows")
					return
				}
				again := b.ready()
				require.Len(t, again, 1)
				require.Contains(t, again[0], `"quote":true`)
				require.NotContains(t, again[0], `"uuid":"u"`)
				b.read(begin(), frame(`{"type":"result","subtype":"success","is_error":false,"result":"ok"}`))
				require.Contains(t, over(b.all), "u")
				require.NoError(t, over(b.all)["u"])
			})
		})
	}
}

func requireRecovered(t *testing.T, out []machine.Effect) {
	t.Helper()
	for _, e := range out {
		d, ok := e.(machine.Deliver)
		if !ok {
			continue
		}
		for _, entry := range d.Entries {
			if len(entry.Ends) > 0 {
				assert.True(t, entry.Recovered)
				assert.True(t, entry.Ends[0].Result.Recovered)
				return
			}
		}
	}
	assert.Fail(t, "no result")
}

// TestContinueSeveral: messages that the agent had taken up in one turn go on together,
// those in its queue were lost.
func TestContinueSeveral(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	b.ready()
	b.read(lifecycle("earlier", "completed"))
	for _, id := range []string{"one", "two", "three"} {
		b.send(id)
	}
	b.read(lifecycle("one", "started"), begin("one"), toolUse)
	require.Len(t, b.die(session.RecoverContinue).Messages, 3)
	require.Equal(t, []string{`{"again":"one","done":1}`}, b.ready())
	out := lines(b.read(lifecycle("one", "completed")))
	alias := b.m.Snapshot().Turns[0].Alias
	require.Len(t, out, 2)
	require.Contains(t, out[0], alias)
	require.Equal(t, "two", out[1], "the tool call was not of this one")
	require.Equal(t, []string{"three"}, lines(b.read(lifecycle("two", "completed"))))
	b.read(lifecycle("three", "queued"), lifecycle(alias, "started"), begin(alias), resultOf(alias))
	require.Equal(t, map[string]error{"one": nil, "two": nil}, over(b.all))
	b.read(lifecycle("three", "started"), begin("three"), resultOf("three"))
	require.Equal(t, map[string]error{"one": nil, "two": nil, "three": nil}, over(b.all))
	sent := make(map[string]session.Sent)
	for _, e := range events[*session.Recovered](b.all) {
		sent[e.Message] = e.Sent
	}
	require.Equal(t, map[string]session.Sent{"one": session.SentContinuation, "two": session.SentNothing, "three": session.SentAgain}, sent)
}

// TestContinueSeveralAgain: messages that continue together after a process has died stay
// together when the next one dies, too: the message that they share is written once to each.
func TestContinueSeveralAgain(t *testing.T) {
	t.Parallel()
	t.Run("answered", func(t *testing.T) { t.Parallel(); continueSeveralAgain(t, false) })
	t.Run("silent", func(t *testing.T) { t.Parallel(); continueSeveralAgain(t, true) })
}

func continueSeveralAgain(t *testing.T, silent bool) {
	t.Helper()
	b := newBench(t, true)
	b.ready()
	b.read(lifecycle("earlier", "completed"))
	for _, id := range []string{"one", "two", "three"} {
		b.send(id)
	}
	b.read(lifecycle("one", "started"), begin("one"), toolUse)
	b.die(session.RecoverContinue)
	b.ready()
	b.read(lifecycle("one", "completed"))
	b.read(lifecycle("two", "completed"))
	first := b.m.Snapshot().Turns[0].Alias
	b.read(lifecycle("three", "queued"), lifecycle(first, "started"), begin(first), toolUse)
	b.die(session.RecoverContinue)
	again := b.ready()
	require.Len(t, again, 1)
	require.Contains(t, again[0], first)
	if silent {
		b.now = b.now.Add(time.Minute)
		require.Equal(t, []string{"three"}, lines(b.step(machine.TimerFired{})))
		for _, id := range []string{"one", "two"} {
			require.ErrorAs(t, over(b.all)[id], new(*session.RecoveryError), id)
		}
		return
	}
	out := lines(b.read(lifecycle(first, "completed")))
	second := b.m.Snapshot().Turns[0].Alias
	require.NotEqual(t, first, second)
	require.Len(t, out, 2)
	require.Contains(t, out[0], second)
	require.Equal(t, "three", out[1])
	b.read(lifecycle("three", "queued"), lifecycle(second, "started"), begin(second), resultOf(second))
	require.Equal(t, map[string]error{"one": nil, "two": nil}, over(b.all))
	b.read(lifecycle("three", "started"), begin("three"), resultOf("three"))
	require.Equal(t, map[string]error{"one": nil, "two": nil, "three": nil}, over(b.all))
}

// TestContinueWithoutAWord: an agent that does not say whether it knows the message does
// not hold up the session.
func TestContinueWithoutAWord(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	b.ready()
	b.read(lifecycle("earlier", "completed"))
	b.send("u")
	b.die(session.RecoverContinue)
	b.ready()
	b.send("later")
	b.now = b.now.Add(59 * time.Second)
	require.Empty(t, over(b.step(machine.TimerFired{})))
	b.now = b.now.Add(time.Second)
	out := b.step(machine.TimerFired{})
	require.ErrorAs(t, over(out)["u"], new(*session.RecoveryError))
	require.ErrorIs(t, over(out)["u"], io.ErrUnexpectedEOF)
	require.Equal(t, []string{"later"}, lines(out))
	b.read(begin("later"), resultOf("later"))
	require.True(t, b.m.Running(), "it may work on the first message yet")
	b.read(frame(`{"type":"system","subtype":"session_state_changed","state":"idle"}`))
	require.False(t, b.m.Running())
}

// TestWhatIsNotContinued ends with the reason: a command of the agent's, and what cannot
// be said again.
func TestWhatIsNotContinued(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	b.ready()
	b.read(lifecycle("earlier", "completed"))
	b.step(machine.UserSent{ID: "/compact", Line: []byte("/compact")})
	b.send("odd")
	b.die(session.RecoverContinue)
	require.Equal(t, map[string]error{"/compact": io.ErrUnexpectedEOF}, over(b.out))
	require.Equal(t, []string{"odd"}, b.ready())
	require.ErrorAs(t, over(b.read(lifecycle("odd", "completed")))["odd"], new(*session.RecoveryError))
	require.Empty(t, b.m.Snapshot().Turns)
}

// TestABranch is resumed where its last turn ended: the agent goes back to the history
// that the branch was cut from otherwise. The message of the turn that ran is quoted.
func TestABranch(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	b.m = machine.New(machine.Config{Rules: rules{}, RepeatsInit: true, Recovers: true, RemembersMessages: true, Branched: true})
	b.ready()
	b.read(lifecycle("earlier", "completed"))
	b.send("one")
	b.read(lifecycle("one", "started"), begin("one"))
	b.read(frame(`{"type":"assistant","uuid":"a1","parent_tool_use_id":null,"message":{"model":"m"}}`),
		frame(`{"type":"assistant","uuid":"sub","parent_tool_use_id":"t1","message":{"model":"m"}}`), resultOf("one"))
	b.send("two")
	b.read(lifecycle("two", "started"), begin("two"), frame(`{"type":"assistant","uuid":"a2","message":{"model":"m"}}`))
	require.Equal(t, "a1", b.die(session.RecoverContinue).Leaf, "what came later may not be stored")
	again := b.ready()
	require.Len(t, again, 1)
	require.Contains(t, again[0], `"quote":true`)

	now := time.Unix(0, 0)
	for leaf, want := range map[string]string{"a1": "a1", "": "cut"} {
		cfg := lives
		cfg.Recovery.Branch = "cut"
		l := machine.NewLife(cfg)
		l.Step(now, machine.Began{}, nil)
		up(l, now, 1)
		l.Step(now, machine.Changed{Summary: &machine.Summary{Gen: 1, Initialized: true, Drained: true}}, nil)
		l.Step(now, machine.Linked{Link: machine.Link{Gen: 1, Phase: machine.Gone}}, nil)
		l.Step(now, machine.Parted{Gen: 1, SessionID: "s", Leaf: leaf}, nil)
		require.Equal(t, &machine.Launch{Gen: 2, Resume: "s", At: want}, relaunch(l, now))
	}
}

// TestRerun: each message goes to the next process as a new one, whatever was seen of it,
// and whether or not the agent remembers messages.
func TestRerun(t *testing.T) {
	t.Parallel()
	for name, remembers := range map[string]bool{"remembers": true, "forgets": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, remembers)
			b.ready()
			b.send("one")
			b.step(machine.UserSent{ID: "two", Line: []byte("two")}) // no prompt: a slash command
			b.read(lifecycle("one", "started"), begin("one"), toolUse)
			b.die(session.RecoverRerun)
			require.Empty(t, over(b.all), "their turns live on")
			again := b.ready()
			turns := b.m.Snapshot().Turns
			require.Len(t, turns, 2)
			require.Equal(t, []string{
				fmt.Sprintf(`{"afresh":"one","uuid":%q}`, turns[0].Alias), fmt.Sprintf(`{"afresh":"two","uuid":%q}`, turns[1].Alias),
			}, again)
			require.NotEqual(t, turns[0].Alias, turns[1].Alias)
			said := events[*session.Recovered](b.all)
			require.Len(t, said, 2)
			require.Equal(t, session.Recovered{SessionID: "s", Message: "one", Sent: session.SentRerun, Why: "the policy is rerun"}, *said[0])

			b.die(session.RecoverRerun) // which counts as yet another message
			require.NotContains(t, b.ready(), again[0])
			b.read(begin(b.m.Snapshot().Turns[0].Alias), resultOf(b.m.Snapshot().Turns[0].Alias))
			end := over(b.all)
			require.Contains(t, end, "one")
			require.NoError(t, end["one"])
			requireRecovered(t, b.out)
		})
	}
}

// TestARerunThatCannotBeWritten ends with the reason.
func TestARerunThatCannotBeWritten(t *testing.T) {
	t.Parallel()
	b := newBench(t, true)
	b.ready()
	b.step(machine.UserSent{ID: "u", Line: []byte("odd"), Prompt: true})
	b.die(session.RecoverRerun)
	err := over(b.all)["u"]
	require.ErrorAs(t, err, new(*session.RecoveryError))
	require.ErrorContains(t, err, errOdd.Error())
}

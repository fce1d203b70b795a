package machine_test

import (
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// dieWith is die, with a transcript.
func (b *bench) dieWith(h machine.History) machine.Parted {
	b.t.Helper()
	b.step(machine.Disconnected{})
	b.step(machine.OutputEnded{})
	var parted machine.Parted
	for _, e := range b.step(machine.Lost{Gen: b.gen, Reason: io.ErrUnexpectedEOF}) {
		if e, ok := e.(machine.Parted); ok {
			parted = e
		}
	}
	b.step(machine.Verdict{Gen: b.gen, Policy: session.RecoverContinue, Reason: io.ErrUnexpectedEOF, History: h})
	return parted
}

// TestTheTranscriptDecides where the agent does not say whether it knows a message: together
// with what was seen of it.
func TestTheTranscriptDecides(t *testing.T) {
	t.Parallel()
	stored := func(ids ...string) machine.History { return machine.History{Known: true, Messages: ids} }
	const anew, onward, quoted, ends = `{"afresh":%q,"uuid":%q}`, `{"onward":%q,"uuid":%q,"done":0,"quote":false}`, `{"onward":%q,"uuid":%q,"done":0,"quote":true}`, ""
	for name, c := range map[string]struct {
		seen    []protocol.Frame
		history machine.History
		one     string
		two     string
	}{
		"nothing is known":       {nil, machine.History{}, ends, ends},
		"nothing is stored":      {nil, stored(), anew, anew},
		"there is no transcript": {nil, machine.History{Known: true, Missing: true}, anew, anew},
		"the first is stored":    {nil, stored("one"), onward, ends},
		"both are":               {nil, stored("one", "two"), onward, onward},
		"the second is":          {nil, stored("two"), anew, onward},
		"seen, nothing stored":   {[]protocol.Frame{begin("one")}, stored(), quoted, ends},
		"seen and stored":        {[]protocol.Frame{begin("one")}, stored("one"), onward, ends},
		"seen, nothing known":    {[]protocol.Frame{begin("one")}, machine.History{}, quoted, ends},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, false)
			b.ready()
			b.send("one")
			b.send("two")
			b.read(c.seen...)
			require.Equal(t, []string{"one", "two"}, b.dieWith(c.history).Wanted.Messages)
			ended := over(b.all)
			var want []string
			for _, turn := range b.m.Snapshot().Turns {
				format := map[string]string{"one": c.one, "two": c.two}[turn.ID]
				require.NotEqual(t, turn.ID, turn.Alias, "no uuid twice")
				want = append(want, fmt.Sprintf(format, turn.ID, turn.Alias))
			}
			for id, format := range map[string]string{"one": c.one, "two": c.two} {
				require.Equal(t, format == ends, ended[id] != nil, id)
			}
			require.Equal(t, want, b.ready())
		})
	}
}

// TestAnotherDeath: a message that was quoted is not sent without what the quote said.
func TestAnotherDeath(t *testing.T) {
	t.Parallel()
	known := machine.History{Known: true}
	b := newBench(t, false)
	b.ready()
	b.send("u")
	b.read(begin("u"), toolUse)
	b.dieWith(known)
	require.Contains(t, b.ready()[0], `"done":1,"quote":true`)
	b.dieWith(known)
	require.Contains(t, b.ready()[0], `"done":1,"quote":true`)
	alias := b.m.Snapshot().Turns[0].Alias
	require.Equal(t, []string{"u", alias}, b.dieWith(machine.History{Known: true, Messages: []string{alias}}).Wanted.Messages)
	require.Contains(t, b.ready()[0], `"done":1,"quote":false`)
}

// TestOnlyWhatTheHistoryLacks is told the model.
func TestOnlyWhatTheHistoryLacks(t *testing.T) {
	t.Parallel()
	call := func(id string) protocol.Frame {
		return frame(`{"type":"assistant","uuid":"a-%s","message":{"model":"m","content":[{"type":"tool_use","id":%q,"name":"Bash","input":{}}]}}`, id, id)
	}
	answer := func(id string) protocol.Frame {
		return frame(`{"type":"user","uuid":"r-%s","message":{"content":[{"type":"tool_result","tool_use_id":%q}]}}`, id, id)
	}
	b := newBench(t, true)
	b.ready()
	b.send("u")
	b.read(lifecycle("u", "started"), begin("u"), call("t1"), answer("t1"), call("t2"), answer("t2"), call("t3"),
		frame(`{"type":"assistant","uuid":"sub","parent_tool_use_id":"t3","message":{"model":"m"}}`))
	parted := b.dieWith(machine.History{Known: true, Messages: []string{"u"}, Calls: []string{"t1", "t2"}, Results: []string{"t1"}})
	require.Equal(t, []string{"a-t1", "r-t1", "a-t2", "r-t2", "a-t3"}, parted.Wanted.Shown)
	require.Len(t, parted.Wanted.Calls, 3)
	require.Equal(t, []string{`{"again":"u","done":2}`}, b.ready(), "t2 and t3")
	require.Contains(t, lines(b.read(lifecycle("u", "completed")))[0], `"done":2`)
	b.read(resultOf(b.m.Snapshot().Turns[0].Alias))
	require.Empty(t, b.m.Snapshot().Recovery.Shown, "what comes before a result is stored")
	for i := range 100 {
		b.read(frame(`{"type":"assistant","uuid":"%d","message":{"model":"m"}}`, i))
	}
	shown := b.m.Snapshot().Recovery.Shown
	require.Len(t, shown, 64)
	require.Equal(t, "99", shown[63])
}

// reading is a life whose first process has died in a turn, and whose transcript is read.
func reading(t *testing.T, cfg machine.LifeConfig, now time.Time) *machine.Life {
	t.Helper()
	cfg.Recovery.Reads = true
	l := machine.NewLife(cfg)
	l.Step(now, machine.Began{}, nil)
	up(l, now, 1)
	diesAgain(t, l, now, true)
	return l
}

// diesAgain ends the present process. ready: it was.
func diesAgain(t *testing.T, l *machine.Life, now time.Time, ready bool) {
	t.Helper()
	gen := l.Snapshot().Gen
	l.Step(now, machine.Changed{Summary: &machine.Summary{Gen: gen, Initialized: ready, Drained: true, Heard: l.Snapshot().Sent}}, nil)
	l.Step(now, machine.Linked{Link: machine.Link{Gen: gen, Phase: machine.Gone}}, nil)
	out := l.Step(now, machine.Parted{Gen: gen, SessionID: "s", Wanted: machine.Wanted{
		Shown: []string{"a", "b", "c"}, Calls: []machine.ToolCall{{ID: "t1", Name: "Bash", Over: true}, {ID: "t2", Name: "Write"}, {ID: "t3", Name: "Read"}},
	}}, nil)
	var asks []machine.ReadHistory
	for _, e := range out {
		if e, ok := e.(machine.ReadHistory); ok {
			asks = append(asks, e)
		}
	}
	require.Len(t, asks, 1)
	require.Equal(t, "s", asks[0].SessionID)
	require.Equal(t, gen, asks[0].Gen)
}

// TestASessionThatWasNeverStored is begun at once, under the same id, unless it must be
// there: a result came, or the options resume it. A start that failed casts doubt on that.
func TestASessionThatWasNeverStored(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	missing := machine.History{Known: true, Missing: true}
	l := reading(t, lives, now)
	l.Step(now, machine.HistoryRead{Gen: 1, History: missing}, nil)
	require.Equal(t, &machine.Launch{Gen: 2, Resume: "s", Fresh: true}, relaunch(l, now))
	diesAgain(t, l, now, false)
	l.Step(now, machine.HistoryRead{Gen: 2, History: missing}, nil)
	require.Equal(t, &machine.Launch{Gen: 3, Resume: "s"}, relaunch(l, now), "its id may be taken")

	stored := lives
	stored.Recovery.Stored = true
	l = reading(t, stored, now)
	l.Step(now, machine.HistoryRead{Gen: 1, History: missing}, nil)
	require.Equal(t, &machine.Launch{Gen: 2, Resume: "s"}, relaunch(l, now), "the agent itself is to say so")
}

// TestATranscriptThatIsNotRead in time holds nothing up.
func TestATranscriptThatIsNotRead(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	l := reading(t, lives, now)
	require.Empty(t, l.Step(now.Add(time.Second), machine.HistoryRead{Gen: 7}, nil), "of another process")
	require.Empty(t, texts(l.Step(now.Add(time.Second), machine.Changed{Summary: l.Snapshot().Routing}, nil)))
	late := now.Add(2 * time.Second)
	l.Step(late, machine.Tick{}, nil)
	require.Empty(t, l.Step(late, machine.HistoryRead{Gen: 1, History: machine.History{Known: true, Missing: true}}, nil), "too late")
	require.Equal(t, &machine.Launch{Gen: 2, Resume: "s"}, relaunch(l, late))
}

// TestWhatIsLost is what was shown and is not stored.
func TestWhatIsLost(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	call := func(id, name string) session.LostTool { return session.LostTool{ID: id, Name: name, Call: true} }
	for name, c := range map[string]struct {
		cfg     machine.LifeConfig
		history machine.History
		lost    session.LostHistory
	}{
		"nothing is known":  {lives, machine.History{}, session.LostHistory{}},
		"nothing is stored": {lives, machine.History{Known: true}, session.LostHistory{Known: true, Messages: []string{"a", "b", "c"}, Tools: []session.LostTool{call("t1", "Bash"), call("t2", "Write"), call("t3", "Read")}}},
		"a part is": {lives, machine.History{Known: true, Shown: []string{"b"}, Calls: []string{"t1", "t2"}}, session.LostHistory{Known: true,
			Messages: []string{"c"}, Tools: []session.LostTool{{ID: "t1", Name: "Bash"}, call("t3", "Read")},
		}},
		"all is": {lives, machine.History{Known: true, Shown: []string{"a", "b", "c"}, Calls: []string{"t1", "t2", "t3"}, Results: []string{"t1"}}, session.LostHistory{Known: true}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := reading(t, c.cfg, now)
			out := l.Step(now, machine.HistoryRead{Gen: 1, History: c.history}, nil)
			out = l.Step(now, machine.Drawn{Gen: 1}, out)
			said := events[*session.Recovering](out)
			require.Len(t, said, 1)
			require.Equal(t, c.lost, said[0].Death.Lost)
		})
	}
}

// TestWhatABranchLoses is all of the turn: it is resumed at the end of the turn before.
func TestWhatABranchLoses(t *testing.T) {
	t.Parallel()
	now := time.Unix(0, 0)
	cfg := lives
	cfg.Recovery.Branch, cfg.Recovery.Reads = "cut", true
	l := machine.NewLife(cfg)
	l.Step(now, machine.Began{}, nil)
	up(l, now, 1)
	l.Step(now, machine.Linked{Link: machine.Link{Gen: 1, Phase: machine.Gone}}, nil)
	l.Step(now, machine.Changed{Summary: &machine.Summary{Gen: 1, Initialized: true, Drained: true, Heard: l.Snapshot().Sent}}, nil)
	l.Step(now, machine.Parted{Gen: 1, SessionID: "s", Wanted: machine.Wanted{Shown: []string{"a"}}}, nil)
	said := events[*session.Recovering](l.Step(now, machine.Drawn{Gen: 1}, nil))
	require.Len(t, said, 1)
	require.Equal(t, session.LostHistory{Known: true, Messages: []string{"a"}}, said[0].Death.Lost)
}

// TestAnotherWorkspace: an agent that works elsewhere than the session is not used. Where
// the session has gone itself is no other place.
func TestAnotherWorkspace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before, after string // more of the messages that begin a turn
		strays        bool
	}{
		"the same":              {`"cwd":"/w"`, `"cwd":"/w"`, false},
		"another":               {`"cwd":"/w"`, `"cwd":"/x"`, true},
		"not said":              {`"cwd":"/w"`, `"x":1`, false},
		"said for the first":    {`"x":1`, `"cwd":"/x"`, false},
		"where it began":        {`"cwd":"/w/tree","original_cwd":"/w"`, `"cwd":"/w/other","original_cwd":"/w/tree"`, false},
		"another, where it was": {`"cwd":"/w"`, `"cwd":"/x","original_cwd":"/y"`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, true)
			b.ready()
			b.send("u")
			b.read(lifecycle("u", "started"), frame(`{"type":"system","subtype":"init","session_id":"s",%s}`, c.before))
			b.die(session.RecoverContinue)
			b.ready()
			var wrong error
			for _, e := range b.read(frame(`{"type":"system","subtype":"init","session_id":"s",%s}`, c.after)) {
				if e, ok := e.(machine.Unusable); ok {
					wrong = e.Err
				}
			}
			if !c.strays {
				require.NoError(t, wrong)
				return
			}
			require.ErrorAs(t, wrong, new(*session.RecoveryError))
			require.ErrorContains(t, wrong, "the agent works in /x, not in /w")
		})
	}
}

package machine_test

import (
	"bytes"
	"encoding/json"
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

// What may be written and not taken by the agent, in bytes.
const (
	queueBound = 32 << 20
	smallLine  = 64 << 10
	untold     = 1 << 20 // that much it may have taken before the transport says so
)

// plain are rules that want nothing after initialize. A request is denied with an
// error that says why.
type plain struct{ rules }

func (plain) Initialized([]byte) ([]machine.Called, error) { return nil, nil }

func (plain) Denial(_ session.Kind, _ protocol.Frame, reason string) ([]byte, string) {
	return nil, reason
}

// talk is a machine whose agent is initialized and has taken everything.
type talk struct {
	*machine.Routing
	out []machine.Effect // of the last step
}

func newTalk(t *testing.T) *talk {
	t.Helper()
	k := &talk{Routing: machine.New(machine.Config{Rules: plain{}})}
	k.step(machine.Connected{Gen: 1})
	k.read(`{"type":"control_response","response":{"subtype":"success","request_id":"troupe-1","response":{}}}`)
	k.step(machine.Taken{Bytes: k.Queued})
	require.NotNil(t, k.Facts.Initialized)
	require.Zero(t, k.Queued)
	return k
}

func (k *talk) step(in machine.Input) {
	k.out = k.Step(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), in, nil)
}

func (k *talk) read(line string) {
	k.step(machine.FramesRead{Frames: []protocol.Frame{frame("%s", line)}})
}

func (k *talk) send(id string, size int) { k.step(machine.UserSent{ID: id, Line: make([]byte, size)}) }

// call makes a control request whose line has that size.
func (k *talk) call(id string, size int) {
	bare, _ := protocol.AppendControlRequest(nil, id, json.RawMessage(`""`))
	k.step(machine.Called{ID: id, Subtype: "x", Body: text(size - len(bare))})
}

// answer answers the request x of the agent by a line of that size.
func (k *talk) answer(size int) {
	seq := k.ask("x")
	bare, _ := protocol.TextID("x").AppendSuccess(nil, json.RawMessage(`""`))
	k.step(machine.Answered{Seq: seq, Response: text(size - len(bare))})
}

// refuse denies the request x of the agent by a line of that size.
func (k *talk) refuse(size int) {
	seq := k.ask("x")
	bare := protocol.TextID("x").AppendError(nil, "x", "", "")
	k.step(machine.Answered{Seq: seq, Deny: strings.Repeat("x", 1+size-len(bare))})
}

func (k *talk) ask(id string) uint64 {
	k.read(`{"type":"control_request","request_id":"` + id + `","request":{"subtype":"can_use_tool"}}`)
	return k.Seq
}

// text is a JSON string with n bytes in it.
func text(n int) json.RawMessage {
	return slices.Concat([]byte{'"'}, bytes.Repeat([]byte("x"), n), []byte{'"'})
}

// fill leaves so much queued that n more bytes are one too many for a line that is
// not small.
func (k *talk) fill(t *testing.T, n int) {
	t.Helper()
	left := queueBound + untold - n + 1
	for i := 0; left > 0; i++ {
		size := min(left, queueBound)
		k.send("fill"+string(rune('a'+i)), size)
		left -= size
	}
	require.EqualValues(t, queueBound+untold-n+1, k.Queued, "all of it went out")
	k.step(machine.TimerFired{})
	require.Empty(t, k.out)
}

func effects[E machine.Effect](out []machine.Effect) []E {
	var all []E
	for _, e := range out {
		if e, ok := e.(E); ok {
			all = append(all, e)
		}
	}
	return all
}

func TestWhatBecomesOfALineWithoutRoom(t *testing.T) {
	t.Parallel()
	const small, large, huge = smallLine, smallLine + 1, queueBound + 1
	for name, c := range map[string]struct {
		make  func(k *talk)
		as    machine.Class
		size  int   // of the line that is written; 0: none
		waits bool  // it is written once there is room
		want  error // of its sender, or of an event
	}{
		"a message":             {func(k *talk) { k.send("x", large) }, machine.FromHost, large, true, nil},
		"a small message":       {func(k *talk) { k.send("x", small) }, machine.FromHost, small, false, nil},
		"a message of any size": {func(k *talk) { k.send("x", huge) }, machine.FromHost, 0, false, session.ErrTooLarge},
		"a call":                {func(k *talk) { k.call("x", large) }, machine.FromHost, large, true, nil},
		"a small call":          {func(k *talk) { k.call("x", small) }, machine.FromHost, small, false, nil},
		"a call of any size":    {func(k *talk) { k.call("x", huge) }, machine.FromHost, 0, false, session.ErrTooLarge},
		"an answer":             {func(k *talk) { k.answer(large) }, machine.Denial, -1, false, session.ErrNoRoom},
		"a small answer":        {func(k *talk) { k.answer(small) }, machine.Answer, small, false, nil},
		"an answer of any size": {func(k *talk) { k.answer(huge) }, machine.Denial, -1, false, session.ErrTooLarge},
		"a denial":              {func(k *talk) { k.refuse(large) }, machine.Denial, large, false, nil},
		"a denial of any size":  {func(k *talk) { k.refuse(huge) }, machine.Denial, huge, false, nil},
		"a small answer, again": {func(k *talk) { k.answer(200); k.ask("x") }, machine.Again, 200, false, nil},
		"the answer to a request that no actor takes": {func(k *talk) {
			k.read(`{"type":"control_request","request_id":"x","request":{"subtype":"of_next_week"}}`)
		}, machine.Answer, -1, false, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			k := newTalk(t)
			k.fill(t, 1)
			c.make(k)
			switch lines := effects[machine.Write](k.out); {
			case c.size == 0 || c.waits:
				assert.Empty(t, lines)
			default:
				checkWrite(t, lines, c.as, c.size)
			}
			checkFailure(t, k.out, c.want)
			if c.want == nil {
				k.step(machine.Taken{Bytes: k.Queued})
				if c.waits {
					checkWrite(t, effects[machine.Write](k.out), c.as, c.size)
				} else {
					assert.Empty(t, effects[machine.Write](k.out))
				}
			}
		})
	}
}

// checkWrite wants one line of that size; -1: of a few bytes.
func checkWrite(t *testing.T, out []machine.Write, as machine.Class, size int) {
	t.Helper()
	require.Len(t, out, 1)
	assert.Equal(t, as, out[0].As)
	if size < 0 {
		assert.Less(t, len(out[0].Line), 200)
		return
	}
	assert.Len(t, out[0].Line, size)
}

// checkFailure wants one failure, or none.
func checkFailure(t *testing.T, out []machine.Effect, want error) {
	t.Helper()
	var all []error
	for _, e := range out {
		switch e := e.(type) {
		case machine.TurnOver:
			all = append(all, e.Err)
		case machine.CallOver:
			all = append(all, e.Err)
		case machine.Emit:
			if f, ok := e.Event.(*session.CallbackFailed); ok {
				assert.Equal(t, "x", f.RequestID)
				all = append(all, f.Err)
			}
		}
	}
	if want == nil {
		assert.Empty(t, all)
		return
	}
	require.Len(t, all, 1)
	require.ErrorIs(t, all[0], want)
}

// TestNoRoomIsNoFailure: what waits is written as soon as there is room, in the
// order in which it was made, the small behind the large.
func TestNoRoomIsNoFailure(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	k.fill(t, smallLine+1)
	k.send("large", smallLine+1)
	k.call("behind", 100)
	k.send("last", 100)
	assert.Empty(t, effects[machine.Write](k.out))
	assert.Empty(t, effects[machine.TurnOver](k.out))
	k.step(machine.Taken{Bytes: 1})
	var sizes []int
	for _, w := range effects[machine.Write](k.out) {
		sizes = append(sizes, len(w.Line))
	}
	assert.Equal(t, []int{smallLine + 1, 100, 100}, sizes)
	k.step(machine.Taken{Bytes: 1})
	assert.Empty(t, effects[machine.Write](k.out), "once")
}

// TestALineNeverWaitsForWhatTheAgentHasTaken: the transport says what the agent has
// taken a step behind, and no line may wait for the rest.
func TestALineNeverWaitsForWhatTheAgentHasTaken(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	k.send("a", untold)
	k.send("b", queueBound)
	assert.Len(t, effects[machine.Write](k.out), 1)
	k.send("c", queueBound)
	require.Empty(t, effects[machine.Write](k.out))
	k.step(machine.Taken{Bytes: queueBound})
	assert.Len(t, effects[machine.Write](k.out), 1)
}

// TestADeadTransportIsNoFailure: the session decides what becomes of the work.
func TestADeadTransportIsNoFailure(t *testing.T) {
	t.Parallel()
	k := newTalk(t)
	k.fill(t, smallLine+1)
	k.send("x", smallLine+1)
	open := len(k.Turns)
	k.step(machine.Disconnected{})
	k.send("y", 1)
	k.call("z", 100)
	seq := k.ask("q")
	k.step(machine.Answered{Seq: seq, Response: text(1)})
	assert.Empty(t, effects[machine.Write](k.out), "there is nobody to write to")
	checkFailure(t, k.out, nil)
	assert.Len(t, k.Turns, open+1)
	assert.Len(t, k.Calls, 1)
	assert.Zero(t, k.Open(), "and nobody to answer")
	assert.Zero(t, k.Queued)
}

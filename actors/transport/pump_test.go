package transport_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/router/routertest"
	"github.com/agent-troupe/troupe/actors/user"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// padded is a content line of exactly size bytes.
func padded(size int) string {
	const line = `{"type":"assistant","pad":""}`
	return line[:len(line)-2] + strings.Repeat("x", size-len(line)) + line[len(line)-2:]
}

func TestNoiseIsReportedAndPassed(t *testing.T) {
	t.Parallel()
	for _, chunk := range []int{0, 1, 5} {
		r := newRig(t).up()
		r.proc.out.chunk = chunk
		noise := []string{"null", "42", `"x"`, "[]", "{broken", "Warning: something", `{"type":"assistant"} trailing`}
		var want []string
		for i, line := range noise {
			r.proc.say(assistant(i), line, "", "  ", "\r")
			want = append(want, assistant(i))
		}
		r.proc.say("\t" + assistant(99) + " \r")
		want = append(want, assistant(99))
		r.settle()
		assert.Equal(t, want, r.content(), "the session goes on, chunks of %d", chunk)
		reported := eventsOf[*session.NoiseLine](r)
		require.Len(t, reported, len(noise))
		var frameError *protocol.FrameError
		require.ErrorAs(t, reported[0].Err, &frameError)
		assert.Equal(t, protocol.NotObject, frameError.Kind)
		r.proc.exit(session.ExitStatus{})()
		s := r.ended()
		assert.Equal(t, strings.Join(noise, "\n")+"\n", s.Noise)
	}
}

func TestTheTailOfNoiseIsBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t).up()
	for i := range 100 {
		r.proc.say(fmt.Sprint(i, " ", strings.Repeat("n", 5000)))
	}
	r.proc.exit(session.ExitStatus{})()
	s := r.ended()
	assert.Len(t, s.Noise, 2<<10)
	assert.Contains(t, s.Noise, "99 nnn")
}

func TestAnOversizeLineIsSkippedAndReported(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(_ *rig, s *setup) { s.link.MaxLine = 1000 }).up()
	long := padded(1001)
	r.proc.say(assistant(1), padded(1000), long, assistant(2), strings.Repeat("y", 100_000), assistant(3))
	r.proc.out.write(strings.Repeat("z", 5000)) // and one without an end
	r.proc.exit(session.ExitStatus{})()
	r.ended()
	assert.Equal(t, []string{assistant(1), padded(1000), long[:256], assistant(2), assistant(3)}, r.content(), "a message has its place")
	assert.Equal(t, []*session.OversizeLine{
		{Length: 1001, Ceiling: 1000, Head: long[:256]},
		{Length: 100_000, Ceiling: 1000, Head: strings.Repeat("y", 256)},
		{Length: 5000, Ceiling: 1000, Head: strings.Repeat("z", 256)},
	}, eventsOf[*session.OversizeLine](r))
}

func TestAResultThatIsSkippedTakesItsTurn(t *testing.T) {
	t.Parallel()
	for _, chunk := range []int{0, 7} {
		r := newRig(t, func(_ *rig, s *setup) { s.link.MaxLine = 1000 }).up()
		r.proc.out.chunk = chunk
		var turns []*user.Turn
		for _, id := range []string{"a", "b"} {
			turn, err := r.side.Send(context.Background(), &protocol.UserMessage{Common: protocol.Common{UUID: id}})
			require.NoError(t, err)
			turns = append(turns, turn)
		}
		before := r.frames
		r.proc.say(assistant(1), `{"type":"result","user_message_uuid":"a"}`, `{"type":"result","result":"`+strings.Repeat("x", 1000), assistant(2))
		r.settle()
		assert.Greater(t, r.frames, before, "the router is told")
		assert.Len(t, r.content(), 4)
		_, err := turns[0].Result()
		require.NoError(t, err)
		_, err = turns[1].Result()
		require.ErrorIs(t, err, session.ErrResultSkipped)
		r.proc.exit(session.ExitStatus{})()
		r.ended()
	}
}

func TestALineAtTheDefaultCeiling(t *testing.T) {
	t.Parallel()
	budget := user.NewBudget(1 << 20) // one line may overdraw it
	r := newRig(t, func(_ *rig, s *setup) { s.side.Budget = budget }).up()
	line := padded(protocol.DefaultMaxLine)
	r.proc.say(line, assistant(1))
	r.settle()
	assert.EqualValues(t, len(line), budget.Used())
	got := r.content()
	require.True(t, len(got) == 2 && got[0] == line && got[1] == assistant(1), "%d lines", len(got)) // too long to print
	assert.Zero(t, budget.Used())
	assert.Empty(t, eventsOf[*session.OversizeLine](r))
	r.proc.exit(session.ExitStatus{})()
	r.ended()
}

func TestAStoppedReaderLeavesThePipeAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(_ *rig, s *setup) { s.side.Limits = &session.Limits{Messages: 2} }).up()
	r.proc.out.chunk = len(assistant(1)) + 1
	for i := range 9 {
		r.proc.say(assistant(i))
	}
	r.pass(time.Hour)
	assert.Equal(t, 2, r.proc.out.reads)
	assert.True(t, r.side.told.Stalled)
	assert.Less(t, r.sched.Steps(), 1000, "nothing spins")
	assert.Len(t, r.content(), 2)
	r.settle()
	assert.Greater(t, r.proc.out.reads, 2)
	for r.side.unread() > 0 {
		r.content()
		r.settle()
	}
	assert.Equal(t, 9, r.proc.out.reads)
	r.proc.exit(session.ExitStatus{})()
	r.ended()
}

// TestTwoFullPipes has an agent that reads only when it is read from, and a
// consumer that stands still: what is written to it must not wait for ever.
func TestTwoFullPipes(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(_ *rig, s *setup) { s.side.Limits = &session.Limits{Messages: 2} }).up()
	r.proc.out.chunk = len(assistant(1)) + 1
	r.proc.in.blocked = make(chan struct{})
	for i := range 9 {
		r.proc.say(assistant(i))
	}
	r.settle()
	require.Equal(t, 2, r.proc.out.reads)
	call, err := r.side.Call("a", []byte(`{"subtype":"a"}`), 0)
	require.NoError(t, err)
	r.side.Abandon(call, kernel.ErrStopped) // no call waits: only the pipe is full
	r.settle()
	assert.Equal(t, 9, r.proc.out.reads, "while a write is pending it reads on")
	close(r.proc.in.blocked)
	r.proc.in.blocked = nil
	r.proc.exit(session.ExitStatus{})()
	r.ended()
}

// TestAnAgentThatAsksAndDoesNotRead makes more requests than answers may wait.
func TestAnAgentThatAsksAndDoesNotRead(t *testing.T) {
	t.Parallel()
	for name, repeat := range map[string]bool{"requests": false, "one request": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const requests, size = 300, 60_000
			r := newRig(t).up()
			if repeat { // answers are remembered in a turn
				_, err := r.side.Send(context.Background(), &protocol.UserMessage{})
				require.NoError(t, err)
			}
			r.proc.out.chunk = 32 << 10
			r.proc.in.blocked = make(chan struct{})
			for i := range requests {
				id := fmt.Sprint("q", i)
				if repeat {
					id = "q"
				}
				r.proc.say(`{"type":"control_request","request_id":"` + id + `","request":{"subtype":"` + strings.Repeat("x", size) + `"}}`)
			}
			all := len(r.proc.out.buf)
			for range requests {
				r.pass(time.Minute)
			}
			assert.NotEmpty(t, r.proc.out.buf, "it is not read from")
			assert.Empty(t, r.proc.in.got.Bytes())
			waits := r.waits()
			require.NotEmpty(t, waits)
			assert.Equal(t, "agent to take its answers", waits[0].What)
			assert.Greater(t, waits[0].Age, time.Hour)
			if !repeat {
				assert.Less(t, all-len(r.proc.out.buf), 8<<20+8<<20, "the bound, and what had been read by then")
			}

			close(r.proc.in.blocked) // it reads at last
			r.proc.in.blocked = nil
			for len(r.proc.out.buf) > 0 {
				r.settle()
			}
			r.settle()
			if repeat {
				assert.Len(t, eventsOf[*session.RepeatedRequest](r), requests-1)
			} else {
				assert.Empty(t, r.waits())
				assert.Equal(t, requests, strings.Count(r.proc.in.got.String(), "\n"), "answered-once")
			}
			r.proc.exit(session.ExitStatus{})()
			r.ended()
		})
	}
}

// TestAnAgentThatAsksDoesNotReadAndEnds leaves more than is read before.
func TestAnAgentThatAsksDoesNotReadAndEnds(t *testing.T) {
	t.Parallel()
	r := newRig(t).up()
	r.proc.out.chunk = 32 << 10
	r.proc.in.blocked = make(chan struct{})
	for i := range 300 {
		r.proc.say(fmt.Sprintf(`{"type":"control_request","request_id":"q%d","request":{"subtype":"%s"}}`, i, strings.Repeat("x", 60_000)))
	}
	r.proc.say(assistant(1))
	for range 300 {
		r.settle()
	}
	require.NotEmpty(t, r.waits())
	r.proc.exit(session.ExitStatus{})()
	for range 300 {
		r.settle()
	}
	assert.Equal(t, []string{assistant(1)}, r.content(), "ordered-lossless")
	r.ended()
	assert.Empty(t, r.waits())
}

func TestLinesGrowWithinTheBudget(t *testing.T) {
	t.Parallel()
	const size = 3 << 20
	budget := user.NewBudget(4 << 20)
	shared := func(_ *rig, s *setup) { s.side.Budget = budget }
	first := newRig(t, shared).up()
	first.proc.out.chunk = 32 << 10
	line := padded(size)
	first.proc.out.write(line[:2<<20]) // and no more for now
	first.settle()
	used := budget.Used()
	assert.GreaterOrEqual(t, used, int64(1<<20), "what is held is accounted for before the line is complete")
	assert.LessOrEqual(t, used, int64(4<<20))
	first.proc.out.write(line[2<<20:] + "\n")
	first.settle()
	assert.EqualValues(t, size, budget.Used(), "then it is its length")
	assert.Equal(t, []string{line}, first.content())
	assert.Zero(t, budget.Used())

	first.proc.out.write(line[:2<<20])
	first.proc.exit(session.ExitStatus{})()
	first.ended()
	assert.Zero(t, budget.Used(), "noise at the end is nobody's")
}

func TestALineThatIsReadPaysItsDebt(t *testing.T) {
	t.Parallel()
	budget := user.NewBudget(1 << 20)
	r := newRig(t, func(_ *rig, s *setup) { s.side.Budget = budget }).up()
	r.proc.out.chunk = 32 << 10
	r.proc.say(padded(3 << 20))
	r.settle()
	require.EqualValues(t, 3<<20, budget.Used())
	require.Len(t, r.content(), 1)
	require.NoError(t, budget.Acquire(t.Context(), r.sched, "another", 2<<20), "it may overdraw now")
	r.proc.exit(session.ExitStatus{})()
	r.ended()
}

func TestALinkThatEndsWaitsForNoBudget(t *testing.T) {
	t.Parallel()
	budget := user.NewBudget(1 << 20)
	r := newRig(t, func(_ *rig, s *setup) { s.side.Budget = budget }).up()
	require.NoError(t, budget.Acquire(t.Context(), r.sched, "somebody", 2<<20)) // and keeps it
	r.proc.out.chunk = 32 << 10
	r.proc.say(padded(3 << 20))
	r.pass(time.Minute)
	waits := r.waits()
	require.Len(t, waits, 1)
	assert.Contains(t, waits[0].What, "large line")
	assert.Equal(t, time.Minute, waits[0].Age)
	r.proc.exit(session.ExitStatus{})()
	r.ended()
	assert.Equal(t, time.Minute+4*time.Second, r.sched.Now().Sub(r.start))
	assert.EqualValues(t, 2<<20, budget.Used(), "what was granted went back")
	assert.Empty(t, r.waits())
}

func TestSeveralFramesOfALine(t *testing.T) {
	t.Parallel()
	r := newRig(t).up()
	r.proc.say("\ufeff"+assistant(1)+assistant(2)+" \t"+assistant(3), "\ufeff", "\ufeff"+assistant(4), assistant(5)+`{"type":"assi`)
	r.settle()
	assert.Equal(t, []string{assistant(1), assistant(2), assistant(3), assistant(4), assistant(5)}, r.content())
	assert.Len(t, eventsOf[*session.WarningIssued](r), 1, "one for all byte order marks")
	assert.Len(t, eventsOf[*session.NoiseLine](r), 1)
	r.proc.exit(session.ExitStatus{})()
	r.ended()
}

// A line that is no JSON, and that somebody waits for.
func TestABrokenLineIsWaitedForByNobody(t *testing.T) {
	t.Parallel()
	r := newRig(t).up()
	turn, err := r.side.Send(context.Background(), &protocol.UserMessage{})
	require.NoError(t, err)
	call, err := r.side.Call("set_model", []byte(`{"subtype":"set_model"}`), 0)
	require.NoError(t, err)
	r.proc.say(`{broken`, `{"type":"assistant","message":{`, `{"type":"control_response","response":{"subtype":"success","request_id":"`+call.ID+`","x`,
		`{"type":"result","subtype":"success","result":"x`)
	r.settle()
	assert.Empty(t, r.content())
	_, err = call.Answer()
	require.ErrorIs(t, err, session.ErrAnswerBroken)
	_, err = turn.Result()
	require.ErrorIs(t, err, session.ErrResultBroken)
	assert.Len(t, eventsOf[*session.NoiseLine](r), 4)
	r.proc.exit(session.ExitStatus{})()
	r.ended()
}

// wordy has a long initialize.
type wordy struct{ routertest.Rules }

func (wordy) Initialize(int) ([]byte, error) {
	return []byte(`{"subtype":"initialize","x":"` + strings.Repeat("x", 100) + `"}`), nil
}

func TestATerminalThatEchoes(t *testing.T) {
	t.Parallel()
	for _, cut := range []int{0, 100} { // a terminal cuts lines after 4,095 bytes
		r := newRig(t, func(_ *rig, s *setup) { s.side.Rules = wordy{} }).launch()
		echo := strings.TrimSpace(r.proc.in.got.String())
		require.Contains(t, echo, `"subtype":"initialize"`)
		r.proc.say(echo[:len(echo)-cut] + "\r")
		r.settle()
		var echoed *session.EchoError
		require.ErrorAs(t, r.side.failed, &echoed)
		assert.Contains(t, echoed.Error(), "docker run -i without -t")
		assert.Empty(t, r.content())
		r.proc.exit(session.ExitStatus{})()
		r.ended()
	}
}

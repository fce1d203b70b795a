package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// aboveIdle is how much memory a session may take whatever its agent writes
// and however slowly it is read.
const aboveIdle = 32 * mib

// number is the n of a line made by assistantLine or partialLine.
func number(t testing.TB, m protocol.Message) int {
	t.Helper()
	n, err := strconv.Atoi(m.Meta().UUID[2:])
	require.NoError(t, err)
	return n
}

// TestAConsumerThatStops reads a little, stops for 5 s while the agent would
// like to write 1 GiB, and reads on: the memory is bounded and nothing is lost.
func TestAConsumerThatStops(t *testing.T) { // alone: it measures memory
	const size = 16 << 10
	lines := scaled(volume(), 1024*mib) / size
	for name, line := range map[string]func(n, size int) string{"messages": noteLine, "partial messages": partialLine} {
		t.Run(name, func(t *testing.T) {
			inSimulation(t, 1, runtime.Config{}, func(s *stage) {
				wrote := 0
				spec := s.spec(func(h *hand) {
					uuid := h.prompt()
					for ; wrote < lines; wrote++ {
						h.say(line(wrote, size))
					}
					h.say(resultLine(uuid))
				})
				log := listen(&spec)
				sess := s.open(spec)
				idle, got := footprint(), 0
				for m, err := range s.send(sess).Messages(s.ctx) {
					require.NoError(s, err)
					if _, over := m.(*protocol.ResultMessage); over {
						break
					}
					require.Equal(s, got, number(s, m), "ordered-lossless")
					got++
					if got == 10 || got == lines/2 {
						s.pass(5 * time.Second)
						assert.Equal(s, session.StateAwaitingConsumer, sess.State())
						assert.Less(s, wrote, lines*3/4, "the agent was not held up")
						assert.Less(s, footprint()-idle, int64(aboveIdle))
					}
				}
				assert.Equal(s, lines, got)
				s.close(sess)
				assert.Empty(s, reported[*session.MessagesDropped](s, log), "nobody called")
			})
		})
	}
}

// TestInterruptBehindMuch stops reading, and interrupts from inside the loop:
// the answer lies behind what is not read. Partial messages give way to it and
// are counted; whole ones do not.
func TestInterruptBehindMuch(t *testing.T) { // alone: it measures memory
	const size = 16 << 10
	more := scaled(24*mib, 256*mib) / size // the output before it reads
	inSimulation(t, 1, runtime.Config{}, func(s *stage) {
		var wrote, whole int
		spec := s.spec(func(h *hand) {
			uuid := h.prompt()
			for rest := -1; rest != 0; rest-- {
				if wrote%100 == 50 {
					h.say(noteLine(wrote, 100))
					whole++
				} else {
					h.say(partialLine(wrote, size))
				}
				wrote++
				if f, heard := h.next(0); heard && f.Subtype == "interrupt" {
					defer h.say(resultLine(uuid))
					defer h.answer(f.RequestID, `{"still_queued":[]}`)
					rest = more
				}
			}
		})
		log := listen(&spec)
		sess := s.open(spec)
		idle, got, gotWhole, last := footprint(), 0, 0, -1
		for m, err := range s.send(sess).Messages(s.ctx) {
			require.NoError(s, err)
			if _, over := m.(*protocol.ResultMessage); over {
				break
			}
			require.Greater(s, number(s, m), last, "the order")
			last = number(s, m)
			got++
			if _, ok := m.(*protocol.UnknownMessage); ok {
				gotWhole++
			}
			if got == 10 {
				s.pass(5 * time.Second)
				require.NoError(s, sess.Call(s.ctx, &protocol.InterruptRequest{}, nil, 0))
				assert.Less(s, footprint()-idle, int64(aboveIdle))
			}
		}
		s.close(sess)
		dropped := 0
		for _, d := range reported[*session.MessagesDropped](s, log) {
			dropped += d.Count
		}
		assert.Equal(s, whole, gotWhole, "no whole message may be lost")
		assert.Equal(s, wrote, got+dropped, "each partial message is read or counted")
		assert.Positive(s, dropped)
	})
}

// TestACallBehindWholeMessages has nothing that could give way: it fails, and
// the messages can be read all the same.
func TestACallBehindWholeMessages(t *testing.T) {
	t.Parallel()
	onStages(t, func(s *stage) {
		const lines, size = 100, 1000
		spec := s.spec(func(h *hand) {
			uuid := h.prompt()
			h.request("get_thing")
			for n := range lines {
				h.say(noteLine(n, size))
			}
			h.say(resultLine(uuid))
		})
		spec.Options.Limits = session.Limits{Messages: 10, Bytes: 10 * size, HardBytes: 20 * size}
		sess := s.open(spec)
		turn := s.send(sess)
		err := sess.Call(s.ctx, &protocol.UnknownHostRequest{Name: "get_thing", Raw: json.RawMessage(`{"subtype":"get_thing"}`)}, nil, 0)
		require.ErrorIs(s, err, session.ErrConsumerStalled)
		assert.Len(s, s.read(turn), lines+1)
		s.close(sess)
	})
}

// TestAProcessThatFloods is the same with a real process and the wall clock:
// the reader stops when the session says that it waits for its consumer.
func TestAProcessThatFloods(t *testing.T) { // alone: it measures memory
	const size = 8 << 10
	lines := scaled(volume(), 1024*mib) / size
	for _, interrupt := range []bool{false, true} {
		t.Run(fmt.Sprintf("interrupt %v", interrupt), func(t *testing.T) {
			onGoroutines(t, func(s *stage) {
				spec := processSpec(t, newID(), fmt.Sprintf("turns: [{steps: [{flood: {count: %d, size: %d}}]}]", lines, size))
				log := listen(&spec)
				sess := s.open(spec)
				idle, got := footprint(), 0
				turn := s.send(sess)
				for m, err := range turn.Messages(s.ctx) {
					require.NoError(s, err)
					if _, ok := m.(*protocol.PartialAssistantMessage); !ok {
						continue
					}
					got++
					if got == 10 {
						s.await(log.entered(session.StateAwaitingConsumer))
						assert.Less(s, footprint()-idle, int64(aboveIdle))
						if interrupt {
							require.NoError(s, sess.Call(s.ctx, &protocol.InterruptRequest{}, nil, 0))
							assert.Less(s, footprint()-idle, int64(aboveIdle))
						}
					}
				}
				r, err := turn.Result(s.ctx)
				require.NoError(s, err)
				assert.Equal(s, interrupt, r.Failed())
				assert.Less(s, footprint()-idle, int64(aboveIdle))
				s.close(sess)
				if !interrupt {
					assert.Equal(s, lines, got, "nothing is lost when nobody calls")
					assert.Empty(s, reported[*session.MessagesDropped](s, log))
				}
			})
		})
	}
}

// manyLines plays a turn of lines whose contents take much more than small
// limits allow.
func (s *stage) manyLines(n int) runtime.Spec {
	spec := s.spec(func(h *hand) {
		for {
			uuid := h.prompt()
			for i := range n {
				h.say(noteLine(i, 1000))
			}
			h.say(resultLine(uuid))
		}
	})
	spec.Options.Limits = session.Limits{Messages: 10, Bytes: 20_000, HardBytes: 40_000}
	return spec
}

// TestNobodyReads has no consumer at all, or one that never reads: the agent waits, and
// its output is there for a later consumer.
func TestNobodyReads(t *testing.T) {
	t.Parallel()
	const lines = 300
	onStages(t, func(s *stage) {
		spec := s.manyLines(lines)
		log := listen(&spec)
		sess := s.open(spec)
		turn := s.send(sess)
		s.await(log.entered(session.StateAwaitingConsumer))
		for _, w := range s.rt.Tree(s.ctx).Sessions[0].Waits {
			if w.What == "consumer" {
				assert.Zero(s, w.Limit)
			}
		}
		assert.Len(s, s.read(turn), lines+1, "a late consumer misses nothing")

		again := s.send(sess)
		idler, err := sess.Read()
		require.NoError(s, err)
		for range 3 {
			_, err := idler.Next(s.ctx)
			require.NoError(s, err)
		}
		_, err = sess.Read()
		require.ErrorIs(s, err, session.ErrBusy)
		s.close(sess) // with the idler still there
		_, err = again.Result(s.ctx)
		require.Error(s, err)
		n := 0
		for err = nil; err == nil; n++ {
			_, err = idler.Next(s.ctx)
		}
		require.ErrorIs(s, err, io.EOF)
		assert.Positive(s, n, "it keeps what was read for it")
		idler.Close()
	})
}

// TestNobodyWillRead ends the wait for a consumer by its limit, or discards.
func TestNobodyWillRead(t *testing.T) {
	t.Parallel()
	inSimulation(t, 1, runtime.Config{}, func(s *stage) {
		spec := s.manyLines(300)
		spec.Options.Limits.Consumer = time.Hour
		sess := s.open(spec)
		turn := s.send(sess)
		began := s.rt.Clock().Now()
		s.await(sess.Done())
		var late *session.TimeoutError
		require.ErrorAs(s, sess.Err(), &late)
		assert.Equal(s, "Limits.Consumer", late.SetBy)
		assert.InDelta(s, time.Hour, s.rt.Clock().Now().Sub(began), float64(time.Second))
		_, err := turn.Result(s.ctx)
		require.ErrorAs(s, err, &late)
	})
	onStages(t, func(s *stage) {
		spec := s.manyLines(300)
		spec.Options.Discard = true
		sess := s.open(spec)
		for range 3 {
			turn := s.send(sess)
			s.await(turn.Done())
			r, err := turn.Result(s.ctx)
			require.NoError(s, err)
			assert.Equal(s, "done", r.Result)
		}
		require.NoError(s, sess.AwaitIdle(s.ctx))
		s.close(sess)
	})
}

// TestAConsumerThatIsSlow reads all the time, and never fast enough for the reader to
// continue before the limit. It may; once it stops, the session ends.
func TestAConsumerThatIsSlow(t *testing.T) {
	t.Parallel()
	inSimulation(t, 1, runtime.Config{}, func(s *stage) {
		const lines = 50
		spec := s.manyLines(lines)
		spec.Options.Limits.Consumer = time.Minute
		sess := s.open(spec)
		turn, n := s.send(sess), 0
		for _, err := range turn.Messages(s.ctx) {
			require.NoError(s, err)
			n++
			s.pass(50 * time.Second)
		}
		assert.Equal(s, lines+1, n)
		require.NoError(s, sess.Err())

		turn = s.send(sess)
		for _, err := range turn.Messages(s.ctx) {
			require.NoError(s, err)
			s.pass(61 * time.Second)
			require.ErrorIs(s, sess.Err(), session.ErrConsumerStalled)
			break
		}
		s.await(sess.Done())
	})
}

// TestConsumersInTurn breaks off, panics out of the loop, gives up, and lets
// another read on: together they see every message once and in order.
func TestConsumersInTurn(t *testing.T) {
	t.Parallel()
	const lines = 60
	onStages(t, func(s *stage) {
		sess := s.open(s.manyLines(lines))
		turn, got := s.send(sess), 0
		take := func(m protocol.Message, err error) {
			require.NoError(s, err)
			require.Equal(s, got, number(s, m), "ordered-lossless")
			got++
		}
		for round := 0; got < lines-8; round++ {
			switch round % 4 {
			case 0:
				for m, err := range turn.Messages(s.ctx) {
					if take(m, err); got%3 == 0 {
						break
					}
				}
			case 1:
				for m, err := range sess.Messages(s.ctx) {
					if take(m, err); got%4 == 0 {
						break
					}
				}
			case 2:
				r, err := sess.Read()
				require.NoError(s, err)
				take(r.Next(s.ctx))
				gone, cancel := context.WithCancel(s.ctx)
				cancel()
				if m, err := r.Next(gone); err == nil { // what is there already may be had
					take(m, nil)
				} else {
					require.ErrorIs(s, err, context.Canceled)
				}
				r.Close()
				r.Close()
			case 3:
				assert.Panics(s, func() {
					for m, err := range sess.Messages(s.ctx) {
						take(m, err)
						panic("in the loop")
					}
				})
			}
		}
		for m, err := range turn.Messages(s.ctx) {
			require.NoError(s, err)
			if _, over := m.(*protocol.ResultMessage); !over {
				take(m, nil)
			}
		}
		assert.Equal(s, lines, got)
		s.close(sess)
	})
}

// TestConsumersAtOnce lets many read at the same time. One has the stream, the others
// get an error; nothing is read twice and nothing is lost.
func TestConsumersAtOnce(t *testing.T) {
	t.Parallel()
	const lines, readers = 200, 8
	onStages(t, func(s *stage) {
		sess := s.open(s.manyLines(lines))
		turn := s.send(sess)
		var mu sync.Mutex
		var got []int
		var tasks []<-chan struct{}
		for range readers {
			tasks = append(tasks, s.task(func() {
				for more := true; more; {
					more = false
					for m, err := range turn.Messages(s.ctx) {
						if more = errors.Is(err, session.ErrBusy); more {
							s.pass(time.Microsecond)
							break
						}
						if !assert.NoError(s, err) {
							return
						}
						if _, over := m.(*protocol.ResultMessage); over {
							break
						}
						mu.Lock() // still the one consumer
						got = append(got, number(s, m))
						more = len(got)%7 == 0 // another consumer's turn
						mu.Unlock()
						if more {
							break
						}
					}
				}
			}))
		}
		for _, done := range tasks {
			s.await(done)
		}
		require.Len(s, got, lines)
		for want, n := range got {
			require.Equal(s, want, n)
		}
		s.close(sess)
	})
}

// TestBothPipesAreFull has an agent that writes without end and does not read,
// and a host that has more for it than its pipe holds.
func TestBothPipesAreFull(t *testing.T) {
	t.Parallel()
	const messages = 20
	onStages(t, func(s *stage) {
		var spoke, heard int
		turnOver := make(chan struct{}) // then the agent reads at last
		spec := s.spec(func(h *hand) {
			h.prompt()
			for ; !closed(turnOver); spoke++ {
				h.say(noteLine(spoke, 4000))
			}
			for range messages - 1 {
				h.prompt()
				heard++
			}
			h.say(resultLine("nobody"))
		})
		sess := s.open(spec)
		var turns []*runtime.Turn
		for range messages { // 2.5 MiB against a pipe of 64 KiB
			turn, err := sess.Send(s.ctx, userText(strings.Repeat("m", mib/8)))
			require.NoError(s, err, "Send must not wait for the agent")
			turns = append(turns, turn)
		}
		err := sess.Call(s.ctx, &protocol.UnknownHostRequest{Name: "get_thing", Raw: json.RawMessage(`{"subtype":"get_thing"}`)}, nil, 50*time.Millisecond)
		require.Error(s, err, "nobody hears it")
		n := 0
		for m, err := range sess.Messages(s.ctx) { // the agent is read, whatever it does
			require.NoError(s, err)
			if r, over := m.(*protocol.ResultMessage); over {
				assert.Equal(s, "nobody", r.UserMessageUUID)
				break
			}
			require.Equal(s, n, number(s, m))
			if n++; n == 3000 { // 12 MB, more than is ever held
				close(turnOver)
			}
		}
		assert.Equal(s, []int{messages - 1, spoke}, []int{heard, n}, "no line was lost on either side")
		s.close(sess)
		for _, turn := range turns {
			_, err := turn.Result(s.ctx)
			require.ErrorIs(s, err, session.ErrClosed)
		}
	})
}

// TestBothPipesAreFullAndNobodyReads has the same agent read in the end, without a
// consumer of its earlier output: the host reads beyond the bound rather than let both
// wait for each other.
func TestBothPipesAreFullAndNobodyReads(t *testing.T) {
	t.Parallel()
	const messages, lines = 20, 1500
	onStages(t, func(s *stage) {
		heard := make(chan struct{})
		sess := s.open(s.spec(func(h *hand) {
			uuid := h.prompt()
			for n := range lines { // 6 MB, between the bound and the hard one
				h.say(noteLine(n, 4000))
			}
			for range messages - 1 {
				h.prompt()
			}
			close(heard)
			h.say(resultLine(uuid))
		}))
		var first *runtime.Turn
		for range messages {
			turn, err := sess.Send(s.ctx, userText(strings.Repeat("m", mib/8)))
			require.NoError(s, err)
			if first == nil {
				first = turn
			}
		}
		s.await(heard)
		assert.Len(s, s.read(first), lines+1)
		s.close(sess)
	})
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// endless is an agent that, once asked, writes without end and reads no more.
// In simulation 64 KiB take it 10 ms: nothing else costs virtual time.
func (s *stage) endless(size int) puppet {
	return func(h *hand) {
		h.prompt()
		for n, due := 0, 0; ; n++ {
			h.say(noteLine(n, size))
			if due += size; s.sched != nil && due >= 64<<10 {
				s.pass(time.Duration(due>>16) * 10 * time.Millisecond)
				due = 0
			}
		}
	}
}

// TestCloseWithBothPipesFull closes such a session, read or not: it takes no
// longer than the graces.
func TestCloseWithBothPipesFull(t *testing.T) {
	t.Parallel()
	for _, read := range []bool{true, false} {
		t.Run(fmt.Sprintf("read %v", read), func(t *testing.T) {
			t.Parallel()
			onStages(t, func(s *stage) {
				sess := s.open(s.spec(s.endless(4000)))
				for range 4 {
					_, err := sess.Send(s.ctx, userText(strings.Repeat("m", mib)))
					require.NoError(s, err)
				}
				seen := make(chan struct{})
				reader := s.task(func() {
					if !read {
						close(seen)
						return
					}
					n := 0
					for _, err := range sess.Messages(s.ctx) {
						assert.NoError(s, err)
						if n++; n == 100 {
							close(seen)
						}
					}
				})
				s.await(seen)
				began := s.rt.Clock().Now()
				s.close(sess)
				s.await(reader)
				if s.sched != nil {
					assert.LessOrEqual(s, s.rt.Clock().Now().Sub(began), time.Second)
				}
			})
		})
	}
	t.Run("process", func(t *testing.T) {
		t.Parallel()
		onGoroutines(t, func(s *stage) {
			token := newID()
			spec := processSpec(t, token, "turns: [{steps: [{flood: {count: 10000000, size: 1000}}]}]\nmisbehave: {trap_term: true, ignore_eof: true}")
			sess := s.open(spec)
			for range 4 {
				_, err := sess.Send(s.ctx, userText(strings.Repeat("m", mib)))
				require.NoError(s, err)
			}
			s.close(sess)
			assert.Empty(s, withToken(t, token), "no-orphans")
		})
	})
}

// step is an operation of the user that can wait.
type step struct {
	name string
	run  func(ctx context.Context, s *stage, sess *runtime.Session, turn *runtime.Turn) error
}

func steps() []step {
	return []step{
		{"Send", func(ctx context.Context, _ *stage, sess *runtime.Session, _ *runtime.Turn) error {
			_, err := sess.Send(ctx, userText("more"))
			return err
		}},
		{"Turn.Messages", func(ctx context.Context, _ *stage, _ *runtime.Session, turn *runtime.Turn) error {
			for _, err := range turn.Messages(ctx) {
				if err != nil {
					return err
				}
			}
			return nil
		}},
		{"Session.Messages", func(ctx context.Context, _ *stage, sess *runtime.Session, _ *runtime.Turn) error {
			for m, err := range sess.Messages(ctx) {
				if _, over := m.(*protocol.ResultMessage); over || err != nil {
					return err
				}
			}
			return nil
		}},
		{"Result", func(ctx context.Context, _ *stage, _ *runtime.Session, turn *runtime.Turn) error {
			_, err := turn.Result(ctx)
			return err
		}},
		{"Call", func(ctx context.Context, _ *stage, sess *runtime.Session, _ *runtime.Turn) error {
			return sess.Call(ctx, &protocol.UnknownHostRequest{Name: "get_thing", Raw: json.RawMessage(`{"subtype":"get_thing"}`)}, nil, 0)
		}},
		{"AwaitIdle", func(ctx context.Context, _ *stage, sess *runtime.Session, _ *runtime.Turn) error {
			return sess.AwaitIdle(ctx)
		}},
		{"Close", func(ctx context.Context, _ *stage, sess *runtime.Session, _ *runtime.Turn) error {
			return sess.Close(ctx)
		}},
	}
}

var errHome = errors.New("the user went home")

// gentle is an agent that takes its time with everything.
func gentle(h *hand) {
	for {
		f := h.hear()
		h.pass(time.Millisecond)
		switch f.Type {
		case protocol.TypeControlRequest:
			h.answer(f.RequestID, `{}`)
		case "user":
			h.say(noteLine(1, 10))
			h.pass(time.Millisecond)
			h.say(resultLine(f.UUID()))
		}
	}
}

// everyMoment runs an operation once for each step, or stride of steps, that it
// takes, and does something to it there. It is called anew until the operation
// is over before its moment.
func everyMoment(t *testing.T, stride int, play func(s *stage, moment int) (over bool)) {
	t.Helper()
	for moment, over := 0, false; !over; moment += stride {
		inSimulation(t, 1, runtime.Config{}, func(s *stage) { over = play(s, moment) })
		require.Less(t, moment, 10_000)
	}
}

// steps takes that many steps of the scheduler, unless done comes first.
func (s *stage) steps(n int, done <-chan struct{}) (over bool) {
	for range n {
		if closed(done) {
			return true
		}
		s.sched.Step()
	}
	return closed(done)
}

// TestContextsEndAtEveryMoment ends the context of every operation at every
// moment. The operation says why; the session continues, except after Close and Open.
func TestContextsEndAtEveryMoment(t *testing.T) {
	t.Parallel()
	check := func(s *stage, over bool, err error) {
		s.Helper()
		if over || err == nil { // it may have won
			require.NoError(s, err)
			return
		}
		require.ErrorIs(s, err, errHome)
	}
	for _, op := range steps() {
		t.Run(op.name, func(t *testing.T) {
			t.Parallel()
			everyMoment(t, 1, func(s *stage, moment int) bool {
				sess := s.open(s.spec(gentle))
				turn := s.send(sess)
				ctx, cancel := context.WithCancelCause(s.ctx)
				var err error
				done := s.task(func() { err = op.run(ctx, s, sess, turn) })
				over := s.steps(moment, done)
				cancel(errHome)
				s.await(done)
				check(s, over, err)
				if op.name != "Close" {
					_, err := turn.Result(s.ctx)
					require.NoError(s, err)
					_, err = s.send(sess).Result(s.ctx)
					require.NoError(s, err)
					require.NoError(s, sess.AwaitIdle(s.ctx))
				}
				s.close(sess)
				return over
			})
		})
	}
	t.Run("Send without room", func(t *testing.T) {
		t.Parallel()
		everyMoment(t, 97, func(s *stage, moment int) bool {
			sess := s.open(s.spec(gentle))
			for range 256 {
				s.send(sess)
			}
			ctx, cancel := context.WithCancelCause(s.ctx)
			var err error
			done := s.task(func() {
				_, err = sess.Send(ctx, userText("no room"))
			})
			over := s.steps(moment, done)
			cancel(errHome)
			s.await(done)
			check(s, over, err)
			s.close(sess)
			return over
		})
	})
	t.Run("Open", func(t *testing.T) {
		t.Parallel()
		everyMoment(t, 1, func(s *stage, moment int) bool {
			ctx, cancel := context.WithCancelCause(s.ctx)
			var sess *runtime.Session
			var err error
			done := s.task(func() { sess, err = s.rt.Open(ctx, s.spec(gentle)) })
			over := s.steps(moment, done)
			cancel(errHome)
			s.await(done)
			check(s, over, err)
			if err == nil {
				s.close(sess)
			}
			assert.Empty(s, s.rt.Sessions())
			return over
		})
	})
}

// TestClosersAtEveryMoment closes from two tasks at once, at every moment of
// opening a session and of its first turn, and then again.
func TestClosersAtEveryMoment(t *testing.T) {
	t.Parallel()
	everyMoment(t, 1, func(s *stage, moment int) bool {
		life := s.task(func() {
			sess, err := s.rt.Open(s.ctx, s.spec(gentle))
			if err != nil {
				assert.ErrorIs(s, err, session.ErrClosed)
				return
			}
			turn, err := sess.Send(s.ctx, userText("hi"))
			if err == nil {
				_, err = turn.Result(s.ctx)
			}
			if err != nil {
				assert.ErrorIs(s, err, session.ErrClosed)
			}
		})
		over := s.steps(moment, life)
		var closers []<-chan struct{}
		sessions := s.rt.Sessions()
		for _, sess := range sessions {
			for range 2 {
				closers = append(closers, s.task(func() { assert.NoError(s, sess.Close(s.ctx)) }))
			}
		}
		for _, done := range closers {
			s.await(done)
		}
		s.await(life)
		for _, sess := range append(sessions, s.rt.Sessions()...) {
			s.close(sess)
			assert.Equal(s, session.StateClosed, sess.State())
		}
		return over
	})
}

// TestCloseDuringOpen closes from two tasks while a session is being opened.
func TestCloseDuringOpen(t *testing.T) {
	t.Parallel()
	for _, during := range []session.State{session.StateStarting, session.StateInitializing, session.StateReady} {
		t.Run(during.String(), func(t *testing.T) {
			t.Parallel()
			onStages(t, func(s *stage) {
				spec := s.spec(nil)
				spec.Program = stubborn{}
				if during == session.StateReady {
					spec.Program = puppet(gentle)
				}
				log := listen(&spec)
				var err error
				opened := s.task(func() { _, err = s.rt.Open(s.ctx, spec) })
				s.await(log.entered(during))
				var closers []<-chan struct{}
				for _, sess := range s.rt.Sessions() {
					for range 2 {
						closers = append(closers, s.task(func() { assert.NoError(s, sess.Close(s.ctx)) }))
					}
				}
				require.Len(s, closers, 2)
				for _, done := range append(closers, opened) {
					s.await(done)
				}
				if during != session.StateReady {
					require.ErrorIs(s, err, session.ErrClosed)
				}
				assert.Empty(s, s.rt.Sessions())
			})
		})
	}
}

// TestCloseFromEverywhere closes a session from inside whatever it calls.
func TestCloseFromEverywhere(t *testing.T) {
	t.Parallel()
	places := map[string]func(s *stage, spec *runtime.Spec, request *string, closeIt func()){
		"OnEvent": func(_ *stage, spec *runtime.Spec, _ *string, closeIt func()) {
			spec.Options.OnEvent = func(e session.EventRecord) {
				if c, ok := e.Event.(*session.StateChanged); ok && c.To == "running" {
					closeIt()
				}
			}
		},
		"Stderr": func(_ *stage, spec *runtime.Spec, _ *string, closeIt func()) {
			spec.Options.Stderr = func(string) { closeIt() }
		},
	}
	for _, k := range callbackKinds() {
		places[k.name] = func(_ *stage, spec *runtime.Spec, request *string, closeIt func()) {
			*request = k.request
			k.install(spec, time.Minute, func(context.Context) (int, error) { closeIt(); return 5, nil })
		}
	}
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStages(t, func(s *stage) {
				opened, returned := make(chan struct{}), make(chan struct{})
				var sess *runtime.Session
				var request string
				spec := s.spec(func(h *hand) {
					h.prompt()
					h.port.Stderr([]byte("look out\n"))
					if request != "" {
						h.ask("q", request)
						assert.NotContains(s, string(h.reply("q").Raw), "xxxxx", "fail-closed")
					}
				})
				place(s, &spec, &request, func() {
					defer close(returned)
					assert.NoError(s, s.rt.Executor().Await(s.ctx, opened))
					assert.NoError(s, sess.Close(s.ctx))
				})
				sess = s.open(spec)
				close(opened)
				turn := s.send(sess)
				_, err := turn.Result(s.ctx)
				require.ErrorIs(s, err, session.ErrClosed)
				s.await(returned)
				s.await(sess.Done())
			})
		})
	}
	t.Run("the loop", func(t *testing.T) {
		t.Parallel()
		onStages(t, func(s *stage) {
			sess := s.open(s.spec(func(h *hand) {
				h.prompt()
				for n := range 100 {
					h.say(noteLine(n, 10))
				}
			}))
			s.send(sess)
			for _, err := range sess.Messages(s.ctx) {
				require.NoError(s, err)
				s.close(sess)
				s.close(sess)
			}
		})
	})
}

// busy are sessions in the middle of something. They tell when they are, and
// return when they have ended.
func busy() map[string]func(s *stage, ready func()) {
	ended := func(s *stage, err error) {
		assert.True(s, err == nil || errors.Is(err, session.ErrClosed), "%v", err)
	}
	return map[string]func(s *stage, ready func()){
		"never initialized": func(s *stage, ready func()) {
			spec := s.spec(nil)
			spec.Program = stubborn{}
			spec.Options.OnEvent = func(e session.EventRecord) {
				if c, ok := e.Event.(*session.StateChanged); ok && c.To == session.StateInitializing.String() {
					ready()
				}
			}
			_, err := s.rt.Open(s.ctx, spec)
			assert.ErrorIs(s, err, session.ErrClosed)
		},
		"idle": func(s *stage, ready func()) {
			sess := s.open(s.spec(gentle))
			ready()
			s.await(sess.Done())
		},
		"read slowly": func(s *stage, ready func()) {
			spec := s.spec(s.endless(1000))
			spec.Options.Limits.Messages = 100 // it reads all that is there when the session ends
			for _, err := range s.send(s.open(spec)).Messages(s.ctx) {
				ended(s, err)
				ready()
				s.pass(time.Millisecond)
			}
		},
		"a loop that stands still": func(s *stage, ready func()) {
			sess := s.open(s.spec(s.endless(1000)))
			for _, err := range s.send(sess).Messages(s.ctx) {
				ended(s, err)
				ready()
				s.await(sess.Done())
			}
		},
		"read by nobody": func(s *stage, ready func()) {
			spec := s.spec(s.endless(100_000))
			log := listen(&spec)
			sess := s.open(spec)
			s.send(sess)
			s.await(log.entered(session.StateAwaitingConsumer))
			ready()
			s.await(sess.Done())
		},
		"a gate that is not decided": func(s *stage, ready func()) {
			spec := s.spec(func(h *hand) {
				h.prompt()
				h.ask("q", callbackKinds()[0].request)
			})
			spec.Options.CanUseTool = func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
				ready()
				return protocol.PermissionResult{}, s.rt.Executor().Await(ctx, nil)
			}
			_, err := s.send(s.open(spec)).Result(s.ctx)
			ended(s, err)
		},
		"a call without an answer": func(s *stage, ready func()) {
			sess := s.open(s.spec(func(h *hand) {
				h.request("get_thing")
				ready()
				h.request("nothing")
			}))
			ended(s, sess.Call(s.ctx, &protocol.UnknownHostRequest{Name: "get_thing", Raw: json.RawMessage(`{"subtype":"get_thing"}`)}, nil, -1))
		},
		"both pipes full": func(s *stage, ready func()) {
			sess := s.open(s.spec(s.endless(1000)))
			for range 3 {
				_, err := sess.Send(s.ctx, userText(strings.Repeat("m", mib/4)))
				ended(s, err)
			}
			ready()
			ended(s, sess.AwaitIdle(s.ctx))
		},
		"half a huge line": func(s *stage, ready func()) {
			sess := s.open(s.spec(func(h *hand) {
				h.prompt()
				h.write([]byte(`{"type":"blob","v":"` + strings.Repeat("x", 3*mib)))
				ready()
			}))
			for _, err := range s.send(sess).Messages(s.ctx) {
				ended(s, err)
			}
		},
		"huge lines": func(s *stage, ready func()) {
			sess := s.open(s.spec(s.endless(2 * mib)))
			s.send(sess)
			ready()
			s.await(sess.Done())
		},
		"stubborn": func(s *stage, ready func()) {
			sess := s.open(s.spec(stubborn{}.play))
			turn := s.send(sess)
			ready()
			_, err := turn.Result(s.ctx)
			ended(s, err)
		},
		"closing": func(s *stage, ready func()) {
			sess := s.open(s.spec(stubborn{}.play))
			s.send(sess)
			closers := []<-chan struct{}{s.task(func() { s.close(sess) }), s.task(func() { s.close(sess) })}
			ready()
			for _, done := range closers {
				s.await(done)
			}
		},
	}
}

// stubborn is an agent that says nothing and ends when it is killed.
type stubborn struct{}

func (stubborn) AgentName() string { return "stubborn" }

func (b stubborn) play(h *hand) { b.Serve(agent.Launch{}, h.port) }

func (stubborn) Serve(_ agent.Launch, p agent.Port) agent.Exit {
	for {
		if _, err := p.Next(-1); errors.Is(err, agent.ErrKilled) {
			return agent.Exit{Signal: "KILL"}
		}
	}
}

// TestShutdownInTheMiddleOfEverything ends a runtime whose sessions are all in
// the middle of something.
func TestShutdownInTheMiddleOfEverything(t *testing.T) {
	t.Parallel()
	onStages(t, func(s *stage) {
		plays := busy()
		var tasks, readies []<-chan struct{}
		for _, name := range sorted(plays) {
			var once sync.Once
			ready := make(chan struct{})
			readies = append(readies, ready)
			tasks = append(tasks, s.task(func() { plays[name](s, func() { once.Do(func() { close(ready) }) }) }))
		}
		for _, ready := range readies {
			s.await(ready)
		}
		require.NoError(s, s.rt.Shutdown(s.ctx))
		assert.Empty(s, s.rt.Sessions())
		for _, done := range tasks {
			s.await(done)
		}
		_, err := s.rt.Open(s.ctx, s.spec(gentle))
		require.ErrorIs(s, err, session.ErrShutdown)
	})
}

func sorted[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// TestEndsThatAreGivenUp end the context of Close and Shutdown: the rest is killed,
// with any graces, the error names it, and the call can be repeated.
func TestEndsThatAreGivenUp(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(ctx context.Context, s *stage, sess *runtime.Session) error{
		"Close":    func(ctx context.Context, _ *stage, sess *runtime.Session) error { return sess.Close(ctx) },
		"Shutdown": func(ctx context.Context, s *stage, _ *runtime.Session) error { return s.rt.Shutdown(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onStages(t, func(s *stage) {
				spec := s.spec(stubborn{}.play)
				spec.ID = "stubborn-one"
				spec.Options.Graces = session.Graces{EOF: time.Hour, Terminate: time.Hour}
				sess := s.open(spec)
				began := s.rt.Clock().Now()
				ctx, cancel := context.WithCancelCause(s.ctx)
				cancel(errHome)
				err := end(ctx, s, sess)
				require.ErrorIs(s, err, errHome)
				require.ErrorContains(s, err, "stubborn-one")
				s.await(sess.Done())
				assert.Less(s, s.rt.Clock().Now().Sub(began), time.Hour)
				require.NoError(s, end(s.ctx, s, sess))
			})
		})
	}
}

// TestThousandSessionsClosedAtOnce closes them all from separate tasks, a quarter each
// idle, in a turn, at a gate, and held up for want of a reader.
func TestThousandSessionsClosedAtOnce(t *testing.T) { // alone: for the race detector's bound on goroutines
	n := 1000
	if sim.Raced() || testing.Short() {
		n = 200
	}
	onGoroutines(t, func(s *stage) {
		plays := []func(h *hand){
			gentle,
			func(h *hand) { h.prompt() },
			func(h *hand) { h.prompt(); h.ask("q", callbackKinds()[0].request) },
			func(h *hand) {
				h.prompt()
				for n := 0; ; n++ {
					h.say(noteLine(n, 1000))
				}
			},
		}
		sessions := make([]*runtime.Session, n)
		for i := range sessions {
			spec := s.spec(plays[i%4])
			spec.Options.Limits = session.Limits{Messages: 10}
			spec.Options.Graces.Output, spec.Options.Graces.Sweep = time.Minute, time.Minute // those held up now write as fast as the machine goes
			spec.Options.CanUseTool = func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
				return protocol.PermissionResult{}, s.rt.Executor().Await(ctx, nil)
			}
			sessions[i] = s.open(spec)
			if i%4 > 0 {
				s.send(sessions[i])
			}
		}
		assert.Len(s, s.rt.Sessions(), n)
		var closers []<-chan struct{}
		for _, sess := range sessions {
			closers = append(closers, s.task(func() { assert.NoError(s, sess.Close(s.ctx)) }))
		}
		for _, done := range closers {
			s.await(done)
		}
		assert.Empty(s, s.rt.Sessions())
		for _, sess := range sessions {
			assert.Equal(s, session.StateClosed, sess.State())
			assert.NoError(s, sess.Err())
		}
	})
}

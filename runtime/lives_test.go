package runtime_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// TestLives runs sessions with random scripts, bounds, callbacks, users, and
// deaths of up to three actors, and checks the invariants after each.
func TestLives(t *testing.T) {
	for seed := range sim.Seeds(t, 300, 1) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { newLife(t, seed).run() })
	}
}

// life is one session and what was seen of it.
type life struct {
	*rig
	r       *rand.Rand
	killed  []string
	wrote   []string       // content, as the agent wrote it
	read    []string       // content, as the user saw it
	answers map[string]int // by request id, as the agent got them
	allowed int            // allows that the gate gave
	dropped int            // partial messages, as reported
	hurried bool           // the user closed it in the middle
	whole   bool           // the user reads the stream, else turn by turn
}

func newLife(t *testing.T, seed uint64) *life {
	t.Helper()
	l := &life{r: rand.New(rand.NewPCG(seed, 7)), answers: make(map[string]int)}
	deaths := make(map[int]kernel.Moment)
	for range l.r.IntN(4) {
		deaths[l.r.IntN(120)] = kernel.Moment(l.r.IntN(2))
	}
	n := -1
	l.rig = inSim(t, seed, func(c *kernel.Config) {
		c.Chaos = func(actor string, m any, at kernel.Moment) bool {
			if at == kernel.BeforeMessage {
				n++
			}
			when, doomed := deaths[n]
			if !doomed || when != at {
				return false
			}
			delete(deaths, n)
			l.killed = append(l.killed, fmt.Sprintf("%s %v %T", actor, at, m))
			return true
		}
	})
	return l
}

func (l *life) chance(of int) bool { return l.r.IntN(of) == 0 }

func (l *life) script() *scripted.Script {
	partials := l.chance(2)
	s := &scripted.Script{Partials: &partials}
	for range 1 + l.r.IntN(3) {
		var steps scripted.Steps
		for range 1 + l.r.IntN(5) {
			steps = append(steps, l.step())
		}
		s.Turns = append(s.Turns, scripted.Turn{Steps: steps})
	}
	if l.chance(8) {
		points := []agent.Point{agent.MidAssistant, agent.PendingPermission, agent.BeforeResult, agent.AfterResult}
		s.Misbehave.Die = &scripted.Die{At: points[l.r.IntN(len(points))], Code: 3}
	}
	if l.chance(6) {
		s.Misbehave.Ignore = []string{"interrupt"}
	}
	s.Misbehave.TrapTerm, s.Misbehave.IgnoreEOF = l.chance(6), l.chance(6)
	return s
}

func (l *life) step() scripted.Step {
	ms := func(n int) time.Duration { return time.Duration(l.r.IntN(n)) * time.Millisecond }
	switch l.r.IntN(9) {
	case 0:
		return &scripted.Partial{Text: strings.Repeat("words ", 20), Chunk: 10}
	case 1:
		tool := gate()
		tool.Takes = ms(20)
		return tool
	case 2:
		return scripted.Parallel{gate(), gate()}
	case 3:
		return &scripted.Request{Subtype: "of_next_week", Limit: ms(3)}
	case 4:
		return &scripted.Elicitation{Server: "s", Message: "?", Limit: ms(3)}
	case 5:
		return &scripted.Flood{Count: l.r.IntN(100), Size: 100}
	case 6:
		return &scripted.Huge{Bytes: scripted.Size(l.r.IntN(100_000))}
	case 7:
		return scripted.Delay(ms(50))
	default:
		return scripted.Text(fmt.Sprint("text ", l.r.IntN(1000)))
	}
}

// decide is a gate of every temper.
func (l *life) decide(ctx context.Context, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
	switch l.r.IntN(6) {
	case 0:
		rest := make(chan struct{})
		l.Sched.AfterFunc(time.Duration(l.r.IntN(100))*time.Millisecond, func() { close(rest) })
		_ = l.Sched.Await(ctx, rest)
	case 1:
		return protocol.PermissionResult{}, errors.New("the user's business")
	case 2:
		panic("a bug of the user's")
	case 3:
		return protocol.PermissionResult{}, l.Sched.Await(ctx, never)
	}
	l.allowed++
	return allow(ctx, r)
}

func (l *life) spec(s *scripted.Script) runtime.Spec {
	spec := l.rig.spec(s)
	spec.Program = observed{spec.Program, l}
	spec.Options.CanUseTool, spec.Options.PermissionTimeout = l.decide, time.Second
	for _, e := range []protocol.HookEvent{protocol.HookPreToolUse, protocol.HookPostToolUse} {
		spec.Options.Hooks = append(spec.Options.Hooks, session.Hook{Event: e, Func: func(context.Context, *session.HookCall) (json.RawMessage, error) {
			if e == protocol.HookPostToolUse {
				return nil, errors.New("the user's business")
			}
			return nil, nil
		}})
	}
	spec.Options.OnEvent = func(e session.EventRecord) {
		if d, ok := e.Event.(*session.MessagesDropped); ok {
			l.dropped += d.Count
		}
	}
	return spec
}

func (l *life) run() {
	ctx := context.Background()
	script := l.script()
	spec := l.spec(script)
	tight := l.chance(2)
	if tight {
		spec.Options.Limits = session.Limits{Messages: 5, Bytes: 2000, HardBytes: 8000}
	}
	start := l.Sched.Now()
	s := l.open(spec)
	later := func(ms int, do func()) {
		l.Sched.AfterFunc(time.Duration(l.r.IntN(ms))*time.Millisecond, func() { l.Sched.Go(do) })
	}
	if l.hurried = l.chance(3); l.hurried {
		later(200, func() { _ = s.Close(ctx) }) // its error is the other close's, too
	}
	if l.chance(3) {
		later(100, func() { _ = s.Call(ctx, &protocol.InterruptRequest{}, nil, 5*time.Second) }) // it may come too late
	}
	read := make(chan struct{})
	if l.whole = l.chance(2); l.whole {
		reader, err := s.Read()
		require.NoError(l, err)
		l.Sched.Go(func() {
			defer close(read)
			for {
				m, err := reader.Next(ctx)
				if err != nil {
					return // the session is over
				}
				l.read = append(l.read, string(m.Raw()))
			}
		})
	}
	unread := l.converse(s, len(script.Turns))
	if !tight || !unread { // else the agent waits for a reader
		require.NoError(l, s.AwaitIdle(ctx), l.killed)
	}

	closed := kernel.NewPromise[error]()
	l.Sched.Go(func() { closed.Resolve(s.Close(ctx)) })
	if l.whole {
		require.NoError(l, l.Sched.Await(ctx, read))
	} else {
		l.readAll(s.Messages(ctx))
	}
	err, waited := closed.Wait(ctx, l.Sched)
	require.NoError(l, waited, l.killed)
	require.NoError(l, err, l.killed)
	require.True(l, s.State().Terminal(), l.killed)
	require.Less(l, l.Sched.Now().Sub(start), 10*time.Minute, l.killed)
	l.Quiet() // callbacks outlive the session
	l.check(s)
}

// converse sends prompts and reads most of the answers.
func (l *life) converse(s *runtime.Session, n int) (unread bool) {
	for i := range n {
		turn, err := s.Send(context.Background(), text(fmt.Sprint(i)))
		if err != nil {
			return unread // the session is over
		}
		if l.whole {
			if _, err := turn.Result(context.Background()); err != nil && s.State().Terminal() {
				return false
			}
			continue
		}
		if l.chance(4) {
			unread = true
			continue
		}
		l.readAll(turn.Messages(context.Background()))
	}
	return unread
}

func (l *life) readAll(messages func(func(protocol.Message, error) bool)) {
	for m, err := range messages {
		if err != nil {
			return // the session is over
		}
		l.read = append(l.read, string(m.Raw()))
	}
}

func (l *life) check(s *runtime.Session) {
	l.Helper()
	for id, n := range l.answers {
		require.Equal(l, 1, n, "answered-once: %s, killed %v", id, l.killed)
	}
	require.LessOrEqual(l, len(l.Effects()), l.allowed, "fail-closed: killed %v", l.killed)

	partial := func(line string) bool { return strings.Contains(line, `"stream_event"`) }
	rest, missing := l.wrote, 0
	for _, line := range l.read {
		for len(rest) > 0 && rest[0] != line {
			require.True(l, partial(rest[0]) || !l.whole, "ordered-lossless: %.200s, killed %v", rest[0], l.killed)
			if rest = rest[1:]; l.whole {
				missing++
			}
		}
		require.NotEmpty(l, rest, "ordered-lossless: nobody wrote %.200s, killed %v", line, l.killed)
		rest = rest[1:]
	}
	require.LessOrEqual(l, missing, l.dropped, "ordered-lossless: killed %v", l.killed)
	if l.whole && !l.hurried && s.State() == session.StateClosed {
		for _, line := range rest {
			require.True(l, partial(line), "ordered-lossless: %.200s, killed %v", line, l.killed)
		}
	}
}

// observed records what an agent writes, and which answers it gets.
type observed struct {
	agent.Program
	l *life
}

func (o observed) Serve(launch agent.Launch, p agent.Port) agent.Exit {
	return o.Program.Serve(launch, &observedPort{Port: p, l: o.l})
}

type observedPort struct {
	agent.Port
	l    *life
	rest []byte
}

func (p *observedPort) Elapsed() time.Duration { return p.Port.(agent.Elapser).Elapsed() }

func (p *observedPort) Next(wait time.Duration) ([]byte, error) {
	line, err := p.Port.Next(wait)
	if err != nil {
		return line, err
	}
	if f, err := protocol.ParseFrame(line); err == nil && f.Type == protocol.TypeControlResponse {
		p.l.answers[f.RequestID]++
	}
	return line, nil
}

func (p *observedPort) Write(b []byte) error {
	if err := p.Port.Write(b); err != nil {
		return err
	}
	p.rest = append(p.rest, b...)
	for {
		line, rest, whole := bytes.Cut(p.rest, []byte{'\n'})
		if !whole {
			return nil
		}
		p.rest = rest
		if f, err := protocol.ParseFrame(line); err == nil && !strings.HasPrefix(f.Type, "control_") {
			p.l.wrote = append(p.l.wrote, string(line))
		}
	}
}

package kernel_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	msg   interface{ isMsg() }
	ping  struct{ reply *kernel.Promise[int] }
	crash struct{ err error }
	boom  struct{}
	spawn struct {
		name  string
		b     *node
		at    *kernel.Address[msg]
		reply *kernel.Promise[bool]
	}
	drop struct{ child *kernel.Address[msg] }
	quit struct{}
	mute struct{}
)

func (ping) isMsg()  {}
func (crash) isMsg() {}
func (boom) isMsg()  {}
func (spawn) isMsg() {}
func (drop) isMsg()  {}
func (quit) isMsg()  {}
func (mute) isMsg()  {}

// node is an actor that does what its messages say and writes down its life.
type node struct {
	started, stopped int
	downs            []kernel.Down
	startErr         error
	stopPanic        bool
	onStop           func()
}

func (n *node) Start(*kernel.Context[msg]) error {
	n.started++
	return n.startErr
}

func (n *node) Handle(c *kernel.Context[msg], m msg) error {
	switch m := m.(type) {
	case ping:
		m.reply.Resolve(n.started)
	case crash:
		return m.err
	case boom:
		panic("boom")
	case spawn:
		if err := kernel.Spawn(c, m.name, m.at, m.b); err != nil {
			m.reply.Fail(err)
			return nil
		}
		m.reply.Resolve(true)
	case drop:
		c.StopChild(m.child)
	case quit:
		c.StopSelf()
	case mute:
	}
	return nil
}

func (n *node) ChildDown(_ *kernel.Context[msg], d kernel.Down) error {
	n.downs = append(n.downs, d)
	return nil
}

func (n *node) Stop(*kernel.Context[msg]) {
	n.stopped++
	if n.onStop != nil {
		n.onStop()
	}
	if n.stopPanic {
		panic("in stop")
	}
}

func askPing(ctx context.Context, r *kernel.Address[msg]) (int, error) {
	return kernel.Ask(ctx, r, func(p *kernel.Promise[int]) msg { return ping{p} })
}

func askSpawn(t *testing.T, r *kernel.Address[msg], name string, at *kernel.Address[msg], b *node) *kernel.Address[msg] {
	t.Helper()
	_, err := kernel.Ask(t.Context(), r, func(p *kernel.Promise[bool]) msg { return spawn{name, b, at, p} })
	require.NoError(t, err)
	return at
}

// root starts an actor at an address of its own.
func root(t *testing.T, sys *kernel.System, b kernel.Behavior[msg]) *kernel.Address[msg] {
	t.Helper()
	at := &kernel.Address[msg]{}
	require.NoError(t, kernel.SpawnRoot(sys, "root", at, b))
	return at
}

func simulated(t *testing.T, seed uint64) (*sim.Scheduler, *kernel.System) {
	t.Helper()
	s := sim.New(seed)
	t.Cleanup(s.Close)
	return s, kernel.NewSystem(s.Config())
}

// Stop comes to the parent, then to all children that are left; the parent is gone
// when they are.
func TestAParentIsGoneAfterItsChildren(t *testing.T) {
	t.Parallel()
	s, sys := simulated(t, 1)
	var stopped []string
	var parent *kernel.Address[msg]
	says := func(what string) *node {
		return &node{onStop: func() {
			assert.True(t, parent.Live(), what)
			stopped = append(stopped, what)
		}}
	}
	parent = root(t, sys, says("parent"))
	children := make([]kernel.Address[msg], 12)
	for i := range children {
		parent.Tell(nil, spawn{strconv.Itoa(i), says(strconv.Itoa(i)), &children[i], kernel.NewPromise[bool]()})
	}
	require.NoError(t, s.Run(1000))
	parent.Tell(nil, drop{&children[4]})
	require.NoError(t, s.Run(1000))
	parent.Tell(nil, quit{})
	require.NoError(t, s.Run(1000))
	assert.Equal(t, []string{"4", "parent"}, stopped[:2])
	assert.ElementsMatch(t, strings.Fields("0 1 2 3 5 6 7 8 9 10 11"), stopped[2:])
	assert.False(t, parent.Live())
}

// A name is given to one living child.
func TestAChildsNameIsItsOwn(t *testing.T) {
	t.Parallel()
	sys := kernel.NewSystem(kernel.Config{})
	parent := root(t, sys, &node{})
	var first, second kernel.Address[msg]
	askSpawn(t, parent, "child", &first, &node{})
	_, err := kernel.Ask(t.Context(), parent, func(p *kernel.Promise[bool]) msg { return spawn{"child", &node{}, &second, p} })
	require.ErrorContains(t, err, "the name is taken")
	assert.False(t, second.Live())
	got, err := askPing(t.Context(), &first)
	require.NoError(t, err)
	assert.Equal(t, 1, got)
	require.NoError(t, kernel.StopAndWait(t.Context(), parent))
}

func TestAskAnswersAndLearnsOfDeath(t *testing.T) {
	t.Parallel()
	for name, sys := range map[string]*kernel.System{
		"goroutines": kernel.NewSystem(kernel.Config{}),
		"simulation": kernel.NewSystem(sim.New(1).Config()),
	} {
		ref := root(t, sys, &node{})
		got, err := askPing(t.Context(), ref)
		require.NoError(t, err, name)
		assert.Equal(t, 1, got, name)

		require.NoError(t, kernel.StopAndWait(t.Context(), ref), name)
		_, err = askPing(t.Context(), ref)
		require.ErrorIs(t, err, kernel.ErrStopped, name)
	}
}

func TestAskEndsWithItsContext(t *testing.T) {
	t.Parallel()
	_, sys := simulated(t, 1)
	ref := root(t, sys, &node{})
	ctx, cancel := kernel.WithTimeout(t.Context(), sys.Clock(), &session.TimeoutError{What: "the answer", Limit: time.Second})
	defer cancel()
	_, err := kernel.Ask(ctx, ref, func(*kernel.Promise[int]) msg { return mute{} })
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.ErrorContains(t, err, "the answer: no answer within 1s")
}

func TestQueuedRequestOfACrashedActorEnds(t *testing.T) {
	t.Parallel()
	_, sys := simulated(t, 3)
	ref := root(t, sys, &node{})
	ref.Tell(nil, boom{})
	_, err := askPing(t.Context(), ref)
	require.ErrorIs(t, err, kernel.ErrStopped)
}

func TestFailureStopsTheActorAndTellsItsParent(t *testing.T) {
	t.Parallel()
	wrong := errors.New("wrong")
	for name, c := range map[string]struct {
		child  *node
		strike msg
		check  func(*testing.T, kernel.Down)
	}{
		"error":          {&node{}, crash{wrong}, func(t *testing.T, d kernel.Down) { assert.ErrorIs(t, d.Reason, wrong) }},
		"error on start": {&node{startErr: wrong}, nil, func(t *testing.T, d kernel.Down) { assert.ErrorIs(t, d.Reason, wrong) }},
		"own wish":       {&node{}, quit{}, func(t *testing.T, d kernel.Down) { assert.NoError(t, d.Reason) }},
		"panic": {&node{}, boom{}, func(t *testing.T, d kernel.Down) {
			var p *session.PanicError
			require.ErrorAs(t, d.Reason, &p)
			assert.Contains(t, p.Error(), "kernel_test.boom")
			assert.Contains(t, string(p.Stack), "kernel_test.go")
		}},
		"panic in stop": {&node{stopPanic: true}, quit{}, func(t *testing.T, d kernel.Down) {
			assert.ErrorContains(t, d.Reason, "in stop")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, sys := simulated(t, 5)
			parent := &node{}
			ref := root(t, sys, parent)
			child := askSpawn(t, ref, "child#1", &kernel.Address[msg]{}, c.child)
			if c.strike != nil {
				child.Tell(nil, c.strike)
			}
			require.NoError(t, s.Run(1000))
			require.Len(t, parent.downs, 1)
			assert.Equal(t, "child#1", parent.downs[0].Name)
			assert.Equal(t, 1, c.child.started)
			assert.Equal(t, 1, c.child.stopped)
			c.check(t, parent.downs[0])
		})
	}
}

func TestChaosKillsBeforeAndAfter(t *testing.T) {
	t.Parallel()
	for _, at := range []kernel.Moment{kernel.BeforeMessage, kernel.AfterMessage} {
		s := sim.New(1)
		cfg := s.Config()
		cfg.Chaos = func(actor string, m any, when kernel.Moment) bool {
			_, isPing := m.(ping)
			return actor == "root" && isPing && when == at
		}
		var crashes []kernel.Crash
		cfg.OnCrash = func(c kernel.Crash) { crashes = append(crashes, c) }
		sys := kernel.NewSystem(cfg)
		ref := root(t, sys, &node{})
		_, err := askPing(t.Context(), ref)
		if at == kernel.BeforeMessage {
			require.ErrorIs(t, err, kernel.ErrStopped)
		} else {
			require.NoError(t, err)
		}
		require.NoError(t, s.Run(100))
		require.Len(t, crashes, 1)
		var killed *kernel.Killed
		require.ErrorAs(t, crashes[0].Reason, &killed)
		assert.Equal(t, at, killed.At)
	}
}

func TestDeadLettersAreCounted(t *testing.T) {
	t.Parallel()
	s, sys := simulated(t, 1)
	ref := root(t, sys, &node{})
	require.NoError(t, kernel.StopAndWait(t.Context(), ref))
	ref.Tell(nil, mute{})
	require.NoError(t, s.Run(100))
	assert.EqualValues(t, 1, sys.DeadLetters())
	assert.Panics(t, func() { ref.Tell(nil, nil) })
}

// tough is an actor that fails and lives, and whose rescue fails as well.
type tough struct{ node }

func (*tough) Survive(*kernel.Context[msg], error) { panic("again") }

func TestASurvivorLivesWhateverItsRescueDoes(t *testing.T) {
	t.Parallel()
	s := sim.New(1)
	defer s.Close()
	cfg := s.Config()
	crashes := 0
	cfg.OnCrash = func(kernel.Crash) {
		crashes++
		panic("whoever listens fails, too")
	}
	ref := root(t, kernel.NewSystem(cfg), &tough{})
	for range 3 {
		ref.Tell(nil, crash{errors.New("a bug")})
		reply := kernel.NewPromise[int]()
		ref.Tell(nil, ping{reply})
		started, err := reply.Wait(t.Context(), s)
		require.NoError(t, err)
		assert.Equal(t, 1, started, "never restarted")
	}
	assert.Equal(t, 6, crashes, "each failure, and that of each rescue")
	require.NoError(t, kernel.StopAndWait(t.Context(), ref))
}

// sleeper sets a timer for each message.
type sleeper struct{ woken int }

func (s *sleeper) Start(c *kernel.Context[msg]) error {
	c.After(time.Second, mute{})
	c.After(time.Minute, mute{}).Stop()
	c.After(time.Hour, mute{})
	return nil
}

func (s *sleeper) Handle(c *kernel.Context[msg], m msg) error {
	if _, ok := m.(quit); ok {
		c.StopSelf()
		return nil
	}
	s.woken++
	return nil
}

func (s *sleeper) Stop(c *kernel.Context[msg]) { c.After(time.Hour, mute{}) }

func TestTimersEndWithTheirActor(t *testing.T) {
	t.Parallel()
	sched := sim.New(1)
	defer sched.Close()
	sys := kernel.NewSystem(sched.Config())
	s, start := &sleeper{}, sched.Now()
	ref := root(t, sys, s)
	sched.Go(func() { sched.AfterFunc(2*time.Second, func() { ref.Tell(nil, quit{}) }) })
	require.NoError(t, sched.Run(1000))
	assert.Equal(t, 1, s.woken)
	assert.Equal(t, 2*time.Second, sched.Now().Sub(start), "nothing waits for the hour")
	assert.Zero(t, sys.DeadLetters())
}

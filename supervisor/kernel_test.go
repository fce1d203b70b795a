package supervisor_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/supervisor"
)

type (
	msg   interface{ isMsg() }
	timer struct{ token supervisor.Token }
	leave struct{ gone *kernel.Promise[error] } // the graceful wish; gone may be nil
	tick  struct{}
)

func (timer) isMsg() {}
func (leave) isMsg() {}
func (tick) isMsg()  {}

// boss is all that makes an actor a supervisor.
type boss struct {
	spec  supervisor.Spec
	make  func(child string) kernel.Behavior[msg]
	diary *diary

	sup  *supervisor.Supervisor
	refs map[string]*kernel.Address[msg] // of present incarnations
	gone *kernel.Promise[error]
}

func (b *boss) Start(c *kernel.Context[msg]) (err error) {
	b.refs = map[string]*kernel.Address[msg]{}
	path := c.Self().Name()
	b.sup, err = supervisor.New(b.spec, c.System().Rand(), func(e supervisor.Event) { b.diary.note("%s: %v", path, e) })
	if err != nil {
		return err
	}
	return b.do(c, b.sup.Start(c.Now()))
}

func (b *boss) Handle(c *kernel.Context[msg], m msg) error {
	switch m := m.(type) {
	case timer:
		return b.do(c, b.sup.Timer(c.Now(), m.token))
	case leave:
		b.gone = m.gone
		return b.do(c, b.sup.Stop(c.Now(), nil))
	}
	return nil
}

func (b *boss) ChildDown(c *kernel.Context[msg], d kernel.Down) error {
	name, n, _ := strings.Cut(d.Name, "#")
	incarnation, err := strconv.Atoi(n)
	if err != nil {
		return err
	}
	return b.do(c, b.sup.ChildDown(c.Now(), name, incarnation, d.Reason))
}

func (b *boss) Stop(*kernel.Context[msg]) {}

// do carries out actions, and then those that follow from what it learned.
func (b *boss) do(c *kernel.Context[msg], actions []supervisor.Action) error {
	for len(actions) > 0 {
		var learned []func() []supervisor.Action
		for _, a := range actions {
			switch a := a.(type) {
			case *supervisor.StartChild:
				at := &kernel.Address[msg]{} // a leave is for one incarnation
				err := kernel.Spawn(c, fmt.Sprintf("%s#%d", a.Name, a.Incarnation), at, b.make(a.Name))
				learned = append(learned, func() []supervisor.Action {
					if err != nil {
						return b.sup.ChildDown(c.Now(), a.Name, a.Incarnation, err)
					}
					b.sup.ChildUp(c.Now(), a.Name, a.Incarnation)
					return nil
				})
				b.refs[a.Name] = at
			case *supervisor.StopChild:
				b.refs[a.Name].Tell(nil, leave{})
			case *supervisor.KillChild:
				c.StopChild(b.refs[a.Name])
			case *supervisor.SetTimer:
				c.After(a.After, timer{a.Token})
			case *supervisor.Escalate:
				return a.Reason
			case *supervisor.Stopped:
				if b.gone != nil {
					b.gone.Resolve(a.Reason)
				}
				c.StopSelf()
			}
		}
		actions = nil
		for _, tell := range learned {
			actions = append(actions, tell()...)
		}
	}
	return nil
}

// worker fails at random: at its start, at work, or on its way out.
type worker struct {
	name  string
	diary *diary
	deaf  bool
}

func chance(c *kernel.Context[msg], oneIn int64) bool { return c.System().Rand().Int64N(oneIn) == 0 }

func (w *worker) Start(c *kernel.Context[msg]) error {
	w.diary.up(w.name, c.Self().Name())
	w.deaf = chance(c, 10)
	if chance(c, 12) {
		return errors.New("no start")
	}
	w.next(c)
	return nil
}

func (w *worker) next(c *kernel.Context[msg]) {
	c.After(time.Duration(c.System().Rand().Int64N(int64(400*time.Millisecond))), tick{})
}

func (w *worker) Handle(c *kernel.Context[msg], m msg) error {
	switch m.(type) {
	case leave:
		if !w.deaf {
			c.StopSelf()
		}
	case tick:
		switch {
		case chance(c, 25):
			panic("at work")
		case chance(c, 25):
			return errors.New("wrong")
		case chance(c, 100):
			c.StopSelf()
		default:
			w.next(c)
		}
	}
	return nil
}

func (w *worker) Stop(c *kernel.Context[msg]) {
	w.diary.down(w.name, c.Self().Name())
	if chance(c, 20) {
		panic("on the way out")
	}
}

// diary is what happened in one run.
type diary struct {
	t       *testing.T
	seed    uint64
	clock   kernel.Clock
	lines   []string
	live    map[string]string // worker → incarnation
	starts  int
	escaped []error
}

func (d *diary) note(format string, args ...any) {
	d.lines = append(d.lines, fmt.Sprintf("%v ", d.clock.Now().Sub(epoch))+fmt.Sprintf(format, args...))
}

func (d *diary) up(worker, incarnation string) {
	d.note("%s up as %s", worker, incarnation)
	require.Empty(d.t, d.live[worker], "seed %d: %s lives twice", d.seed, worker)
	d.live[worker] = incarnation
	d.starts++
}

func (d *diary) down(worker, incarnation string) {
	d.note("%s down as %s", worker, incarnation)
	require.Equal(d.t, incarnation, d.live[worker], "seed %d", d.seed)
	delete(d.live, worker)
}

// TestSupervisedActors lets a tree of supervisors, of all strategies, live
// among random crashes (of supervisors too) and then stops it.
func TestSupervisedActors(t *testing.T) {
	t.Parallel()
	runs := uint64(300)
	if testing.Short() {
		runs = 75
	}
	if v := os.Getenv("TROUPE_SEEDS"); v != "" {
		n, err := strconv.ParseUint(v, 10, 64)
		require.NoError(t, err, "TROUPE_SEEDS")
		runs = n
	}
	var starts, escalations int
	for seed := range runs {
		d := liveAndStop(t, seed)
		starts += d.starts
		escalations += len(d.escaped)
		if seed%50 == 0 {
			require.Equal(t, d.lines, liveAndStop(t, seed).lines, "seed %d", seed)
		}
	}
	assert.Greater(t, starts, 10*int(runs), "there were restarts")
	assert.Positive(t, escalations)
}

func liveAndStop(t *testing.T, seed uint64) *diary {
	t.Helper()
	s := sim.New(seed)
	defer s.Close()
	d := &diary{t: t, seed: seed, clock: s, live: map[string]string{}}
	cfg := s.Config()
	cfg.Chaos = func(actor string, _ any, _ kernel.Moment) bool {
		return actor != "top" && s.Int64N(1500) == 0
	}
	cfg.OnCrash = func(c kernel.Crash) {
		d.note("%s crashed: %v", c.Actor, c.Reason)
		var f *supervisor.Failure
		if errors.As(c.Reason, &f) {
			d.escaped = append(d.escaped, f)
		}
	}
	sys := kernel.NewSystem(cfg)
	var top kernel.Address[msg]
	require.NoError(t, kernel.SpawnRoot(sys, "top", &top, tree(d)))
	for range 100 + s.Int64N(2000) {
		s.Step()
	}
	reason, err := kernel.Ask(t.Context(), &top, func(p *kernel.Promise[error]) msg { return leave{p} })
	if err != nil {
		require.ErrorIs(t, err, kernel.ErrStopped, "seed %d", seed)
		require.NotEmpty(t, d.escaped, "seed %d: the top ended without a stop or a failure", seed)
	} else if reason != nil {
		require.ErrorIs(t, reason, supervisor.ErrIntensity, "seed %d", seed)
	}
	require.NoError(t, s.Run(10_000), "seed %d", seed)
	require.Empty(t, d.live, "seed %d: workers outlived the tree", seed)
	return d
}

// tree is a top over one supervisor of each strategy.
func tree(d *diary) *boss {
	leaves := func(branch string, strategy supervisor.Strategy) *boss {
		return &boss{
			spec: supervisor.Spec{
				Name: branch, Strategy: strategy,
				Backoff: supervisor.Backoff{Initial: 50 * time.Millisecond, Immediate: true},
				Children: []supervisor.Child{
					{Name: "p"},
					{Name: "q", Shutdown: time.Second},
					{Name: "r", Class: supervisor.Transient, Shutdown: supervisor.Brutal},
					{Name: "s", Class: supervisor.Temporary},
				},
			},
			make:  func(child string) kernel.Behavior[msg] { return &worker{name: branch + "/" + child, diary: d} },
			diary: d,
		}
	}
	return &boss{
		spec: supervisor.Spec{
			Name: "top", Intensity: supervisor.Intensity{Max: 10},
			Children: []supervisor.Child{
				{Name: "one", Shutdown: time.Minute}, {Name: "all", Shutdown: time.Minute}, {Name: "rest", Shutdown: time.Minute},
			},
		},
		make: func(child string) kernel.Behavior[msg] {
			return leaves(child, map[string]supervisor.Strategy{
				"one": supervisor.OneForOne, "all": supervisor.OneForAll, "rest": supervisor.RestForOne,
			}[child])
		},
		diary: d,
	}
}

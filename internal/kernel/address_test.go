package kernel_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
)

// chore is a message with a number. It commits, and fails, as it says.
type chore struct {
	n      int
	commit bool
	deaths *int // it fails so many times
}

func (chore) isMsg() {}

// counter is a child that notes the jobs it has done.
type counter struct{ done *[]int }

func (counter) Start(*kernel.Context[msg]) error { return nil }
func (k counter) Handle(c *kernel.Context[msg], m msg) error {
	j, ok := m.(chore)
	if !ok {
		return nil
	}
	if j.commit {
		*k.done = append(*k.done, j.n)
		c.Commit()
	}
	if j.deaths != nil && *j.deaths > 0 {
		*j.deaths--
		return errors.New("died of the job")
	}
	if !j.commit {
		*k.done = append(*k.done, j.n)
	}
	return nil
}
func (counter) Stop(*kernel.Context[msg]) {}

// parent owns the address of a counter, and starts each next incarnation.
type parent struct {
	at      kernel.Address[msg]
	done    []int
	lives   int
	tries   []int // at each death
	poison  int   // so many deaths of one message are enough; 0: never
	dropped []msg
}

func (p *parent) Start(c *kernel.Context[msg]) error { return p.next(c) }
func (p *parent) Handle(*kernel.Context[msg], msg) error {
	return nil
}
func (p *parent) Stop(*kernel.Context[msg]) {}
func (p *parent) next(c *kernel.Context[msg]) error {
	p.lives++
	return kernel.Spawn(c, fmt.Sprintf("counter#%d", p.lives), &p.at, counter{&p.done})
}

func (p *parent) ChildDown(c *kernel.Context[msg], _ kernel.Down) error {
	p.tries = append(p.tries, p.at.Tries())
	if p.poison > 0 && p.at.Tries() >= p.poison {
		m, ok := p.at.DropHead()
		if !ok {
			return errors.New("no head")
		}
		p.dropped = append(p.dropped, m)
	}
	return p.next(c)
}

// family runs a parent with its counter until nothing is left to do.
func family(t *testing.T, seed uint64, p *parent, change func(*kernel.Config)) (run func()) {
	t.Helper()
	s := sim.New(seed)
	t.Cleanup(s.Close)
	cfg := s.Config()
	if change != nil {
		change(&cfg)
	}
	root(t, kernel.NewSystem(cfg), p)
	return func() { require.NoError(t, s.Run(100_000), "seed %d", seed) }
}

func times(n int) *int { return &n }

func TestMessagesOutliveTheIncarnation(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		jobs  []chore
		lives int
		tries []int
	}{
		"nobody dies":                         {[]chore{{n: 0}, {n: 1}, {n: 2}}, 1, nil},
		"one dies before it has committed":    {[]chore{{n: 0}, {n: 1, deaths: times(1)}, {n: 2}}, 2, []int{1}},
		"two die of one message":              {[]chore{{n: 0, deaths: times(2)}, {n: 1}, {n: 2}}, 3, []int{1, 2}},
		"one dies after it has committed":     {[]chore{{n: 0}, {n: 1, commit: true, deaths: times(1)}, {n: 2}}, 2, []int{0}},
		"one dies of each":                    {[]chore{{n: 0, deaths: times(1)}, {n: 1, deaths: times(1)}, {n: 2, deaths: times(1)}}, 4, []int{1, 1, 1}},
		"one commits what it goes on to live": {[]chore{{n: 0, commit: true}, {n: 1}, {n: 2}}, 1, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(10) {
				p := &parent{}
				for _, j := range c.jobs {
					if j.deaths != nil {
						j.deaths = times(*j.deaths)
					}
					p.at.Tell(nil, j) // also before there is anybody
				}
				family(t, seed, p, nil)()
				require.Equal(t, []int{0, 1, 2}, p.done, "each is done, once, in order")
				require.Equal(t, c.lives, p.lives)
				require.Equal(t, c.tries, p.tries)
				require.Zero(t, p.at.Depth())
				require.Zero(t, p.at.Tries())
			}
		})
	}
}

// TestKilledAtEveryMessage kills the actor before and after each message: nothing
// is lost, and nothing is done twice.
func TestKilledAtEveryMessage(t *testing.T) {
	t.Parallel()
	const jobs = 12
	for _, at := range []kernel.Moment{kernel.BeforeMessage, kernel.AfterMessage} {
		for kill := range jobs {
			for seed := range seeds(t, 10) / 5 {
				killed := false
				p := &parent{}
				run := family(t, seed, p, func(c *kernel.Config) {
					c.Chaos = func(_ string, m any, when kernel.Moment) bool {
						j, ok := m.(chore)
						hit := ok && j.n == kill && when == at && !killed
						killed = killed || hit
						return hit
					}
				})
				for n := range jobs {
					p.at.Tell(nil, chore{n: n, commit: n%2 == 0})
				}
				run()
				require.Equal(t, []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, p.done, "killed %v %d, seed %d", at, kill, seed)
				require.Equal(t, 2, p.lives)
			}
		}
	}
}

func TestAMessageThatKillsIsDropped(t *testing.T) {
	t.Parallel()
	p := &parent{poison: 2}
	run := family(t, 1, p, nil)
	_, ok := p.at.DropHead()
	assert.False(t, ok, "nobody has died")
	p.at.Tell(nil, chore{n: 0})
	p.at.Tell(nil, chore{n: 1, deaths: times(1000)})
	p.at.Tell(nil, chore{n: 2})
	run()
	assert.Equal(t, []int{0, 2}, p.done)
	assert.Equal(t, []int{1, 2}, p.tries)
	require.Len(t, p.dropped, 1)
	assert.Equal(t, 1, p.dropped[0].(chore).n)
}

func TestAnAddressHasOneActor(t *testing.T) {
	t.Parallel()
	s, sys := simulated(t, 1)
	at := root(t, sys, &node{})
	assert.True(t, at.Live())
	require.ErrorContains(t, kernel.SpawnRoot(sys, "other", at, &node{}), "the address has an actor")
	var elsewhere kernel.Address[msg]
	require.Error(t, kernel.SpawnRoot(sys, "root", &elsewhere, &node{}), "the name is taken")
	assert.False(t, elsewhere.Live())
	require.NoError(t, s.Run(100))
	assert.Equal(t, "root", at.Name())
}

func TestAnAddressWithoutAnActor(t *testing.T) {
	t.Parallel()
	var at kernel.Address[msg]
	at.Tell(nil, mute{})
	assert.Equal(t, 1, at.Depth())
	assert.Zero(t, at.Handled())
	assert.Empty(t, at.Name())
	_, err := askPing(t.Context(), &at)
	require.ErrorIs(t, err, kernel.ErrStopped)
	require.NoError(t, kernel.StopAndWait(t.Context(), &at), "there is nobody to stop")
	at.Close()
	assert.Equal(t, 1, at.Depth(), "there is no system to count dead letters")
}

func TestAClosedAddressCountsDeadLetters(t *testing.T) {
	t.Parallel()
	s, sys := simulated(t, 1)
	p := &parent{}
	at := root(t, sys, p)
	require.NoError(t, s.Run(100))
	p.at.Close()
	p.at.Tell(nil, chore{n: 1})
	p.at.Close()
	assert.EqualValues(t, 1, sys.DeadLetters())
	require.NoError(t, kernel.StopAndWait(t.Context(), at))
	p.at.Tell(nil, chore{n: 2})
	assert.EqualValues(t, 2, sys.DeadLetters())
	assert.Empty(t, p.done)
}

// latecomer sets a timer, and dies before it fires.
type latecomer struct{ seen *[]string }

func (l latecomer) Start(c *kernel.Context[msg]) error { return nil }
func (l latecomer) Stop(*kernel.Context[msg])          {}
func (l latecomer) Handle(c *kernel.Context[msg], m msg) error {
	if _, ok := m.(boom); ok {
		c.After(time.Second, mute{})
		c.Commit()
		panic("boom")
	}
	*l.seen = append(*l.seen, fmt.Sprintf("%s %T", c.Self().Name(), m))
	return nil
}

func TestATimerTellsTheAddressWhileItsIncarnationLives(t *testing.T) {
	t.Parallel()
	s, sys := simulated(t, 1)
	var at kernel.Address[msg]
	var seen []string
	require.NoError(t, kernel.SpawnRoot(sys, "a#1", &at, latecomer{&seen}))
	at.Tell(nil, boom{})
	require.NoError(t, s.Run(100))
	require.NoError(t, kernel.SpawnRoot(sys, "a#2", &at, latecomer{&seen}))
	at.Tell(nil, ping{})
	require.NoError(t, s.Run(100))
	assert.Equal(t, []string{"a#2 kernel_test.ping"}, seen, "the timer ended with its incarnation")
}

// TestTheOldestMessage has messages that no incarnation takes.
func TestTheOldestMessage(t *testing.T) {
	t.Parallel()
	at := &kernel.Address[msg]{}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	assert.Zero(t, at.Waited(now), "an empty mailbox")
	at.Tell(nil, chore{n: 1})
	assert.Zero(t, at.Waited(now), "seen for the first time")
	assert.Equal(t, time.Minute, at.Waited(now.Add(time.Minute)))
	at.Tell(nil, chore{n: 2})
	assert.Equal(t, time.Hour, at.Waited(now.Add(time.Hour)), "a younger one changes nothing")
	at.Take()
	assert.Zero(t, at.Waited(now.Add(time.Hour)))
	at.Tell(nil, chore{n: 3})
	assert.Zero(t, at.Waited(now.Add(2*time.Hour)), "another one")
}

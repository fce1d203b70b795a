package sim_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
)

// inBubble runs fn as the first task of a bubble, and returns the scheduler and what
// its Run came to.
func inBubble(t *testing.T, c *sim.Choices, fn func(*sim.Bubble)) (s *sim.Bubble, err error) {
	t.Helper()
	var progress atomic.Int64
	left := sim.Enter(t, &progress, time.Minute, "test", func() {
		s = sim.InBubble(c, 10_000)
		s.OnStep(func() { progress.Add(1) })
		s.Go(func() { fn(s) })
		err = s.Run()
		s.Close()
	})
	require.NoError(t, left)
	return s, err
}

// three starts three tasks that say their names.
func three(said *[]string) func(*sim.Bubble) {
	return func(s *sim.Bubble) {
		for _, name := range []string{"a", "b", "c"} {
			s.Go(func() {
				*said = append(*said, name)
				_ = s.Await(context.Background(), after(s, time.Second))
				*said = append(*said, name)
			})
		}
	}
}

func after(s *sim.Bubble, d time.Duration) <-chan struct{} {
	over := make(chan struct{})
	s.AfterFunc(d, func() { close(over) })
	return over
}

func TestBubbleOrderIsTheSeeds(t *testing.T) {
	t.Parallel()
	orders := make(map[string]bool)
	for seed := range uint64(20) {
		var first []string
		for range 2 {
			var said []string
			s, err := inBubble(t, sim.Draw(seed), three(&said))
			require.NoError(t, err)
			require.Len(t, said, 6)
			if first == nil {
				first = said
			}
			require.Equal(t, first, said, "seed %d", seed)
			// What was taken, given again, is the same history.
			taken, outOf := s.Decisions()
			require.Len(t, outOf, len(taken))
			var again []string
			_, err = inBubble(t, sim.Play(seed, slices.Clone(taken)), three(&again))
			require.NoError(t, err)
			require.Equal(t, said, again)
		}
		orders[strings.Join(first, "")] = true
	}
	assert.Greater(t, len(orders), 5)
	var plain []string
	_, err := inBubble(t, sim.Play(1, []uint16{}), three(&plain))
	require.NoError(t, err)
	assert.Equal(t, "abcabc", strings.Join(plain, ""), "no decision given: who has waited longest")
}

// What user code does with time and channels is virtual, and others go on meanwhile.
func TestBubbleUserCodeWaits(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var said []string
	say := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		said = append(said, what)
	}
	start := time.Now()
	s, err := inBubble(t, sim.Draw(1), func(s *sim.Bubble) {
		began := time.Now()
		ch := make(chan string)
		s.Go(func() { time.Sleep(time.Hour); say("slept " + time.Since(began).String()); ch <- "x" })
		s.Go(func() { say("got " + <-ch) })
		s.Go(func() { _ = s.Await(context.Background(), after(s, time.Minute)); say("kernel") })
	})
	require.NoError(t, err)
	assert.Equal(t, []string{"kernel", "slept 1h0m0s", "got x"}, said)
	assert.Less(t, time.Since(start), time.Minute)
	assert.False(t, s.Unseeded())
}

func TestBubbleQuiet(t *testing.T) {
	t.Parallel()
	_, err := inBubble(t, sim.Draw(3), func(s *sim.Bubble) {
		began, done := time.Now(), false
		s.Go(func() {
			_ = s.Await(context.Background(), after(s, time.Hour))
			done = true
		})
		s.Quiet()
		assert.True(t, done)
		assert.Equal(t, time.Hour, time.Since(began))
	})
	require.NoError(t, err)
}

func TestBubbleDeadlock(t *testing.T) {
	t.Parallel()
	never := func(s *sim.Bubble) error { return s.Await(context.Background(), make(chan struct{})) }
	ended := make(chan error, 1)
	_, err := inBubble(t, sim.Draw(1), func(s *sim.Bubble) { ended <- never(s) })
	require.ErrorIs(t, err, sim.ErrDeadlock)
	require.ErrorIs(t, <-ended, sim.ErrClosed)

	_, err = inBubble(t, sim.Draw(1), func(s *sim.Bubble) {
		for {
			if s.Await(context.Background(), after(s, time.Second)) != nil {
				return
			}
		}
	})
	require.ErrorIs(t, err, sim.ErrSteps)
}

func TestBubbleAwait(t *testing.T) {
	t.Parallel()
	_, err := inBubble(t, sim.Draw(1), func(s *sim.Bubble) {
		cause := fmt.Errorf("cause")
		ctx, cancel := context.WithCancelCause(context.Background())
		s.AfterFunc(time.Second, func() { cancel(cause) })
		assert.ErrorIs(t, s.Await(ctx, make(chan struct{})), cause)
		done := make(chan struct{})
		close(done)
		assert.NoError(t, s.Await(ctx, done), "done wins")
		assert.ErrorIs(t, s.Await(ctx, make(chan struct{})), cause)
	})
	require.NoError(t, err)
}

// Goroutines that the scheduler does not know take part; when two of them come at the
// same instant their order is nobody's choice.
func TestBubbleStrays(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2} {
		var wg sync.WaitGroup
		s, err := inBubble(t, sim.Draw(1), func(s *sim.Bubble) {
			for range n {
				wg.Go(func() {
					time.Sleep(time.Second)
					assert.NoError(t, s.Await(context.Background(), after(s, time.Second)))
				})
			}
			wg.Wait()
		})
		require.NoError(t, err)
		assert.Equal(t, n > 1, s.Unseeded(), "%d strays", n)
	}
}

// A worker that waited in the user's code has lost the baton, and gets it again before
// it goes on.
func TestBubbleWorkerRejoins(t *testing.T) {
	t.Parallel()
	var inside, most int // unguarded: the race detector looks, too
	s, err := inBubble(t, sim.Draw(4), func(s *sim.Bubble) {
		for range 3 {
			s.Go(func() {
				var at kernel.Seat
				s.Yield(&at, false)
				time.Sleep(time.Second) // all three come back at this instant
				s.Yield(&at, false)
				inside++
				most = max(most, inside)
				_ = s.Now()
				inside--
			})
		}
	})
	require.NoError(t, err)
	assert.Equal(t, 1, most)
	assert.True(t, s.Unseeded(), "the order in which they came back is the runtime's")
}

func TestBubbleTimers(t *testing.T) {
	t.Parallel()
	firsts := make(map[string]bool)
	for seed := range uint64(10) {
		var said []string
		_, err := inBubble(t, sim.Draw(seed), func(s *sim.Bubble) {
			for _, name := range []string{"a", "b"} {
				s.AfterFunc(time.Second, func() { said = append(said, name) })
			}
			stopped := s.AfterFunc(time.Second, func() { said = append(said, "stopped") })
			assert.True(t, stopped.Stop())
			assert.False(t, stopped.Stop())
			s.AfterFunc(500*time.Millisecond, func() { said = append(said, "early") })
			s.Quiet()
		})
		require.NoError(t, err)
		require.Len(t, said, 3)
		require.Equal(t, "early", said[0])
		firsts[said[1]] = true
	}
	assert.Len(t, firsts, 2, "timers of the same instant fire in any order")
}

func TestBubbleJump(t *testing.T) {
	t.Parallel()
	_, err := inBubble(t, sim.Draw(1), func(s *sim.Bubble) {
		began := time.Now()
		late := after(s, time.Second)
		s.Jump(time.Hour)
		_ = s.Await(context.Background(), late)
		assert.Equal(t, time.Hour, time.Since(began))
	})
	require.NoError(t, err)
}

// A task that ends its goroutine ends itself alone.
func TestBubbleGoexit(t *testing.T) {
	t.Parallel()
	ran := 0
	s, err := inBubble(t, sim.Draw(1), func(s *sim.Bubble) {
		s.Go(func() { defer func() { ran++ }(); runtime.Goexit() })
		s.Quiet()
		s.Go(func() { ran++ })
	})
	require.NoError(t, err)
	assert.Equal(t, 2, ran)
	assert.Zero(t, s.Live())
}

// TestEnter: goroutines that nothing can wake are an error with their stacks.
func TestEnterFindsWhatIsLeft(t *testing.T) {
	t.Parallel()
	var progress atomic.Int64
	err := sim.Enter(t, &progress, time.Minute, "test", func() {
		go leakedForEver(make(chan struct{}))
	})
	require.Error(t, err)
	assert.Contains(t, err.Error(), "leakedForEver")
}

func leakedForEver(ch chan struct{}) { <-ch }

// TestWatchdog runs itself as a program that waits for a lock.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	if os.Getenv("SIM_STUCK") != "" {
		var progress atomic.Int64
		_ = sim.Enter(t, &progress, 2*time.Second, "the scenario of seed 7", func() {
			var mu sync.Mutex
			mu.Lock()
			mu.Lock()
		})
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestWatchdog$")
	cmd.Env = append(os.Environ(), "SIM_STUCK=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit, out.String())
	assert.Equal(t, 2, exit.ExitCode())
	assert.Contains(t, out.String(), "the scenario of seed 7")
	assert.Contains(t, out.String(), "TestWatchdog.func")
}

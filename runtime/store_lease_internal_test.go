package runtime

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/session"
)

// slowLeaser is a store whose answers take their time, and which cannot be reached after some.
type slowLeaser struct {
	session.Store
	takes time.Duration

	mu      sync.Mutex
	answers int
	asked   []time.Time // that were answered
}

// more lets the store answer once more.
func (s *slowLeaser) more() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers++
}

// answered returns when the questions were asked that the store has answered, and how many
// it answers.
func (s *slowLeaser) answered() ([]time.Time, int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked), s.answers
}

// takesOne reports whether the store answers the question of now.
func (s *slowLeaser) takesOne() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.asked) >= s.answers {
		return false
	}
	s.asked = append(s.asked, time.Now())
	return true
}

func (s *slowLeaser) answer(ctx context.Context) error {
	if !s.takesOne() {
		return errors.New("no route to the store")
	}
	select {
	case <-time.After(s.takes):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slowLeaser) AcquireLease(ctx context.Context, r session.LeaseRequest) (session.Lease, error) {
	return session.Lease{Session: r.Session, Token: 1}, s.answer(ctx)
}

func (s *slowLeaser) RenewLease(ctx context.Context, _ session.Lease, _ time.Duration) error {
	return s.answer(ctx)
}

func (s *slowLeaser) ReleaseLease(context.Context, session.Lease) error { return nil }

// A lease counts as lost five sixths of its time after the store was asked for it the last time
// that it answered: at the store it runs from somewhere between, and the agent has to be gone
// by then.
func TestALeaseRunsFromTheQuestion(t *testing.T) {
	t.Parallel()
	const ttl, takes = 60 * time.Second, 9 * time.Second
	for name, c := range map[string]struct {
		answers int
		rests   time.Duration // without a process, before the one that loses it
	}{
		"it was got":                {answers: 1},
		"it was renewed":            {answers: 2},
		"renewed again":             {answers: 3},
		"confirmed for its process": {answers: 1, rests: 55 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				rt, err := New(Config{})
				require.NoError(t, err)
				s := &slowLeaser{takes: takes, answers: c.answers}
				l := newStoreLeases(s, ttl, rt, func(problem string) { assert.Fail(t, problem) })
				lost := make(chan error, 1)
				if c.rests > 0 {
					_, err = l.take(t.Context(), "s", nil)
					require.NoError(t, err)
					time.Sleep(c.rests)
					s.more()
				}
				release, err := l.take(t.Context(), "s", func(err error) { lost <- err })
				require.NoError(t, err)
				var gone *session.LeaseError
				require.ErrorAs(t, <-lost, &gone)
				assert.True(t, gone.Lost)
				asked, answers := s.answered()
				require.Len(t, asked, answers)
				assert.Equal(t, ttl*5/6, time.Since(asked[len(asked)-1]))
				release()
				l.leave()
				require.NoError(t, rt.Shutdown(t.Context()))
			})
		})
	}
}

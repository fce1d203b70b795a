package userproc_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/userproc"
	"github.com/agent-troupe/troupe/session"
)

type process struct {
	session.Process
	out    io.Reader
	killed bool
}

func (*process) PID() int                { return 7 }
func (*process) Exited() <-chan struct{} { return make(chan struct{}) }
func (*process) Stdin() io.WriteCloser   { return nil }
func (p *process) Stdout() io.Reader     { return p.out }
func (*process) Stderr() io.Reader       { return nil }
func (p *process) Kill() error           { p.killed = true; panic("cannot") }

// writes is one whose input ends the goroutine that writes.
type writes struct{ *process }

func (w *writes) Stdin() io.WriteCloser   { return w }
func (*writes) Exited() <-chan struct{}   { return make(chan struct{}) }
func (*writes) Write([]byte) (int, error) { runtime.Goexit(); return 0, nil }
func (*writes) Close() error              { return nil }

type endless struct{ *process }

func (endless) Exited() <-chan struct{} { return nil }

type known struct{ *process }

func (known) AfterExit(func())      {}
func (known) Stdin() io.WriteCloser { return &writes{} }
func (known) Stdout() io.Reader     { return &io.LimitedReader{} }

type spawner func() (session.Process, error)

func (s spawner) Spawn(context.Context, session.Command) (session.Process, error) { return s() }

// TestSpawn is about what no link can see: the rest is tested with one.
func TestSpawn(t *testing.T) {
	t.Parallel()
	bad, odd := &process{}, errors.New("odd")
	for name, c := range map[string]struct {
		spawn spawner
		want  string // the error
	}{
		"an error":            {func() (session.Process, error) { return nil, odd }, "odd"},
		"a panic":             {func() (session.Process, error) { panic(odd) }, "panic while handling Spawn: odd"},
		"nothing":             {func() (session.Process, error) { return nil, nil }, "neither a process nor an error"},
		"no pipes":            {func() (session.Process, error) { return bad, nil }, "each must return a value that is not nil"},
		"a built-in one":      {func() (session.Process, error) { return known{bad}, nil }, ""},
		"a typed nil as well": {func() (session.Process, error) { return (*process)(nil), nil }, "panic while handling Process.Stdout"},
		"no end":              {func() (session.Process, error) { return endless{bad}, nil }, "Exited of the process returns nil"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, err := userproc.Spawn(t.Context(), c.spawn, session.Command{}, nil)
			if c.want != "" {
				require.ErrorContains(t, err, c.want)
				assert.Nil(t, p)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, known{bad}, p)
		})
	}
	t.Run("a write that does not return", func(t *testing.T) {
		t.Parallel()
		var failed error
		p, err := userproc.Guard(&writes{&process{}}, func(err error) { failed = err })
		require.NoError(t, err)
		over := make(chan struct{})
		go func() {
			defer close(over)
			_, _ = p.Stdin().Write(nil)
		}()
		<-over
		require.ErrorContains(t, failed, "Process.Stdin.Write: it ended its goroutine")
		_, err = p.Stdin().Write(nil)
		assert.Equal(t, failed, err, "it is not called again")
	})
	t.Run("one that is not used is killed", func(t *testing.T) {
		t.Parallel()
		p := &process{}
		_, err := userproc.Spawn(t.Context(), spawner(func() (session.Process, error) { return p, nil }), session.Command{}, nil)
		require.ErrorContains(t, err, "panic while handling Process.Kill: cannot")
		assert.True(t, p.killed)
	})
}

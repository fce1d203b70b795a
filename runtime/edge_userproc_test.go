//go:build linux

package runtime_test

import (
	"context"
	"errors"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/session"
)

// trapped is a real process, one of whose methods panics once it has done its work.
type trapped struct {
	session.Process
	method string
	after  int // reads
}

func (p *trapped) at(method string) {
	if p.method == method {
		panic("odd " + method)
	}
}

func (p *trapped) Stdout() io.Reader     { return &trappedPipe{p: p, Reader: p.Process.Stdout()} }
func (p *trapped) Stdin() io.WriteCloser { return &trappedPipe{p: p, WriteCloser: p.Process.Stdin()} }

func (p *trapped) Kill() error {
	defer p.at("Kill")
	return p.Process.Kill()
}

func (p *trapped) Sweep(ctx context.Context) ([]session.ProcInfo, error) {
	defer p.at("Sweep")
	return p.Process.Sweep(ctx)
}

func (p *trapped) Reap() (session.ExitStatus, error) {
	defer p.at("Reap")
	return p.Process.Reap()
}

type trappedPipe struct {
	p *trapped
	io.Reader
	io.WriteCloser
	reads int
}

func (t *trappedPipe) Read(b []byte) (int, error) {
	if t.reads++; t.reads > t.p.after {
		t.p.at("Read")
	}
	return t.Reader.Read(b)
}

func (t *trappedPipe) Write(b []byte) (int, error) {
	defer t.p.at("Write")
	return t.WriteCloser.Write(b)
}

type traps struct {
	session.Spawner
	method string
	after  int
}

func (s traps) Spawn(ctx context.Context, c session.Command) (session.Process, error) {
	p, err := s.Spawner.Spawn(ctx, c)
	if err != nil {
		return nil, err
	}
	return &trapped{Process: p, method: s.method, after: s.after}, nil
}

// TestEdgeMethodsOfAProcessThatPanic end the session of the process, which says why, and nothing is left. The
// host lives.
func TestEdgeMethodsOfAProcessThatPanic(t *testing.T) {
	r := newRig(t)
	for name, c := range map[string]struct {
		method string
		after  int
		ends   bool // the session, by itself
	}{
		"the first read": {"Read", 0, true}, "a later read": {"Read", 1, true}, "a write": {"Write", 0, true},
		"the sweep": {"Sweep", 0, false}, "the end": {"Reap", 0, false}, "a kill": {"Kill", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := limit(t)
			spec := r.spec(t, hello)
			spec.Options.Spawner = traps{r.rt.Spawner(), c.method, c.after}
			s, err := r.rt.Open(ctx, spec)
			if err == nil {
				turn, sent := s.Send(ctx, userText("hi"))
				err = sent
				if sent == nil {
					_, err = turn.Result(ctx)
				}
				if closed := s.Close(ctx); !c.ends {
					require.NoError(t, err, "the turn")
					err = closed
				}
				err = errors.Join(err, s.Err())
			}
			var panicked *session.PanicError
			if c.method == "Kill" { // it was swept all the same
				assert.NotErrorAs(t, err, &panicked)
				return
			}
			require.ErrorAs(t, err, &panicked, "%v", err)
			assert.Equal(t, "odd "+c.method, panicked.Value)
		})
	}
}

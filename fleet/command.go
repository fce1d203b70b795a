package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/userproc"
	"github.com/agent-troupe/troupe/session"
)

// command is a program that the job itself runs: git, a setup, a verifier. It belongs to
// the job as agents do: its whole tree is ended with it.
type command struct {
	name  string
	args  []string
	dir   string
	env   []string        // added
	whole []string        // the environment, but for the job's marker; nil: that of this program
	spawn session.Spawner // nil: on this machine
	limit time.Duration
	most  int // bytes of each output that are kept, the last ones
}

type outputs struct{ output, errors []byte }

// commandFailed is a command that ended with another code than 0.
type commandFailed struct{ status session.ExitStatus }

func (e *commandFailed) Error() string { return e.status.String() }

// shell runs a line of the user's in a workspace and returns its output, both streams in
// one.
func (ws *workspaces) shell(ctx context.Context, a *attempt, dir, line string) ([]byte, error) {
	out, err := ws.command(ctx, command{
		name: "sh", args: []string{"-c", "exec 2>&1\n" + line}, dir: dir,
		env: a.variables(), limit: a.shellLimit, most: maxOutput, spawn: ws.job.CommandSpawner,
	})
	return out.output, err
}

// maxOutput is what is kept of the output of a verifier or a setup.
const maxOutput = 64 << 10

func (ws *workspaces) command(ctx context.Context, c command) (outputs, error) {
	ctx, cancel := kernel.WithTimeout(ctx, ws.clock, &session.TimeoutError{What: c.name, Limit: c.limit})
	defer cancel()
	whole, spawner := c.whole, c.spawn
	if whole == nil {
		whole = os.Environ()
	}
	if spawner == nil {
		spawner = ws.rt.Spawner()
	}
	env := slices.Concat(whole, c.env, []string{ws.marker + "=1"})
	names := []string{c.name}
	if c.name == "sh" {
		names = append(names, "/bin/sh") // a PATH may lack it
	}
	p, err := userproc.Spawn(ctx, spawner, session.Command{Names: names, Args: c.args, Dir: c.dir, Env: env}, nil)
	if err != nil {
		return outputs{}, err
	}
	_ = p.Stdin().Close()
	read := func(from io.Reader) *kernel.Promise[[]byte] {
		done := kernel.NewPromise[[]byte]()
		ws.exec.Go(func() { done.Resolve(lastOf(from, c.most)) })
		return done
	}
	stdout, stderr := read(p.Stdout()), read(p.Stderr())
	ended := ws.exec.Await(ctx, p.Exited())
	if ended != nil {
		_ = p.Kill()
	}
	// Its background processes hold its outputs open.
	over, stop := kernel.WithTimeout(context.WithoutCancel(ctx), ws.clock, &session.TimeoutError{What: "end of " + c.name, Limit: commandGrace})
	defer stop()
	if ended != nil {
		_ = ws.exec.Await(over, p.Exited())
	}
	_, swept := p.Sweep(over)
	var out outputs
	out.output, err = stdout.Wait(over, ws.exec)
	if err != nil {
		p.CloseOutput()
	}
	out.errors, _ = stderr.Wait(over, ws.exec)
	p.CloseOutput()
	status, reaped := p.Reap()
	switch {
	case ended != nil:
		return out, ended
	case errors.Join(swept, reaped) != nil:
		return out, errors.Join(swept, reaped)
	case status.Code != 0:
		return out, &commandFailed{status}
	}
	return out, nil
}

const commandGrace = 30 * time.Second

// lastOf reads to the end and keeps the last n bytes.
func lastOf(from io.Reader, n int) []byte {
	var kept []byte
	buf := make([]byte, 32<<10)
	for {
		got, err := from.Read(buf)
		kept = append(kept, buf[:got]...)
		if len(kept) > 2*n {
			kept = slices.Clone(kept[len(kept)-n:])
		}
		if err != nil {
			return kept[max(len(kept)-n, 0):]
		}
	}
}

// quoted is the end of an output, to follow an error.
func quoted(out []byte) string {
	const most = 500
	text := strings.TrimSpace(strings.ToValidUTF8(string(out), "\uFFFD"))
	if text == "" {
		return ""
	}
	return ": " + shown.Tail(text, most)
}

// guard calls a function of the user's.
func guard(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%s panicked: %v", what, p)
		}
	}()
	return f()
}

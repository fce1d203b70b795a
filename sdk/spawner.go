package sdk

import (
	"context"
	"errors"
	"strings"

	"github.com/agent-troupe/troupe/session"
)

// SpawnThrough returns a [session.Spawner] that starts agents with another command of this
// machine: in a container (docker run), as another user (setpriv), on another machine
// (ssh). wrap gets the agent's command and returns the command line to start instead.
// That command line usually ends with [session.Command.Argv]:
//
//	opts.Spawner = sdk.SpawnThrough(func(c *session.Command) ([]string, func(context.Context) error, error) {
//		return append([]string{"setpriv", "--reuid=agent", "--regid=agent", "--init-groups"}, c.Argv()...), nil, nil
//	})
//
// wrap may change Env and Dir of the command; the returned command line is started
// with them. Files are written on this machine before the start; their placeholders
// are replaced by their paths, so mount them at the same path in a container. A program
// without a slash is looked up in the PATH of Env.
//
// When the session ends, Troupe ends the process tree of the command line. A container
// is not part of that tree: remove it in the function that wrap returns as its second
// value. The function is called once, after the end of the process or after a failed
// start, and has Graces.Sweep to finish; its error is part of the error of the close.
// It may be nil.
//
// The command must pass stdin and stdout on unchanged, without a terminal
// (docker run -i and not -t), and end when its stdin ends. wrap may be called many
// times concurrently. Options.Backend must be set. See examples/container.
func SpawnThrough(wrap func(c *session.Command) (argv []string, remove func(context.Context) error, err error)) session.Spawner {
	return through(wrap)
}

type through func(*session.Command) ([]string, func(context.Context) error, error)

// Spawn implements [session.Spawner].
func (wrap through) Spawn(ctx context.Context, c session.Command) (session.Process, error) {
	home, err := shared()
	if err != nil {
		return nil, err
	}
	argv, remove, err := wrap(&c)
	if err == nil && len(argv) == 0 {
		err = errors.New("the function given to SpawnThrough returned no command line")
	}
	var p session.Process
	if err != nil {
		err = &StartError{Path: c.Path, Dir: c.Dir, Err: err}
	} else {
		c.Path, c.Names, c.Interpreter, c.Args = argv[0], nil, nil, argv[1:]
		if !strings.ContainsAny(argv[0], `/\`) {
			c.Path, c.Names = "", argv[:1]
		}
		p, err = home.Spawner().Spawn(ctx, c)
	}
	switch {
	case remove == nil:
		return p, err
	case err != nil:
		return nil, errors.Join(err, remove(context.WithoutCancel(ctx)))
	}
	return &removed{p, remove}, nil
}

// removed is a process that leaves something behind where its tree does not reach.
type removed struct {
	session.Process
	remove func(context.Context) error
}

// Sweep implements [session.Process].
func (r *removed) Sweep(ctx context.Context) ([]session.ProcInfo, error) {
	err := r.remove(ctx)
	left, failed := r.Process.Sweep(ctx)
	return left, errors.Join(err, failed)
}

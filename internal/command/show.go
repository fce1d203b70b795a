package command

import (
	"context"
	"errors"
	"sync"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/inspect/ui"
	"github.com/agent-troupe/troupe/runtime"
)

// envInspect is the variable that does what --inspect does.
const envInspect = "TROUPE_INSPECT"

// show opens the socket that troupe ps finds, if that is wanted. A socket that the
// variable asks for is not worth a run that does not start: the variable may be set for
// all programs of a user. The agents run as this user, and a command of theirs can reach the socket.
// So other windows see contents and change something only in a program that steered says is steered by
// a socket anyway.
func (s *settings) show(rt *runtime.Runtime, p process, c *console, steered bool) (unshow func(), err error) {
	if !s.inspect && (p.getenv(envInspect) == "" || p.getenv(envInspect) == "0") {
		return func() {}, nil
	}
	of := s.ownWindow()
	if !steered {
		of.Access = inspect.Access{}
	}
	w := ui.Handler(rt, of)
	server, err := inspect.ListenWith(w.Shared(), inspect.Config{})
	if err != nil {
		w.Close()
	}
	switch {
	case err != nil && s.inspect:
		return nil, &usageError{problem: "--inspect: " + err.Error()}
	case err != nil:
		c.note("%s: %v", envInspect, err)
		return func() {}, nil
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(); err != nil {
			c.note("%v", err)
		}
	})
	return func() {
		w.Close()
		_ = server.Close() // the socket of a host that has ended is removed by the next one
		serving.Wait()
	}, nil
}

// viewFlags are the flags of the commands that look into running programs.
func viewFlags(json bool) []flagSpec {
	flags := []flagSpec{
		{name: "socket", arg: "FILE", help: "ask the program that listens on this socket, instead of all programs of yours", set: text(func(s *settings) *string { return &s.socket })},
		remarksFlag(),
		helpFlag(),
	}
	if json {
		flags = append([]flagSpec{jsonFlag()}, flags...)
	}
	return flags
}

// find returns the sockets that the arguments select.
func (s *settings) find() ([]string, error) {
	if s.socket != "" {
		return []string{s.socket}, nil
	}
	dir, err := inspect.DefaultDir()
	if err != nil {
		return nil, err
	}
	return inspect.Sockets(dir)
}

// ask asks all hosts at once. Those that have died since, or before, are left out; the
// error joins those of all others. With --socket, a dead host is an error.
func (s *settings) ask(ctx context.Context) ([]*inspect.Report, error) {
	sockets, err := s.find()
	if err != nil {
		return nil, err
	}
	reports, errs := make([]*inspect.Report, len(sockets)), make([]error, len(sockets))
	var asked sync.WaitGroup
	for i, socket := range sockets {
		asked.Go(func() { reports[i], errs[i] = inspect.Fetch(ctx, socket) })
	}
	asked.Wait()
	var there []*inspect.Report
	var failed []error
	for i, err := range errs {
		switch {
		case err == nil:
			there = append(there, reports[i])
		case s.socket != "" || !errors.Is(err, inspect.ErrDead):
			failed = append(failed, err)
		}
	}
	return there, errors.Join(failed...)
}

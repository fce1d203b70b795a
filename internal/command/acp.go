package command

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/agent-troupe/troupe/acp/acpagent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
)

// acpSettings is what only troupe acp takes.
type acpSettings struct{ allowDelete, noRecovery bool }

func acpPage() page {
	return page{text: `Usage: troupe acp [flags]

Is an agent for editors, on stdin and stdout: it speaks the Agent Client Protocol, version 1. The
editor starts it, and it starts Claude Code, Qoder CLI or another agent for each session. The editor
says the working directory and the MCP servers, and asks you for permissions. The log goes to stderr.
The end of stdin, SIGTERM and Ctrl-C end all sessions with their processes.
`, groups: []flagGroup{{"The agent", acpAgentFlags()}, {"Permissions", ruleFlags()}, {"Sessions", acpFlags()}, {"Log", acpLogFlags()}}}
}

// acpAgentFlags are the flags of the agent that the editor does not decide.
func acpAgentFlags() []flagSpec {
	return slices.DeleteFunc(agentFlags(), func(f flagSpec) bool { return f.name == "timeout" || f.name == "cwd" })
}

func acpFlags() []flagSpec {
	return []flagSpec{
		{name: "allow-delete", help: "let the editor delete sessions from disk", set: on(func(s *settings) *bool { return &s.acp.allowDelete })},
		{name: "no-recovery", help: "do not start an agent again that has died", set: on(func(s *settings) *bool { return &s.acp.noRecovery })},
	}
}

func acpLogFlags() []flagSpec {
	return slices.DeleteFunc(logFlags(), func(f flagSpec) bool { return f.name == "verbose" })
}

// acpCommand is troupe acp.
func acpCommand(ctx context.Context, p process, c *console, s *settings) int {
	if err := s.completeSession(); err != nil {
		return c.usage(err)
	}
	if len(s.words) > 0 {
		return c.usage(&usageError{"troupe acp takes no prompt: the editor writes it to stdin", "leave it out"})
	}
	if err := s.chooseAgent(p.getenv); err != nil {
		return c.usage(err)
	}
	s.tellDemonstration(p.getenv, c)
	s.tellEndpoint(c)
	log := c.logger(s.level)
	rt, err := runtime.New(runtime.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		c.note("%v", err)
		return exitStart
	}
	unshow, err := s.show(rt, p, c, false)
	if err != nil {
		return c.usage(err)
	}
	defer unshow()
	s.opts.Runtime = rt
	s.opts.OnEvent = func(r sdk.EventRecord) {
		if w, ok := r.Event.(*session.WarningIssued); !ok || !strings.HasPrefix(w.Problem, "option CanUseTool ") { // a rule is there to allow calls
			log.Log(context.Background(), r.Event.Level(), r.Event.String())
		}
	}
	ctx, stop := untilSignal(ctx, p)
	defer stop()
	out := &noted{to: p.stdout}
	err = acpagent.Serve(ctx, p.stdin, out, acpagent.Config{
		Options: s.opts, Sessions: s.onDisk(), AllowDelete: s.acp.allowDelete, NoRecovery: s.acp.noRecovery, Logger: log,
		Name: "troupe", Title: "Troupe (" + s.agent + ")", Version: strings.Fields(version())[1],
	})
	over, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
	defer cancel()
	if down := rt.Shutdown(over); err == nil {
		err = down
	}
	switch {
	case is[*session.LeftoverError](err):
		c.note("%s", printable(err.Error()))
		return exitLeftover
	case errors.Is(out.failed(), syscall.EPIPE): // the editor has left, as at the end of stdin
		return exitOK
	case out.failed() != nil: // a connection that cannot be written to just ends
		return c.outputLost(out.failed())
	case err == nil:
		return exitOK
	case errors.Is(err, context.Canceled), errors.Is(err, io.EOF):
		return exitOK // a signal
	}
	return c.outputLost(err)
}

// noted is stdout, with the first error of it.
type noted struct {
	to io.Writer

	mu  sync.Mutex
	err error
}

func (n *noted) Write(p []byte) (int, error) {
	written, err := n.to.Write(p)
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.err == nil && err != nil {
		n.err = &outputError{err}
	}
	return written, err
}

func (n *noted) failed() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.err
}

func is[T error](err error) bool {
	_, ok := errors.AsType[T](err)
	return ok
}

// onDisk finds the sessions that the agent keeps; nil if it keeps none.
func (s *settings) onDisk() func(dir string) *transcript.Sessions {
	if _, played := s.opts.Backend.(*scripted.Agent); played || !s.opts.PersistSession.Or(true) {
		return nil
	}
	o := s.opts
	o.Cwd = ""
	all, err := sdk.Sessions(&o)
	if err != nil {
		return nil
	}
	return func(dir string) *transcript.Sessions {
		one := *all
		one.Dir = dir
		return &one
	}
}

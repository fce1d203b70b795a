package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/control"
)

func approvalsHelp() string {
	var b strings.Builder
	b.WriteString(`Usage: troupe approvals [flags] DIR [COMMAND]

Lists the calls of tools that wait for a person in a job of troupe batch --approvals, and answers them.
DIR is the directory of the job (--out), or its file of tasks.

Commands:
  list                  the calls that wait, with their ids; the default
  allow ID...           allow calls, each once
  deny ID [REASON]      deny a call; the model reads the reason

If the process that ran the job is gone, list reads the journal, and allow and deny write into it:
troupe batch --resume obeys.
`)
	writeFlags(&b, []flagGroup{{"Flags", ctlFlags()}})
	b.WriteString(`
Exit codes: 0 success, 1 it cannot be done, 2 a mistake in the arguments, 7 the output could not be
written.
`)
	return b.String()
}

// approvalsCommand is troupe approvals.
func approvalsCommand(ctx context.Context, p process, c *console, args []string) int {
	s := &settings{}
	if err := parse(ctlFlags(), args, s); err != nil {
		return c.usage(err)
	}
	if s.help {
		return c.print(approvalsHelp())
	}
	if len(s.words) == 0 {
		return c.usage(&usageError{"troupe approvals needs the directory of a job", "write troupe approvals DIR"})
	}
	dir, name, rest := s.words[0], "list", s.words[1:]
	if st, err := os.Stat(dir); err == nil && st.Mode().IsRegular() {
		dir = outOf(dir)
	}
	if len(rest) > 0 {
		name, rest = rest[0], rest[1:]
	}
	ctx, stop := untilSignal(ctx, p)
	defer stop()
	switch {
	case name == "list" && len(rest) == 0:
		return s.listApprovals(ctx, c, dir)
	case name == "allow" && len(rest) > 0:
		code := exitOK
		for _, id := range rest {
			code = max(code, ctlSend(ctx, c, dir, control.Command{Op: control.Allow, Approval: id}))
		}
		return code
	case name == "deny" && len(rest) > 0:
		return ctlSend(ctx, c, dir, control.Command{Op: control.Deny, Approval: rest[0], Reason: strings.Join(rest[1:], " ")})
	}
	return c.usage(&usageError{"troupe approvals takes list, allow ID... or deny ID [REASON]", "troupe approvals DIR lists the ids"})
}

func (s *settings) listApprovals(ctx context.Context, c *console, dir string) int {
	j, err := control.Read(ctx, dir)
	if err != nil {
		return ctlFailed(c, dir, err)
	}
	if s.asJSON {
		text, err := asJSONText(append([]fleet.Approval{}, j.Approvals...))
		if err != nil {
			c.note("%v", err)
			return exitOutput
		}
		return c.print(text)
	}
	var b strings.Builder
	for i := range j.Approvals {
		a := &j.Approvals[i]
		fmt.Fprintf(&b, "%s  %s, %s ago\n  %s %s\n", printable(a.ID), shorten(a.Task, 40), rounded(time.Since(a.At)), shorten(a.Tool, 60), printable(string(a.Input)))
	}
	if b.Len() == 0 {
		b.WriteString("no call waits for a person\n")
	}
	return c.print(b.String())
}

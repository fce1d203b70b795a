package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/control"
)

// writeApproval shows a call that waits: what was said before it, where it would run, and all
// of its input.
func writeApproval(b *strings.Builder, a *fleet.Approval, tool string) {
	if a.Said != "" {
		fmt.Fprintf(b, "  The agent said: %s\n", indented(a.Said))
	}
	fmt.Fprintf(b, "  %s", tool)
	if a.Cwd != "" {
		fmt.Fprintf(b, " in %s", printable(a.Cwd))
	}
	b.WriteString("\n")
	writeInput(b, a.Input)
}

// answer sends a decision about the call whose id begins so and, with --like, about those like it.
func (s *settings) answer(ctx context.Context, c *console, dir string, cmd control.Command) int {
	cmd.Approval = wholeID(ctx, dir, cmd.Approval)
	var others []*fleet.Approval
	if s.like {
		j, err := control.Read(ctx, dir)
		if err != nil {
			return ctlFailed(c, dir, err)
		}
		others = likeIt(j.Approvals, cmd.Approval)
	}
	code := ctlSend(ctx, c, dir, cmd)
	for _, a := range others {
		cmd.Approval = a.ID
		code = max(code, ctlSend(ctx, c, dir, cmd))
		c.say("%s  %s: the same\n", printable(a.ID), shorten(a.Task, 40))
	}
	return code
}

// likeIt returns the calls that are like the one with the id, without it.
func likeIt(all []fleet.Approval, id string) []*fleet.Approval {
	var its any
	tool := ""
	for i := range all {
		if all[i].ID == id {
			tool, its = all[i].Tool, essence(&all[i])
		}
	}
	var like []*fleet.Approval
	for i := range all {
		if a := &all[i]; its != nil && a.ID != id && a.Tool == tool && reflect.DeepEqual(essence(a), its) {
			like = append(like, a)
		}
	}
	return like
}

// essence is the input of a call without its description; nil if the input is not JSON.
func essence(a *fleet.Approval) any {
	var input any
	d := json.NewDecoder(bytes.NewReader(a.Input))
	d.UseNumber() // large numbers stay apart
	if d.Decode(&input) != nil {
		return nil
	}
	if fields, ok := input.(map[string]any); ok && a.Tool == "Bash" {
		delete(fields, "description")
	}
	return input
}

// askApprovals asks about the calls that wait, until none does.
func askApprovals(ctx context.Context, p process, c *console, dir string) int { //nolint:gocritic // as the other commands take it
	d := newDecider(&settings{}, p, c)
	if d.open() != nil {
		return c.usage(&usageError{"troupe approvals DIR ask needs a terminal", "allow ID and deny ID answer without one"})
	}
	code := exitOK
	decided := map[string]bool{}
	send := func(a *fleet.Approval, op control.Op, reason string) {
		decided[a.ID] = true
		code = max(code, ctlSend(ctx, c, dir, control.Command{Op: op, Approval: a.ID, Reason: reason}))
	}
	var alike []fleet.Approval
	for {
		j, err := control.Read(ctx, dir)
		if err != nil {
			return ctlFailed(c, dir, err)
		}
		var waiting []fleet.Approval
		for i := range j.Approvals {
			switch a := &j.Approvals[i]; {
			case decided[a.ID]:
			case len(likeIt(append(alike, *a), a.ID)) > 0:
				c.say("\nallowed, like before: %s in task %s\n", shorten(a.Tool, 60), shorten(a.Task, 40))
				send(a, control.Allow, "")
			default:
				waiting = append(waiting, *a)
			}
		}
		if len(waiting) == 0 {
			c.say("no call waits for a person\n")
			return code
		}
		a := &waiting[0]
		var b strings.Builder
		fmt.Fprintf(&b, "\nTask %s asks, %s ago; %s after it\n", shorten(a.Task, 40), rounded(time.Since(a.At)), shown.Count(len(waiting)-1, "call"))
		writeApproval(&b, a, c.paint(bold, shorten(a.Tool, 60)))
		like := likeIt(waiting, a.ID)
		fmt.Fprintf(&b, "  a allows also the calls like it: %s now, and those that come while this command asks\n", shown.Count(len(like), "call"))
		v, reason, err := d.settle(ctx, b.String(), "all calls like it, in whatever task: the same tool with the same input")
		switch {
		case err != nil: // a signal
			return exitResult
		case v == allowed:
			send(a, control.Allow, "")
		case v == always:
			alike = append(alike, *a)
			send(a, control.Allow, "")
		case v == denied:
			send(a, control.Deny, reason)
		default: // the end of the terminal
			c.note("%s without an answer", shown.Count(len(waiting), "call"))
			return max(code, exitResult)
		}
	}
}

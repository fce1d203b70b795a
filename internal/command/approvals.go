package command

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/control"
)

func approvalsPage() page {
	return page{text: `Usage: troupe approvals [flags] DIR [COMMAND]

Lists the calls of tools that wait for a person in a job of troupe batch --approvals, and answers them.
DIR is the directory of the job (--out), or its file of tasks.

Commands:
  list                  the calls that wait, with their ids; the default
  allow ID...           allow calls, each once; the beginning of an id will do
  deny ID [REASON]      deny a call; the model reads the reason
  ask                   ask about each call that waits, as troupe chat does: y, n, a, ? or a reason

A call is like another one if it is of the same tool with the same input, whatever the task and its
directory; the description of a command does not count. With --like, and after the answer a, all calls
like it that wait are allowed too.

If the process that ran the job is gone, list reads the journal, and allow and deny write into it:
troupe batch --resume obeys.
`, groups: []flagGroup{{"Flags", append(ctlFlags(), likeFlag())}}, end: `
Exit codes: 0 success, 1 it cannot be done, 2 a mistake in the arguments, 7 the output could not be
written.
`}
}

func likeFlag() flagSpec {
	return flagSpec{name: "like", help: "with allow and deny: also all other calls that wait and are like it", set: on(func(s *settings) *bool { return &s.like })}
}

// approvalsCommand is troupe approvals.
func approvalsCommand(ctx context.Context, p process, c *console, s *settings) int {
	dir, name, rest, err := s.ofJob("approvals", "list")
	if err != nil {
		return c.usage(err)
	}
	ctx, stop := untilSignal(ctx, p)
	defer stop()
	if s.like && name != "allow" && name != "deny" {
		return c.usage(&usageError{"--like is for allow and deny", "leave it out"})
	}
	switch {
	case name == "ask" && len(rest) == 0:
		return askApprovals(ctx, p, c, dir)
	case name == "list" && len(rest) == 0:
		return s.listApprovals(ctx, c, dir)
	case name == "allow" && len(rest) > 0:
		code := exitOK
		for _, id := range rest {
			code = max(code, s.answer(ctx, c, dir, control.Command{Op: control.Allow, Approval: id}))
		}
		return code
	case name == "deny" && len(rest) > 0:
		return s.answer(ctx, c, dir, control.Command{Op: control.Deny, Approval: rest[0], Reason: strings.Join(rest[1:], " ")})
	}
	return c.usage(&usageError{"troupe approvals takes list, ask, allow ID... or deny ID [REASON]", "troupe approvals DIR lists the ids"})
}

// wholeID is the id of the one call that waits and whose id begins so; else the id as it is,
// which the job refuses.
func wholeID(ctx context.Context, dir, id string) string {
	j, err := control.Read(ctx, dir)
	if err != nil || id == "" {
		return id
	}
	found := ""
	for i := range j.Approvals {
		whole := j.Approvals[i].ID
		switch {
		case whole == id:
			return id
		case !strings.HasPrefix(whole, id):
		case found != "":
			return id
		default:
			found = whole
		}
	}
	return cmp.Or(found, id)
}

func (s *settings) listApprovals(ctx context.Context, c *console, dir string) int {
	j, err := control.Read(ctx, dir)
	if err != nil {
		return ctlFailed(c, dir, err)
	}
	if s.asJSON {
		return c.printJSON(append([]fleet.Approval{}, j.Approvals...))
	}
	var b strings.Builder
	for i := range j.Approvals {
		a := &j.Approvals[i]
		fmt.Fprintf(&b, "%s  %s, %s ago\n", printable(a.ID), shorten(a.Task, 40), rounded(time.Since(a.At)))
		writeApproval(&b, a, shorten(a.Tool, 60))
	}
	if b.Len() == 0 {
		b.WriteString("no call waits for a person\n")
	}
	return c.print(b.String())
}

// webhook sends waiting calls to another program, or is nil.
type webhook struct {
	ctx     context.Context //nolint:containedctx // of the command
	c       *console
	hook    control.Webhook
	sending sync.WaitGroup
}

func (s *settings) webhook(ctx context.Context, p process, c *console) (*webhook, error) {
	if s.batch.webhook == "" {
		return nil, nil //nolint:nilnil // none is wanted
	}
	u, err := url.Parse(s.batch.webhook)
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || u.Hostname() != "localhost" && u.Hostname() != "127.0.0.1" && u.Hostname() != "::1") {
		return nil, &usageError{"--webhook: the calls may be secret", "give an https URL, or an http one of this machine"}
	}
	secret := p.getenv(envWebhookSecret)
	if len(secret) < 16 {
		return nil, &usageError{"--webhook needs the variable " + envWebhookSecret + ", at least 16 characters", "set it to a long random text"}
	}
	return &webhook{ctx: ctx, c: c, hook: control.Webhook{URL: s.batch.webhook, Secret: secret}}, nil
}

// webhookTries is how often a call is posted, with webhookPause between.
const (
	webhookTries = 3
	webhookPause = time.Second
)

func (w *webhook) event(e fleet.Event) {
	if w == nil || e.Approval == nil {
		return
	}
	w.sending.Go(func() {
		var err error
		for range webhookTries {
			if err = w.hook.Notify(w.ctx, *e.Approval); err == nil || w.ctx.Err() != nil {
				return
			}
			select {
			case <-time.After(webhookPause):
			case <-w.ctx.Done():
			}
		}
		w.c.note("%s: %v; the call still waits for troupe approvals", printable(e.Task), err)
	})
}

// follow posts the calls of a job that other programs run, until ctx ends.
func (w *webhook) follow(ctx context.Context, h *fleet.Handle) {
	if w == nil {
		return
	}
	look := time.NewTicker(webhookPause)
	defer look.Stop()
	for posted := map[string]bool{}; ; {
		for _, a := range h.Approvals() {
			if !posted[a.ID] {
				posted[a.ID] = true
				w.event(fleet.Event{Task: a.Task, Approval: &a})
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-look.C:
		}
	}
}

func (w *webhook) wait() {
	if w != nil {
		w.sending.Wait()
	}
}

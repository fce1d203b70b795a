package command

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/runtime"
)

const nobodyShows = "no program shows its sessions: start troupe run with --inspect, or call inspect.Listen in a program of your own"

func psPage() page {
	return page{text: `Usage: troupe ps [flags] [SESSION]

Lists the sessions of all running programs of yours that show theirs: troupe run and troupe chat
with --inspect, and programs that call inspect.Listen. Each session is shown with its state, for how
long it has been in it, how often its agent and its actors were restarted, how many messages nobody
has read, and what it waits for. With SESSION, its id or the beginning of it: all waits of that
session, with their limits and the options that set them, and its actors.
`, groups: []flagGroup{{"Flags", viewFlags(true)}}, end: `
Exit codes: 0 success, 1 a program did not answer or there is no such session, 2 a mistake in the
arguments, 7 the output could not be written.
`}
}

// psCommand is troupe ps.
func psCommand(ctx context.Context, p process, c *console, s *settings) int {
	if len(s.words) > 1 {
		return c.usage(&usageError{"troupe ps takes the id of one session", "leave the others out"})
	}
	ctx, stop := untilSignal(ctx, p)
	defer stop()
	return s.list(ctx, c)
}

// list prints what troupe ps prints.
func (s *settings) list(ctx context.Context, c *console) int {
	done := c.working("asking the programs that show their sessions")
	reports, err := s.ask(ctx)
	done()
	code := exitOK
	if err != nil { // of some hosts; the others are printed
		c.note("%s", printable(err.Error()))
		code = exitResult
	}
	var text string
	if len(s.words) > 0 {
		found, several := sessionsOf(reports, s.words[0])
		if len(several) > 0 {
			return c.usage(&usageError{fmt.Sprintf("%d sessions have an id that begins with %s; write more of it:\n%s", len(several), printable(s.words[0]), printable(strings.Join(several, "\n"))), ""})
		}
		if len(found) == 0 {
			c.note("no program shows a session %q", s.words[0])
			return exitResult
		}
		text, err = s.sessionsText(found)
	} else {
		text, err = s.reportsText(reports)
		if len(reports) == 0 && code == exitOK {
			c.remark(nobodyShows)
		}
	}
	if err != nil {
		c.note("%v", err)
		return exitOutput
	}
	if printed := c.print(text); printed != exitOK {
		return printed
	}
	return code
}

// sessionsOf are the sessions with the id: different hosts may give the same one. Without
// one, id is taken as a prefix; several are the ids with that prefix, if there is more than
// one.
func sessionsOf(reports []*inspect.Report, id string) (found []runtime.SessionTree, several []string) {
	withID := func(is func(string) bool) (trees []runtime.SessionTree, ids []string) {
		for _, r := range reports {
			for i := range r.Tree.Sessions {
				if t := &r.Tree.Sessions[i]; is(t.ID) {
					trees = append(trees, *t)
					ids = append(ids, t.ID)
				}
			}
		}
		slices.Sort(ids)
		return trees, slices.Compact(ids)
	}
	if found, _ = withID(func(other string) bool { return other == id }); len(found) > 0 {
		return found, nil
	}
	found, several = withID(func(other string) bool { return id != "" && strings.HasPrefix(other, id) })
	if len(several) < 2 {
		several = nil
	}
	return found, several
}

func (s *settings) sessionsText(found []runtime.SessionTree) (string, error) {
	if s.asJSON {
		return asJSONText(found)
	}
	var b strings.Builder
	for i := range found {
		if i > 0 {
			b.WriteString("\n")
		}
		if err := inspect.WriteSession(&b, &found[i]); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

func (s *settings) reportsText(reports []*inspect.Report) (string, error) {
	if s.asJSON {
		if reports == nil {
			reports = []*inspect.Report{} // not null
		}
		return asJSONText(reports)
	}
	var b strings.Builder
	for i, r := range reports {
		if i > 0 {
			b.WriteString("\n")
		}
		if err := r.WriteText(&b); err != nil {
			return "", err
		}
	}
	return b.String(), nil
}

// printJSON prints v as JSON and returns the exit code.
func (c *console) printJSON(v any) int {
	text, err := asJSONText(v)
	if err != nil {
		c.note("%v", err)
		return exitOutput
	}
	return c.print(text)
}

func asJSONText(v any) (string, error) {
	raw, err := json.MarshalIndent(v, "", "  ")
	return fmt.Sprintf("%s\n", shown.JSON(raw)), err
}

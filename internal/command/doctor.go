package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

func doctorPage() page {
	return page{text: `Usage: troupe doctor [flags]

Says what this machine has for agents: the agents that are installed and whether their releases were
tested, whether they are logged in, sandboxes, limits of processes, memory and disk, and servers of
local models. It starts the agents only to ask for their version, and asks no server but those of
this machine. It prints no secret.

With --nats, or the variable TROUPE_NATS: whether the servers there keep jobs of many machines as they
should.
`, groups: []flagGroup{{"Flags", []flagSpec{
		jsonFlag(),
		{name: "quiet", short: "q", help: "print only what is missing or wrong", set: on(func(s *settings) *bool { return &s.quiet })},
		helpFlag(),
	}}, {"Servers of jobs on many machines", append(serverFlags(), systemFlag())}}, end: `
Exit codes: 0 nothing is a problem, 1 something is, 2 a mistake in the arguments, 7 the output could
not be written.
`}
}

// check is one of the checks of troupe doctor. Checks run at the same time, each within checkTime, and
// are printed in the order of [settings.checks]: a new one is a function there.
type check struct {
	name string
	run  func(ctx context.Context, m *examined) []finding
}

// examined is what the checks look at.
type examined struct {
	getenv   func(string) string
	s        *settings
	machines Machines
}

// finding is a line of troupe doctor.
type finding struct {
	Check string       `json:"check"`
	State findingState `json:"state"`
	Text  string       `json:"text"`
	Fix   string       `json:"fix,omitempty"` // what to do about it
}

type findingState string

const (
	fine    findingState = "ok"
	notable findingState = "note" // something is missing, and only some need it
	problem findingState = "problem"
)

// checkTime is how long a check may take.
const checkTime = 15 * time.Second

func ok(format string, args ...any) finding {
	return finding{State: fine, Text: fmt.Sprintf(format, args...)}
}

func remark(text, fix string) finding { return finding{State: notable, Text: text, Fix: fix} }

func wrong(text, fix string) finding { return finding{State: problem, Text: text, Fix: fix} }

// checks are the checks of troupe doctor, in the order of its output.
func (s *settings) checks() []check {
	all := []check{
		{"troupe", func(context.Context, *examined) []finding {
			return []finding{ok("%s", strings.TrimPrefix(strings.TrimSpace(version()), "troupe "))}
		}},
		{"agents", checkAgents},
		{"login", checkLogins},
		{"model", checkModel},
		{"local models", checkLocalModels},
		{"git", checkGit},
		{"sandbox", checkSandbox},
		{"processes", checkProcesses},
		{"limits", checkLimits},
		{"disk", checkDisk},
	}
	if s.machines.servers.URLs != "" {
		all = append(all, check{"servers", checkServers})
	}
	return all
}

// doctorCommand is troupe doctor.
func doctorCommand(ctx context.Context, p process, c *console, s *settings) int {
	if len(s.words) > 0 {
		return c.usage(&usageError{"troupe doctor takes no arguments", "leave them out"})
	}
	if s.gave("nats") || p.machines != nil {
		if err := s.completeServers(p, "troupe doctor --nats"); err != nil {
			return c.usage(err)
		}
	}
	ctx, stop := untilSignal(ctx, p)
	defer stop()
	done := c.working("asking the agents for their versions")
	found := examine(ctx, s.checks(), &examined{getenv: p.getenv, s: s, machines: p.machines})
	done()
	if s.quiet && !s.asJSON {
		found = slices.DeleteFunc(found, func(f finding) bool { return f.State == fine })
	}
	code := exitOK
	for _, f := range found {
		if f.State == problem {
			code = exitResult
		}
	}
	text := doctorText(found)
	if s.asJSON {
		var err error
		if text, err = asJSONText(found); err != nil {
			return c.usage(err)
		}
	}
	if printed := c.print(text); printed != exitOK {
		return printed
	}
	return code
}

// examine runs the checks at the same time.
func examine(ctx context.Context, checks []check, m *examined) (found []finding) {
	each := make([][]finding, len(checks))
	var running sync.WaitGroup
	for i, k := range checks {
		running.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, checkTime)
			defer cancel()
			each[i] = k.run(ctx, m)
		})
	}
	running.Wait()
	for i, k := range checks {
		for _, f := range each[i] {
			f.Check = k.name
			found = append(found, f)
		}
	}
	return found
}

// doctorText has a line for each finding, and below it what to do.
func doctorText(found []finding) string {
	var b strings.Builder
	marks := map[findingState]string{fine: "ok", notable: "note", problem: "PROBLEM"}
	for _, f := range found {
		fmt.Fprintf(&b, "%-8s %-13s %s\n", marks[f.State], f.Check, printable(oneLine(f.Text)))
		if f.Fix != "" {
			fmt.Fprintf(&b, "%-8s %-13s → %s\n", "", "", printable(oneLine(f.Fix)))
		}
	}
	return b.String()
}

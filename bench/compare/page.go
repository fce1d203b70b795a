package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// form is the part of a section that is the same on every machine.
type form struct{ name, title, text string }

// forms are the sections of the page, in their order.
var forms = []form{
	{calls, "Events and callbacks", `One session with a minimal agent that needs almost no time: what is measured is the program that drives it. *event*: the agent writes
events of 200 bytes as fast as they are read. Troupe and the SDKs decode each one, and the program takes its text; the bare loop looks at the type alone. *hook*, *permission*, *tool*: the agent calls a PreToolUse hook, asks for
a permission, or calls a tool of the program, again and again, and waits for each answer. The bare loop does the least that a Go program can do.`},
	{starts, "Start", `From the start of a program to its exit: it opens a session, has one turn, reads the result, and closes the session. The first row has the minimal agent, the
second one Claude Code with a model on loopback that answers at once.`},
	{sessions, "Cost of a session", `In the program that drives the agents; the agents' processes are not counted. *idle*: 50 sessions are open after a turn each; the resident set
that one of them adds, after a garbage collection. *to open*: the processor time of opening one, and of its first turn. *busy*: 20 sessions stream at the same time; the
processor time of an event, and the highest resident set, for each session.`},
	{batches, "Batch", `Tasks with 20 ms of work, each with a new process of the minimal agent, 16 at a time: time of all of them divided by their number. *Troupe, kept* is a job with journal,
transcripts, results and events; the others keep nothing.`},
	{recoveries, "Recovery", `The agent is killed in the middle of a turn. *until the caller knows*: with the default options, from the kill to the error. *until the result*: from the kill to the
result of the turn, where the program can start another process that finishes it (` + "`Options.MaxRestarts`" + `).`},
	{faults, "When something goes wrong", `The cases of [migration](migration.md#when-something-goes-wrong), played by an agent that misbehaves. The cells say how each program behaved. A call is
said to hang after 3 seconds.`},
	{tasks, "Agents", `Each agent does the same small task at the same model on loopback, in a separate process: a tool that reads a file, its shell, a text. The first is Troupe's
[embedded agent](embedded.md). ` + "`bench/peers`" + ` is the program, and [its page](../bench/README.md#other-agents) says how it is measured.`},
	{further, "Many sessions of one process", `The cost of a further session where one process has many: 100 of the embedded agent, 50 of the other. *busy*: all read their last answer.`},
}

const (
	command = "go run ./bench/compare -install -write docs/benchmarks.md -readme README.md"
	opening = "<!-- figures of " // of the table in the README
	closing = "<!-- end of figures -->"
	data    = "<!-- data of this page: "
)

// summary are the rows of the table in the README.
var summary = []struct{ section, row, shown string }{
	{calls, "event", "to read an event"},
	{calls, "hook", "to answer a hook"},
	{calls, "permission", "to answer a permission request"},
	{calls, "tool", "to answer a call of a tool"},
	{starts, "minimal agent", "to start, ask and end"},
	{sessions, "idle, memory", "memory of an idle session"},
	{batches, "a task", "a task of a batch"},
}

// page is the whole page.
func page(r *report) (string, error) {
	var b strings.Builder
	b.WriteString("# Benchmarks\n\nTroupe against what people use, measured by one command, which writes this page:\n\n```sh\n" + command + "\n```\n\n")
	fmt.Fprintf(&b, "Measured on %s: %s. Load average before: %s, after: %s.\n\n", r.Date, r.Machine, r.Load[0], r.Load[1])
	b.WriteString(`Each program runs once in each round, in turn, so that other work on the machine meets all of them. A cell has the median of the rounds, and in brackets how many
times the first figure of its row that is: the median of the rounds' ratios, with their quartiles. Less is better in every row. Times depend on the machine; ratios do less.

`)
	b.WriteString("| program | version |\n|---|---|\n")
	for _, v := range r.Versions {
		fmt.Fprintf(&b, "| %s | %s |\n", v.Name, v.Version)
	}
	b.WriteString("\n## Summary\n\n" + short(r))
	for _, f := range forms {
		s := r.Sections[f.name]
		if s == nil {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s%s\n\n%s", f.title, f.text, s.rounds(), s.table())
	}
	b.WriteString("\n## Not measured\n\n")
	for _, line := range append(r.Missing, unmeasured...) {
		b.WriteString("- " + line + "\n")
	}
	raw, err := json.Marshal(r)
	if err != nil {
		return "", err
	}
	// "--" would end the comment.
	return b.String() + "\n" + data + strings.ReplaceAll(string(raw), "--", `-\u002d`) + " -->\n", nil
}

// unmeasured holds on every machine.
var unmeasured = []string{
	"anything with a model or an account: no turn of a real model, no cloud agent, no rate limit.",
	"qodercli as the agent: it needs an account. Qoder's SDK is measured with the minimal agent.",
	"the Python SDKs: the vendors' TypeScript SDKs stand for them.",
	"macOS and Windows.",
}

// table is a section's table in Markdown.
func (s *section) table() string {
	var b strings.Builder
	b.WriteString(s.head())
	for _, r := range s.Rows {
		b.WriteString(s.line(r.Name, r, s.Columns, true))
	}
	return b.String()
}

// head are the first lines of a table.
func (s *section) head() string {
	return "| | " + strings.Join(s.Columns, " | ") + " |\n" + strings.Repeat("|---", len(s.Columns)+1) + "|\n"
}

// line is a row with these columns; those that the section does not have are empty.
func (s *section) line(name string, r row, columns []string, quartiles bool) string {
	line := "| " + name + " |"
	for _, c := range columns {
		if i := s.column(c); i >= 0 {
			line += " " + s.text(r, i, quartiles)
		}
		line += " |"
	}
	return line + "\n"
}

// short is what the README has: the summary, and the agents.
func short(r *report) string {
	host := &section{Columns: []string{bareLoop, troupe, claudeSDK, qoderSDK}}
	var b strings.Builder
	b.WriteString(host.head())
	for _, line := range summary {
		s := r.Sections[line.section]
		if s == nil {
			continue
		}
		for _, row := range s.Rows {
			if row.Name == line.row {
				b.WriteString(s.line(line.shown, row, host.Columns, false))
			}
		}
	}
	if s := r.Sections[tasks]; s != nil {
		b.WriteString("\n" + s.head())
		for _, row := range s.Rows {
			b.WriteString(s.line(row.Name, row, s.Columns, false))
		}
	}
	return b.String()
}

// read returns the report that a page was made from.
func read(text string) (*report, error) {
	_, rest, found := strings.Cut(text, data)
	raw, _, ended := strings.Cut(rest, " -->")
	if !found || !ended {
		return nil, errors.New("the page has no data")
	}
	var r report
	return &r, json.Unmarshal([]byte(raw), &r)
}

// renew replaces the table of a README.
func renew(readme string, r *report) (string, error) {
	before, rest, found := strings.Cut(readme, opening)
	first, old, lines := strings.Cut(rest, "\n")
	_, after, ended := strings.Cut(old, closing)
	if !found || !lines || !ended {
		return "", fmt.Errorf("the README has no line %q with a later line %q", opening, closing)
	}
	return before + opening + first + "\n" + short(r) + closing + after, nil
}

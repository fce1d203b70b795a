package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/agent-troupe/troupe/sdk"
)

// What the model reads about a denial.
const (
	deniedByUser    = "The user denied this tool call."
	deniedByFlag    = "The user denies every tool call that needs permission."
	deniedUnasked   = "Nobody is at a terminal to give permission for this tool call."
	deniedQuestions = "Nobody is at a terminal to answer questions. Decide by yourself."
)

// decider decides on the tool calls for which the agent asks permission.
type decider struct {
	console     *console
	yes, no     bool
	quiet       bool
	attended    bool // a person reads stderr
	openAnswers func() (io.Reader, error)

	printed sightings
	turn    chan struct{} // holds the right to ask

	mu    sync.Mutex
	lines chan string // of the terminal; nil until the first question
}

func newDecider(s *settings, p process, c *console) *decider {
	d := &decider{console: c, yes: s.yes, no: s.no, quiet: s.quiet, attended: p.stderrTTY, openAnswers: p.openTTY, turn: make(chan struct{}, 1)}
	if p.stdinTTY {
		d.openAnswers = func() (io.Reader, error) { return p.stdin, nil }
	}
	return d
}

// canUseTool implements sdk.CanUseTool.
func (d *decider) canUseTool(ctx context.Context, req *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	question := req.ToolName == "AskUserQuestion"
	if !d.yes {
		d.printed.await(ctx, req.ToolUseID)
	}
	switch {
	case d.no:
		return d.deny(req, deniedByFlag, "--no")
	case d.yes && !question:
		return sdk.Allow(), nil
	}
	lines, err := d.answers()
	switch {
	case err != nil && question:
		return d.deny(req, deniedQuestions, "there is no terminal to ask on")
	case err != nil:
		return d.deny(req, deniedUnasked, "there is no terminal to ask on; --yes or --allowed-tools "+req.ToolName+" allows it")
	}
	select { // one question at a time
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return sdk.PermissionResult{}, ctx.Err()
	}
	if question {
		return d.askQuestions(ctx, lines, req)
	}
	return d.askPermission(ctx, lines, req)
}

func (d *decider) deny(req *sdk.ToolPermissionRequest, toModel, toUser string) (sdk.PermissionResult, error) {
	if !d.quiet {
		d.console.note("denied %s: %s", printable(req.ToolName), toUser)
	}
	return sdk.Deny(toModel), nil
}

func (d *decider) askPermission(ctx context.Context, lines <-chan string, req *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s asks to use %s\n", asker(req), d.console.paint(bold, printable(req.ToolName)))
	for _, line := range []string{req.Title, req.DecisionReason} {
		if line != "" {
			fmt.Fprintf(&b, "  %s\n", indented(line))
		}
	}
	writeInput(&b, req.Input)
	b.WriteString("Allow it? [y/N] ")
	answer, err := d.ask(ctx, lines, b.String())
	if err != nil {
		return sdk.PermissionResult{}, err
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return sdk.Allow(), nil
	}
	return sdk.Deny(deniedByUser), nil
}

func asker(req *sdk.ToolPermissionRequest) string {
	if req.AgentID != "" {
		return "A subagent"
	}
	return "The agent"
}

// writeInput shows what is to be decided on: all of it, but for very long
// texts, which say how much is missing.
func writeInput(b *strings.Builder, input json.RawMessage) {
	const most = 4000
	var fields map[string]json.RawMessage
	if json.Unmarshal(input, &fields) != nil {
		fields = map[string]json.RawMessage{"input": input}
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		value := string(fields[name])
		var plain string
		if json.Unmarshal(fields[name], &plain) == nil {
			value = plain
		}
		if n := utf8.RuneCountInString(value); n > most {
			value = string([]rune(value)[:most]) + fmt.Sprintf("… (%d more characters)", n-most)
		}
		fmt.Fprintf(b, "  %s: %s\n", printable(name), indented(value))
	}
}

// indented keeps the lines of s visibly inside of what they belong to.
func indented(s string) string { return strings.ReplaceAll(printable(s), "\n", "\n    ") }

// ask shows a question and waits for the next line typed after it. A question
// that the agent takes back is void.
func (d *decider) ask(ctx context.Context, lines <-chan string, question string) (string, error) {
	select {
	case <-lines: // typed before the question was there
	default:
	}
	d.console.say("%s", question)
	select {
	case answer := <-lines:
		return answer, nil
	case <-ctx.Done():
		d.console.say("(withdrawn)\n")
		return "", ctx.Err()
	}
}

// answers are the lines typed on the terminal; an error if there is none. The
// terminal is read from the first question on. At its end every answer is "".
func (d *decider) answers() (<-chan string, error) {
	if !d.attended {
		return nil, errUnattended
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.lines != nil {
		return d.lines, nil
	}
	in, err := d.openAnswers()
	if err != nil {
		return nil, err
	}
	lines := make(chan string)
	d.lines = lines
	go func() {
		typed := bufio.NewScanner(in)
		for typed.Scan() {
			lines <- typed.Text()
		}
		close(lines)
	}()
	return lines, nil
}

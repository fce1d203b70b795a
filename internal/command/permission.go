package command

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

	"github.com/agent-troupe/troupe/sdk"
)

// Texts that the model reads about a denial.
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
	unreal      bool    // the calls run nothing
	attended    bool    // a person reads stderr
	editor      *editor // of a conversation; nil without one
	openAnswers func() (io.Reader, error)

	printed sightings
	turn    chan struct{} // holds the right to ask

	mu       sync.Mutex
	terminal io.Reader       // nil until the first question
	reading  bool            // a goroutine reads it
	ended    bool            // and has come to its end
	asking   chan string     // takes the answer; nil while nothing is asked
	always   map[string]bool // calls that are allowed in this session
}

func newDecider(s *settings, p process, c *console) *decider {
	d := &decider{console: c, yes: s.yes, no: s.no, quiet: s.quiet, unreal: s.unreal, attended: p.stderrTTY, openAnswers: p.openTTY, turn: make(chan struct{}, 1)}
	if p.stdinTTY {
		d.openAnswers = func() (io.Reader, error) { return p.stdin, nil }
	}
	return d
}

// canUseTool implements sdk.CanUseTool.
func (d *decider) canUseTool(ctx context.Context, req *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	switch {
	case d.yes:
	case req.AgentID == "":
		d.printed.await(ctx, req.ToolUseID, sightingLimit)
	default:
		d.printed.await(ctx, req.ToolUseID, subsightingLimit)
	}
	return d.decide(ctx, req)
}

// decide decides on a call that was printed.
func (d *decider) decide(ctx context.Context, req *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	question := req.ToolName == "AskUserQuestion"
	switch {
	case ctx.Err() != nil:
		return sdk.PermissionResult{}, ctx.Err()
	case d.no:
		return d.deny(req, deniedByFlag, "--no")
	case !question && (d.yes || d.remembered(req)):
		return sdk.Allow(), nil
	}
	err := d.open()
	switch {
	case err != nil && question:
		return d.deny(req, deniedQuestions, "there is no terminal to ask on")
	case err != nil && d.unreal:
		if !d.quiet {
			d.console.note("allowed %s: there is no terminal to ask on, and the scripted agent's calls run nothing", printable(req.ToolName))
		}
		return sdk.Allow(), nil
	case err != nil:
		return d.deny(req, deniedUnasked, "there is no terminal to ask on; --yes or --allowed-tools "+printable(req.ToolName)+" allows it")
	}
	select { // one question at a time
	case d.turn <- struct{}{}:
		defer func() { <-d.turn }()
	case <-ctx.Done():
		return sdk.PermissionResult{}, ctx.Err()
	}
	if question {
		return d.askQuestions(ctx, req)
	}
	return d.askPermission(ctx, req)
}

func (d *decider) deny(req *sdk.ToolPermissionRequest, toModel, toUser string) (sdk.PermissionResult, error) {
	if !d.quiet {
		d.console.note("denied %s: %s", printable(req.ToolName), toUser)
	}
	return sdk.Deny(toModel), nil
}

func (d *decider) askPermission(ctx context.Context, req *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "\n%s asks to use %s\n", asker(req), d.console.paint(bold, printable(req.ToolName)))
	for _, line := range []string{req.Title, req.DecisionReason} {
		if line != "" {
			fmt.Fprintf(&b, "  %s\n", indented(line))
		}
	}
	writeInput(&b, req.Input)
	return d.verdictOf(ctx, req, b.String())
}

func asker(req *sdk.ToolPermissionRequest) string {
	if req.AgentID != "" {
		return "A subagent"
	}
	return "The agent"
}

// writeInput shows the whole input of the call: any omitted part might matter.
func writeInput(b *strings.Builder, input json.RawMessage) {
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
		fmt.Fprintf(b, "  %s: %s\n", printable(name), indented(value))
	}
}

// indented keeps the lines of s visibly inside of what they belong to.
func indented(s string) string { return strings.ReplaceAll(printable(s), "\n", "\n    ") }

// ask shows a question and waits for a line. Text that is typed before the question
// does not answer it, and a question that the agent takes back is void. At the end of
// the terminal every answer is "".
func (d *decider) ask(ctx context.Context, question string) (string, error) {
	if d.editor != nil {
		return d.askEdited(ctx, question)
	}
	answer := make(chan string, 1)
	d.mu.Lock()
	if d.ended {
		answer <- ""
	} else {
		d.asking = answer
	}
	read := !d.reading
	d.reading = true
	d.mu.Unlock()
	d.console.say("%s", question)
	if read {
		go d.read()
	}
	select {
	case line := <-answer:
		return line, nil
	case <-ctx.Done():
		d.mu.Lock()
		d.asking = nil
		d.mu.Unlock()
		d.console.say("(withdrawn)\n")
		return "", ctx.Err()
	}
}

// read reads the terminal to its end.
func (d *decider) read() {
	typed := bufio.NewScanner(d.terminal)
	for typed.Scan() {
		d.take(typed.Text())
	}
	d.end()
}

// take answers the question that is asked with a line. It reports whether there
// was one.
func (d *decider) take(line string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	asked := d.asking != nil
	if asked {
		d.asking <- line
		d.asking = nil
	}
	return asked
}

// end answers all questions from now on with "".
func (d *decider) end() {
	d.mu.Lock()
	d.ended = true
	d.mu.Unlock()
	d.take("")
}

// fed says that the caller reads the terminal, and calls take and end.
func (d *decider) fed() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.reading = true
}

// open finds the terminal.
func (d *decider) open() error {
	if !d.attended {
		return errUnattended
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.terminal != nil {
		return nil
	}
	terminal, err := d.openAnswers()
	d.terminal = terminal
	return err
}

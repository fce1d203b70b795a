package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// textPrinter prints the agent's text as it comes, and its tool calls, shortly,
// on stderr.
type textPrinter struct {
	console *console
	quiet   bool
}

func (p *textPrinter) play(all messages) error {
	var failed error // of stdout, between two pieces of text
	around := func(yield func(sdk.Message, error) bool) {
		for m, err := range all {
			if !yield(m, err) || err != nil {
				return
			}
			if failed = p.after(m); failed != nil {
				return
			}
		}
	}
	for piece, err := range sdk.Texts(around) {
		if errors.As(err, new(*protocol.OversizeError)) { // session.OversizeLine is a warning on stderr
			continue
		}
		if err != nil {
			return err
		}
		if err := p.console.text(piece); err != nil {
			return err
		}
	}
	return failed
}

// after is called when the text of m, if it has any, is printed.
func (p *textPrinter) after(m sdk.Message) error {
	switch m := m.(type) {
	case *sdk.AssistantMessage:
		if m.ParentToolUseID == "" {
			if err := p.console.endParagraph(); err != nil {
				return err
			}
		}
		for _, use := range sdk.ToolUses(m) {
			p.aside(m.ParentToolUseID, "→ %s", p.console.paint(bold, printable(use.Name))+subject(use.Input))
		}
	case *sdk.UserMessage:
		for _, result := range sdk.ToolResults(m) {
			if result.IsError {
				p.aside(m.ParentToolUseID, "%s %s", p.console.paint(red, "✗"), brief(result.Content.Text()))
			} else {
				p.aside(m.ParentToolUseID, "← %s", brief(result.Content.Text()))
			}
		}
	case *protocol.APIRetryMessage:
		p.aside("", "the model's API failed (%s); attempt %d of %d in %v", printable(m.Error), m.Attempt, m.MaxRetries,
			time.Duration(float64(m.RetryDelayMS)*float64(time.Millisecond)).Round(100*time.Millisecond))
	}
	return nil
}

// aside writes a line to stderr, set in if it is a subagent's.
func (p *textPrinter) aside(parent, format string, args ...any) {
	if p.quiet {
		return
	}
	indent := "  "
	if parent != "" {
		indent = "      "
	}
	p.console.say(indent+format+"\n", args...)
}

// endTurn ends the text of a turn; r is its result, or nil.
func (p *textPrinter) endTurn(r *sdk.ResultMessage) error {
	if r != nil && !r.Failed() && p.console.silent() { // a local command's, which has no other text
		if err := p.console.text(r.Text()); err != nil {
			return err
		}
	}
	return p.console.endParagraph()
}

func (p *textPrinter) end(o outcome, s *settings) error {
	if err := p.endTurn(o.result); err != nil {
		return err
	}
	if r := o.result; r != nil && p.console.shared() && !p.quiet {
		p.console.say("%s\n", p.console.paint(dim, summary(r, s.agent, o.conversation)))
	}
	return nil
}

// summary is the last line on a terminal. The time of a result is that of the last turn of a
// conversation alone, so it is left out there.
func summary(r *sdk.ResultMessage, agent string, conversation bool) string {
	line := agent
	if !conversation {
		line += fmt.Sprintf(" · %v", time.Duration(float64(r.DurationMS)*float64(time.Millisecond)).Round(100*time.Millisecond))
	}
	if agent == nameScripted { // what it costs is made up, and nothing is left to resume
		return line
	}
	if r.TotalCostUSD > 0 {
		line += " · $" + shown.Amount(r.TotalCostUSD)
	}
	if r.SessionID != "" {
		line += " · --resume " + r.SessionID
	}
	return line
}

// subject is the part of a tool's input that says most.
func subject(input json.RawMessage) string {
	var fields map[string]any
	if json.Unmarshal(input, &fields) != nil {
		return ""
	}
	for _, key := range []string{"command", "file_path", "path", "pattern", "url", "query", "skill", "description", "prompt"} {
		if v, ok := fields[key].(string); ok && v != "" {
			return " " + brief(v)
		}
	}
	if len(fields) == 0 {
		return ""
	}
	return " " + brief(string(input))
}

// brief is the first line of a text, cut to what fits on a terminal's.
func brief(s string) string {
	const most = 72
	s = strings.TrimSpace(s)
	first, rest, more := strings.Cut(s, "\n")
	first = printable(strings.TrimSpace(first))
	if utf8.RuneCountInString(first) > most {
		return string([]rune(first)[:most-1]) + "…"
	}
	if !more {
		return first
	}
	return fmt.Sprintf("%s (and %s)", first, shown.Count(strings.Count(rest, "\n")+1, "more line"))
}

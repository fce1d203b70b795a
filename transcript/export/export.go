package export

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"iter"
	"strings"
	"unicode"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/transcript"
)

// Markdown writes a session as Markdown. Each text of the session is in a fenced block
// whose fence is longer than any in the text. The error is the writer's or of messages;
// what precedes it was written.
func Markdown(w io.Writer, info *transcript.Info, messages iter.Seq2[*transcript.Message, error]) error {
	return write(&markdown{printer{bufio.NewWriter(w)}}, info, messages)
}

// HTML writes a session as one HTML page that loads nothing and runs nothing: its policy
// forbids scripts, and the text of the session is escaped.
func HTML(w io.Writer, info *transcript.Info, messages iter.Seq2[*transcript.Message, error]) error {
	return write(&page{printer{bufio.NewWriter(w)}}, info, messages)
}

// format writes the parts of an export.
type format interface {
	begin(title string, facts [][2]string)
	message(who, when string)
	text(s string)
	detail(title, s string) // of a tool
	note(s string)
	end() error
}

func write(f format, info *transcript.Info, messages iter.Seq2[*transcript.Message, error]) error {
	f.begin(line(info.Summary), factsOf(info))
	var failed error
	for m, err := range messages {
		if err != nil {
			f.note("The session could not be read to its end.")
			failed = err
			break
		}
		f.message(who(m), line(m.Timestamp))
		writeContent(f, m)
	}
	return errors.Join(failed, f.end())
}

func factsOf(info *transcript.Info) [][2]string {
	out := [][2]string{{"session", info.SessionID}}
	for _, fact := range [][2]string{{"directory", info.Cwd}, {"branch", info.GitBranch}, {"tag", info.Tag}} {
		if fact[1] != "" {
			out = append(out, fact)
		}
	}
	if !info.CreatedAt.IsZero() {
		out = append(out, [2]string{"began", info.CreatedAt.UTC().Format("2006-01-02 15:04:05 UTC")})
	}
	out = append(out, [2]string{"last change", info.LastModified.UTC().Format("2006-01-02 15:04:05 UTC")})
	for i := range out {
		out[i][1] = line(out[i][1])
	}
	return out
}

// who says whose message it is.
func who(m *transcript.Message) string {
	switch {
	case m.CompactSummary:
		return "Summary of what was before"
	case m.Type == "assistant":
		return "Assistant"
	case m.Type == "system":
		return "System"
	case m.Meta, m.LocalCommand:
		return "Agent's program"
	}
	if content, err := m.Content(); err == nil && len(content) > 0 {
		if _, ok := content[0].(*protocol.ToolResultBlock); ok {
			return "Tool"
		}
	}
	return "User"
}

func writeContent(f format, m *transcript.Message) {
	content, err := m.Content()
	if err != nil {
		f.note("This message cannot be decoded.")
		return
	}
	for _, b := range content {
		switch b := b.(type) {
		case *protocol.TextBlock:
			f.text(inert(b.Text))
		case *protocol.ThinkingBlock:
			f.detail("Thinking", inert(b.Thinking))
		case *protocol.ToolUseBlock:
			f.detail("Call of "+line(b.Name), inert(indented(b.Input)))
		case *protocol.ToolResultBlock:
			title := "Result"
			if b.IsError {
				title = "Error"
			}
			f.detail(title, inert(resultText(b)))
		default:
			f.note("A block of type " + line(b.BlockType()) + " is not shown.")
		}
	}
}

func resultText(b *protocol.ToolResultBlock) string {
	var parts []string
	for _, c := range b.Content {
		if t, ok := c.(*protocol.TextBlock); ok {
			parts = append(parts, t.Text)
		} else {
			parts = append(parts, "["+c.BlockType()+"]")
		}
	}
	return strings.Join(parts, "\n")
}

// indented returns JSON on separate lines.
func indented(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if e.Encode(v) != nil {
		return string(raw)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// inert replaces characters that steer a terminal or the direction of text.
func inert(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\r':
			return -1
		case unicode.IsControl(r), unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029':
			return unicode.ReplacementChar
		}
		return r
	}, s)
}

// line is inert for a text that must stay on its line.
func line(s string) string {
	return strings.Join(strings.Fields(inert(s)), " ")
}

// printer writes texts. The writer keeps its first error until Flush.
type printer struct{ w *bufio.Writer }

func (p printer) printf(format string, args ...any) { _, _ = fmt.Fprintf(p.w, format, args...) }

func (p printer) end() error { return p.w.Flush() }

// markdown writes Markdown.
type markdown struct{ printer }

func (m *markdown) begin(title string, facts [][2]string) {
	m.printf("# Session: %s\n\n", span(title))
	for _, f := range facts {
		m.printf("- %s: %s\n", f[0], span(f[1]))
	}
}

func (m *markdown) message(who, when string) {
	m.printf("\n## %s", who)
	if when != "" {
		m.printf(", %s", span(when))
	}
	m.printf("\n")
}

func (m *markdown) text(s string) { m.block("text", s) }

func (m *markdown) detail(title, s string) {
	m.printf("\n%s:\n", span(title))
	m.block("text", s)
}

func (m *markdown) block(info, s string) {
	fence := strings.Repeat("`", max(3, longestRun(s)+1))
	m.printf("\n%s%s\n%s\n%s\n", fence, info, s, fence)
}

func (m *markdown) note(s string) { m.printf("\n%s\n", span(s)) }

// span returns the text as code on a line.
func span(s string) string {
	if s == "" {
		return "``"
	}
	ticks := strings.Repeat("`", longestRun(s)+1)
	if s[0] == '`' || s[len(s)-1] == '`' || s[0] == ' ' && s[len(s)-1] == ' ' {
		s = " " + s + " "
	}
	return ticks + s + ticks
}

// longestRun is the length of the longest run of backticks.
func longestRun(s string) int {
	longest, run := 0, 0
	for i := range len(s) {
		if s[i] != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	return longest
}

// page writes HTML.
type page struct{ printer }

const pageHead = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">
<meta name="referrer" content="no-referrer">
<title>%s</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; color: #222; background: #fff }
section { border-left: .3rem solid #bbb; margin: 1rem 0; padding: .1rem 1rem }
section.user { border-color: #2a6 } section.assistant { border-color: #36c }
h2 { font-size: 1rem; margin: .3rem 0 } time { color: #666; font-weight: normal }
pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .3rem 0; font: 14px/1.45 ui-monospace, monospace }
section > pre { font: inherit } summary { cursor: pointer; color: #555 }
</style>
</head>
<body>
`

func (p *page) begin(title string, facts [][2]string) {
	title = html.EscapeString(title)
	p.printf(pageHead, title)
	p.printf("<h1>%s</h1>\n<dl>\n", title)
	for _, f := range facts {
		p.printf("<dt>%s</dt><dd>%s</dd>\n", f[0], html.EscapeString(f[1]))
	}
	p.printf("</dl>\n<section hidden>\n")
}

func (p *page) message(who, when string) {
	p.printf("</section>\n<section class=\"%s\">\n<h2>%s", strings.ToLower(strings.Fields(who)[0]), html.EscapeString(who))
	if when != "" {
		p.printf(" <time>%s</time>", html.EscapeString(when))
	}
	p.printf("</h2>\n")
}

func (p *page) text(s string) { p.printf("<pre>%s</pre>\n", html.EscapeString(s)) }

func (p *page) detail(title, s string) {
	p.printf("<details><summary>%s</summary><pre>%s</pre></details>\n", html.EscapeString(title), html.EscapeString(s))
}

func (p *page) note(s string) { p.printf("<p><em>%s</em></p>\n", html.EscapeString(s)) }

func (p *page) end() error {
	p.printf("</section>\n</body>\n</html>\n")
	return p.w.Flush()
}

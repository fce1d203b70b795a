package export_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/transcript"
	"github.com/agent-troupe/troupe/transcript/export"
)

// evil are texts that would become markup, end a block, load something or steer a
// terminal.
var evil = []string{
	"<script>alert(1)</script>", "</pre><img src=x onerror=alert(1)>", "![pixel](https://evil.example/p.png)",
	"```\n# heading\n<img src=x>\n```", "````\n[link](javascript:alert(1))\n````", "\x1b[31mred\x1b]8;;https://evil\a", "a\u202eb\u2066c", "&lt;b&gt;", "` `` ```",
}

func session() (*transcript.Info, iter.Seq2[*transcript.Message, error]) {
	info := &transcript.Info{SessionID: "5e55", Summary: evil[1] + "\n# x `y`", Cwd: evil[0], Tag: "```", LastModified: time.Unix(0, 0)}
	quote := func(s string) string { raw, _ := json.Marshal(s); return string(raw) }
	return info, func(yield func(*transcript.Message, error) bool) {
		for _, s := range evil {
			for _, content := range []string{
				quote(s), `[{"type":"text","text":` + quote(s) + `}]`,
				`[{"type":"tool_use","id":"t","name":` + quote(s) + `,"input":{"command":` + quote(s) + `}}]`,
				`[{"type":"tool_result","tool_use_id":"t","is_error":true,"content":[{"type":"text","text":` + quote(s) + `}]}]`,
				`[{"type":"thinking","thinking":` + quote(s) + `,"signature":""}]`,
				`[{"type":` + quote(s) + `}]`,
			} {
				if !yield(&transcript.Message{Type: "assistant", Timestamp: s, Message: json.RawMessage(`{"content":` + content + `}`)}, nil) {
					return
				}
			}
		}
	}
}

// TestHTMLIsInert parses the page: it has only the elements that the exporter writes.
func TestHTMLIsInert(t *testing.T) {
	t.Parallel()
	info, messages := session()
	var b bytes.Buffer
	require.NoError(t, export.HTML(&b, info, messages))
	assert.Contains(t, b.String(), "default-src 'none'")
	allowed := map[string]bool{
		"html": true, "head": true, "meta": true, "title": true, "style": true, "body": true, "h1": true, "h2": true, "dl": true, "dt": true, "dd": true,
		"section": true, "time": true, "pre": true, "details": true, "summary": true, "p": true, "em": true,
	}
	seen := map[string]int{}
	_, body, _ := strings.Cut(b.String(), "<!DOCTYPE html>")
	d := xml.NewDecoder(strings.NewReader(body))
	d.Strict, d.AutoClose, d.Entity = false, xml.HTMLAutoClose, xml.HTMLEntity
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			assert.True(t, allowed[token.Name.Local], "element %s", token.Name.Local)
			for _, a := range token.Attr {
				assert.Contains(t, []string{"lang", "charset", "http-equiv", "content", "name", "class", "hidden"}, a.Name.Local)
			}
			seen[token.Name.Local]++
		case xml.CharData:
			assertInert(t, string(token))
		}
	}
	assert.Equal(t, 1+6*len(evil), seen["section"])
}

// TestMarkdownIsInert follows the fences: outside of them there is no text of the session
// but as code on a line.
func TestMarkdownIsInert(t *testing.T) {
	t.Parallel()
	info, messages := session()
	var b strings.Builder
	require.NoError(t, export.Markdown(&b, info, messages))
	assertInert(t, b.String())
	fence := ""
	for _, line := range strings.Split(b.String(), "\n") {
		ticks := line[:len(line)-len(strings.TrimLeft(line, "`"))]
		switch {
		case fence == "" && len(ticks) >= 3 && strings.TrimLeft(line, "`") == "text":
			fence = ticks
		case fence != "" && strings.TrimRight(line, " ") == fence:
			fence = ""
		case fence == "":
			bare := withoutSpans(line)
			assert.NotContains(t, bare, "<", "line %q", line)
			assert.NotContains(t, bare, "](", "line %q", line)
			assert.False(t, strings.HasPrefix(bare, "# h"), "line %q", line)
		}
	}
	assert.Empty(t, fence, "a fence is not closed")
}

// withoutSpans removes code on a line, as CommonMark finds it.
func withoutSpans(line string) string {
	for i := 0; i < len(line); i++ {
		if line[i] != '`' {
			continue
		}
		n := len(line[i:]) - len(strings.TrimLeft(line[i:], "`"))
		ticks := line[i : i+n]
		for j := i + n; j < len(line); j++ {
			if line[j] != '`' {
				continue
			}
			m := len(line[j:]) - len(strings.TrimLeft(line[j:], "`"))
			if m == len(ticks) {
				line = line[:i] + line[j+m:]
				i--
				break
			}
			j += m - 1
		}
		i = max(i, -1)
	}
	return line
}

func assertInert(t *testing.T, s string) {
	t.Helper()
	for _, bad := range []string{"\x1b", "\a", "\u202e", "\u2066"} {
		assert.NotContains(t, s, bad)
	}
}

func TestExportSaysThatItIsCut(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	var b strings.Builder
	err := export.Markdown(&b, &transcript.Info{}, func(yield func(*transcript.Message, error) bool) { yield(nil, broken) })
	require.ErrorIs(t, err, broken)
	assert.Contains(t, b.String(), "could not be read to its end")
}

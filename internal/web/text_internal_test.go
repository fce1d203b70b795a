package web

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/internal/kernel/sim"
)

func read(contentType, body string) string {
	return (&Page{Body: []byte(body), contentType: contentType, Kind: kindOf(contentType, []byte(body))}).Readable()
}

func TestHTMLAsMarkdown(t *testing.T) {
	t.Parallel()
	const html = "text/html; charset=utf-8"
	for _, c := range []struct{ html, want string }{
		{`<html><head><title>T</title><style>x{}</style><script>y()</script></head><body><h1>Head</h1><p>Para <a href="/l">link</a></p><ul><li>one</li></ul></body></html>`, "T\n\n# Head\n\nPara [link](/l)\n\n- one"},
		{`<table><tr><th>a</th><th>b</th></tr><tr><td>1</td><td>2</td></tr></table>`, "| a | b |\n|---|---|\n| 1 | 2 |"},
		{"<pre><code class=\"language-go\">x := 1\n</code></pre>", "```go\nx := 1\n```"},
		{`<p>a<img src="data:image/png;base64,AAAA" alt="p">b<svg><title>s</title><text>t</text></svg>c`, "abc"},
		{`<!-- x --><noscript>n</noscript><template>t</template><p>shown`, "shown"},
		{``, ""},
		{`<p>` + strings.Repeat("<div>", 600) + `deep<script>no()</script><style>no{}</style>er`, "deep\ner"},
	} {
		assert.Equal(t, c.want, read(html, c.html), c.html[:min(len(c.html), 60)])
	}
}

// A page that would take the converter long, or much memory, is text without marks.
func TestPagesThatWouldTakeLong(t *testing.T) {
	t.Parallel()
	if sim.Raced() {
		t.Skip("it has one goroutine, and would take long")
	}
	const html = "text/html"
	lines := strings.Repeat("a\n", 50_000)
	for name, page := range map[string]string{
		"a billion cells":        `<table><tr><td colspan="1000000000" rowspan="1000000000">a</td><td>b</td></tr></table>`,
		"a wide and a long one":  `<table><tr>` + strings.Repeat("<td>a", 10_000) + strings.Repeat("<tr><td>b", 10_000) + `</table>`,
		"a long cell":            `<table>` + strings.Repeat("<tr><td>b", 10_000) + "<tr><td>" + strings.Repeat("a ", 100_000) + `</table>`,
		"lists in lists":         strings.Repeat("<ul><li>", 200) + "<pre>" + lines + "b",
		"quotations":             strings.Repeat("<blockquote>", 12) + "<pre>" + lines + "b",
		"bold in italics":        strings.Repeat("<b><i>", 90) + lines + "b",
		"links":                  strings.Repeat("<a href=x>a</a> b ", 15_000),
		"items":                  "<ol>" + strings.Repeat("<li>a b", 25_000),
		"breaks":                 "a" + strings.Repeat("<br>", 50_000) + "b",
		"all marks":              "a" + strings.Repeat("*_[](<`~#", 20_000) + "b",
		"headings":               strings.Repeat("<h1>a<br>b</h1>", 10_000),
		"more than is converted": "a " + strings.Repeat("<p>b ", maxHTML/5+1),
	} {
		began := time.Now()
		text := read(html, page)
		assert.Contains(t, text, "a", name)
		assert.Contains(t, text, "b", name)
		assert.Less(t, len(text), 40*len(page)+1000, name)
		assert.Less(t, time.Since(began), time.Minute, name)
	}
}

func TestEncodings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, body, want string }{
		{"text/plain; charset=iso-8859-1", "caf\xe9", "café"},
		{"text/plain; charset=shift_jis", "\x93\xfa\x96{", "日本"},
		{"text/html", "<meta charset=windows-1252><p>\x80", "€"},
		{"text/html; charset=utf-8", "<meta charset=windows-1252><p>é", "é"},
		{"text/plain", "\xef\xbb\xbfé", "é"},
		{"text/plain; charset=utf-8", "a\xffb", "a\ufffdb"},
		{"application/json", `{"a":"é"}`, `{"a":"é"}`},
		{"", "plain", "plain"},
	} {
		assert.Equal(t, c.want, read(c.kind, c.body), c.kind)
	}
}

func TestWhatIsText(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]bool{
		"text/html": true, "text/csv": true, "application/json": true, "application/ld+json": true, "application/rss+xml": true, "image/svg+xml": true,
		"application/pdf": false, "image/png": false, "application/zip": false, "application/octet-stream": false, "": false,
	} {
		assert.Equal(t, want, (&Page{Kind: kind}).IsText(), kind)
	}
	assert.Equal(t, "application/pdf", kindOf("application/octet-stream", []byte("%PDF-1.4\n")), "the bytes say it")
	assert.Equal(t, "image/png", kindOf("", []byte("\x89PNG\r\n\x1a\n")))
	assert.Equal(t, "text/plain", kindOf("nonsense", []byte("x")))
}

// Text of a page with any bytes is UTF-8, and ends.
func FuzzReadable(f *testing.F) {
	f.Add("text/html", "<p>x")
	f.Add("text/html", "<table><tr><td><ul><li><pre><code>")
	f.Add("text/html; charset=utf-16", "\xff\xfe<")
	f.Fuzz(func(t *testing.T, kind, body string) {
		assert.NotContains(t, read(kind, body), "\xff")
	})
}

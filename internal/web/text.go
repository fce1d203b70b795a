package web

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/JohannesKaufmann/html-to-markdown/v2/converter"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/base"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/commonmark"
	"github.com/JohannesKaufmann/html-to-markdown/v2/plugin/table"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"
	"golang.org/x/net/html/charset"
)

// kindOf is the media type of a page. If the server does not say it, its bytes do.
func kindOf(header string, body []byte) string {
	kind, _, err := mime.ParseMediaType(header)
	if err != nil || !strings.Contains(kind, "/") || kind == "application/octet-stream" {
		kind, _, _ = mime.ParseMediaType(http.DetectContentType(body)) // it is one
	}
	return kind
}

// IsText reports whether the page is one of text.
func (p *Page) IsText() bool {
	kind, suffix := p.Kind, p.Kind[strings.LastIndexByte(p.Kind, '+')+1:]
	switch {
	case strings.HasPrefix(kind, "text/"), suffix == "json", suffix == "xml", suffix == "yaml":
		return true
	}
	switch kind {
	case "application/json", "application/xml", "application/javascript", "application/x-javascript", "application/ecmascript",
		"application/yaml", "application/x-yaml", "application/toml", "application/x-ndjson", "application/jsonl", "application/sql", "application/x-sh":
		return true
	}
	return false
}

// Readable is the page's text: of HTML as Markdown, of other texts as they are, in UTF-8.
func (p *Page) Readable() string {
	text := decoded(p.Body, p.contentType)
	if p.Kind != "text/html" && p.Kind != "application/xhtml+xml" {
		return text
	}
	if md, err := markdown(text); err == nil {
		return md
	}
	return bare(text) // it is nested too deeply, for example
}

// decoded is a text in UTF-8. Its encoding is what the server says, or the text itself.
func decoded(body []byte, contentType string) string {
	encoding, name, certain := charset.DetermineEncoding(body, contentType)
	if name != "utf-8" && (certain || !utf8.Valid(body)) {
		if text, err := encoding.NewDecoder().Bytes(body); err == nil {
			body = text
		}
	}
	return strings.ToValidUTF8(strings.TrimPrefix(string(body), "\ufeff"), "\ufffd")
}

// Limits of a page that becomes Markdown. The converter cannot be stopped, so what would take it
// long, or much memory, is not given to it: lists in lists have each of their lines indented again,
// and a table has as many cells in each row as in its longest one.
const (
	maxHTML    = 2 << 20 // bytes
	maxDepth   = 200     // elements in elements
	maxNested  = 12      // lists and quotations in each other
	maxColumns = 50      // of a table that is shown as one
)

// errTooMuch is a page that does not become Markdown.
var errTooMuch = errors.New("the page is too large, or too deep")

// markdown is an HTML page as Markdown, its title first.
func markdown(text string) (string, error) {
	if len(text) > maxHTML {
		return "", errTooMuch
	}
	doc, err := html.Parse(strings.NewReader(text))
	if err != nil {
		return "", err
	}
	title := prune(doc)
	deep, wide := measure(doc)
	if deep {
		return "", errTooMuch
	}
	plugins := []converter.Plugin{base.NewBasePlugin(), commonmark.NewCommonmarkPlugin()}
	if !wide {
		plugins = append(plugins, table.NewTablePlugin(table.WithCellPaddingBehavior(table.CellPaddingBehaviorMinimal)))
	}
	md, err := converter.NewConverter(converter.WithPlugins(plugins...)).ConvertNode(doc)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(title + "\n\n" + string(md)), nil
}

// prune takes out of a page what says nothing as text, such as drawings and images that are
// part of it, and returns its title.
func prune(doc *html.Node) (title string) {
	var drop []*html.Node
	for n := range doc.Descendants() {
		switch {
		case n.Type != html.ElementNode:
		case n.DataAtom == atom.Title && title == "" && n.Namespace == "":
			for t := range n.Descendants() {
				if t.Type == html.TextNode {
					title += t.Data
				}
			}
		case n.DataAtom == atom.Td || n.DataAtom == atom.Th:
			n.Attr = slices.DeleteFunc(n.Attr, func(a html.Attribute) bool { return a.Key == "colspan" || a.Key == "rowspan" }) // one may say a billion
		case n.DataAtom == atom.Svg, n.DataAtom == atom.Template, n.DataAtom == atom.Img && inline(n):
			drop = append(drop, n)
		}
	}
	for _, n := range drop {
		if n.Parent != nil {
			n.Parent.RemoveChild(n)
		}
	}
	return strings.Join(strings.Fields(title), " ")
}

// measure reports whether a page is nested too deeply, and whether a table of it is too wide.
func measure(doc *html.Node) (deep, wide bool) {
	type place struct {
		n             *html.Node
		depth, nested int
	}
	for todo := []place{{n: doc}}; len(todo) > 0; {
		p := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if p.depth++; p.depth > maxDepth || p.nested > maxNested {
			return true, wide
		}
		switch p.n.DataAtom {
		case atom.Ul, atom.Ol, atom.Blockquote:
			p.nested++
		}
		cells := 0
		for c := range p.n.ChildNodes() {
			if c.DataAtom == atom.Td || c.DataAtom == atom.Th {
				cells++
			}
			todo = append(todo, place{c, p.depth, p.nested})
		}
		wide = wide || cells > maxColumns
	}
	return false, wide
}

// inline reports whether an image is part of the page.
func inline(n *html.Node) bool {
	for _, a := range n.Attr {
		if a.Key == "src" && strings.HasPrefix(strings.ToLower(strings.TrimSpace(a.Val)), "data:") {
			return true
		}
	}
	return false
}

// bare is the text of an HTML page without its tags.
func bare(text string) string {
	z := html.NewTokenizer(strings.NewReader(text))
	var b bytes.Buffer
	hidden := atom.Atom(0)
	for {
		switch z.Next() {
		case html.ErrorToken:
			if errors.Is(z.Err(), io.EOF) || b.Len() > 0 {
				return strings.TrimSpace(b.String())
			}
			return ""
		case html.StartTagToken:
			name, _ := z.TagName()
			if a := atom.Lookup(name); hidden == 0 && (a == atom.Script || a == atom.Style) {
				hidden = a
			}
		case html.EndTagToken:
			name, _ := z.TagName()
			if atom.Lookup(name) == hidden {
				hidden = 0
			}
		case html.TextToken:
			if s := strings.TrimSpace(string(z.Text())); hidden == 0 && s != "" {
				b.WriteString(s)
				b.WriteByte('\n')
			}
		case html.SelfClosingTagToken, html.CommentToken, html.DoctypeToken:
		}
	}
}

package embedded

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/agent"
)

// page is the part of a list that the model wants.
type page struct {
	offset, limit int // 0 means no limit
	seen          int // of the list
	list          []string
	size          int
}

func pageOf(in agent.Object) *page {
	p := &page{limit: headLimit}
	whole := func(n float64) int { return int(min(n, math.MaxInt32)) }
	if n, given := number(in, "head_limit"); given {
		p.limit = whole(n)
	}
	if n, given := number(in, "offset"); given {
		p.offset = whole(n)
	}
	return p
}

// add takes the next of the list.
func (p *page) add(s string) {
	p.seen++
	if p.seen > p.offset && (p.limit == 0 || len(p.list) < p.limit) && p.size < maxSearchKept {
		p.list = append(p.list, s)
		p.size += len(s)
	}
}

// cut reports whether the page ends before the list.
func (p *page) cut() bool { return p.limit > 0 && p.seen > p.offset+p.limit }

// about says which part it is, and notes it in tool_use_result.
func (p *page) about(structured agent.Object) string {
	var parts []string
	if p.cut() {
		parts = append(parts, "limit: "+strconv.Itoa(p.limit))
		structured["appliedLimit"] = p.limit
	}
	if p.offset > 0 {
		parts = append(parts, "offset: "+strconv.Itoa(p.offset))
		structured["appliedOffset"] = p.offset
	}
	return strings.Join(parts, ", ")
}

// result is what the model reads.
func (g *grepping) result() agent.ToolResult {
	structured := agent.Object{"mode": g.mode, "filenames": []string{}, "numFiles": 0}
	switch g.mode {
	case "content":
		content := strings.Join(g.page.list, "\n")
		structured["content"], structured["numLines"], structured["totalLines"] = content, len(g.page.list), g.page.seen
		return g.paged(content, "", "\n\n[Showing results with pagination = ", "]", structured)
	case "count":
		content := strings.Join(g.page.list, "\n")
		structured["content"], structured["numFiles"], structured["numMatches"] = content, g.page.seen, g.total
		total := fmt.Sprintf("\n\nFound %d total %s across %d %s.", g.total, plural(g.total, "occurrence"), g.page.seen, plural(g.page.seen, "file"))
		return g.paged(content, total, " with pagination = ", "", structured)
	}
	slices.SortFunc(g.found, func(a, b foundFile) int {
		if n := b.mtime.Compare(a.mtime); n != 0 {
			return n
		}
		return strings.Compare(strings.ToLower(a.name), strings.ToLower(b.name))
	})
	for _, f := range g.found {
		g.page.add(f.name)
	}
	structured["mode"] = "files_with_matches"
	structured["numFiles"], structured["totalFiles"] = len(g.page.list), g.page.seen
	if len(g.page.list) > 0 {
		structured["filenames"] = g.page.list
	}
	about := g.page.about(structured)
	switch {
	case g.page.seen == 0:
		return agent.ToolResult{Content: "No files found", Structured: structured}
	case len(g.page.list) == 0:
		return agent.ToolResult{Content: "No entries at this offset. [Showing results with pagination = " + about + "]", Structured: structured}
	case about != "":
		about = " " + about
	}
	text := fmt.Sprintf("Found %d %s%s\n%s", len(g.page.list), plural(len(g.page.list), "file"), about, strings.Join(g.page.list, "\n"))
	return agent.ToolResult{Content: text, Structured: structured}
}

// paged is a result with what it says of its page.
func (g *grepping) paged(content, total, before, behind string, structured agent.Object) agent.ToolResult {
	about := g.page.about(structured)
	switch {
	case content == "" && g.page.seen > 0:
		content = "No entries at this offset"
	case content == "":
		content = "No matches found"
	}
	if about != "" {
		about = before + about + behind
	}
	return agent.ToolResult{Content: content + total + about, Structured: structured}
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}

package embedded

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/internal/search"
)

// maxGlobbed is how many files Glob lists.
const maxGlobbed = 100

// glob is the tool Glob, as Claude Code 2.1.329 has it (observed).
func glob() *tool {
	return &tool{
		name:  "Glob",
		about: "Lists files whose paths match wildcards such as **/*.go or src/*.{ts,tsx}, the oldest first. A pattern without a slash matches in every directory.",
		reads: true,
		path:  "path",
		tree:  true,
		params: []param{
			{name: "pattern", kind: "string", required: true},
			{name: "path", kind: "string", about: "A directory; the shell's if none is given."},
		},
		run: func(ctx context.Context, h *hands, in agent.Object) agent.ToolResult { return h.glob(ctx, in) },
	}
}

// globbed is the directory that a pattern is about, and the pattern there. An absolute
// pattern has its own directory: what stands before its first wildcard.
func globbed(in agent.Object) (dir, pattern string) {
	dir, pattern = str(in, "path"), str(in, "pattern")
	if !filepath.IsAbs(pattern) {
		return dir, pattern
	}
	head := pattern
	if i := strings.IndexAny(pattern, "*?[{"); i >= 0 {
		head = pattern[:i]
	}
	slash := strings.LastIndexByte(head, '/')
	return filepath.Clean("/" + pattern[:slash]), pattern[slash+1:]
}

func (h *hands) glob(ctx context.Context, in agent.Object) agent.ToolResult {
	began := h.seams.Clock.Now()
	dir, pattern := globbed(in)
	at, problem := h.whereTo(spotOf(ctx), dir, "Directory")
	switch {
	case problem != "" && filepath.IsAbs(str(in, "pattern")):
		return h.globResult(began, nil, 0) // the pattern matches nothing
	case problem != "":
		return failure("%s", problem)
	case at.file:
		return failure("Path is not a directory: %s", dir)
	}
	ctx, cancel := h.limited(ctx)
	defer cancel()
	root, err := h.enterDir(at.real, false)
	if err != nil {
		return searchFailure(ctx, err)
	}
	defer func() { _ = root.Close() }() // it was read
	tree := search.Tree{Dir: at.real, Root: root}
	if pattern != "" {
		tree.Globs = []string{pattern}
	}
	var found []foundFile
	total := 0
	err = tree.Walk(ctx, func(f *search.File) error {
		if h.hidden(filepath.Join(at.real, f.Path)) || h.hidden(filepath.Join(at.path, f.Path)) {
			return nil
		}
		total++
		found = append(found, foundFile{h.shown(filepath.Join(at.path, f.Path)), f.Info.ModTime()})
		if len(found) >= 100*maxGlobbed { // the oldest are enough
			found = oldest(found)
		}
		return nil
	})
	if err != nil {
		return searchFailure(ctx, err)
	}
	return h.globResult(began, oldest(found), total)
}

// oldest are the first files that Glob lists.
func oldest(found []foundFile) []foundFile {
	slices.SortStableFunc(found, func(a, b foundFile) int { return a.mtime.Compare(b.mtime) })
	return found[:min(len(found), maxGlobbed)]
}

func (h *hands) globResult(began time.Time, found []foundFile, total int) agent.ToolResult {
	names := []string{}
	for _, f := range found {
		names = append(names, f.name)
	}
	text := strings.Join(names, "\n")
	switch {
	case total == 0:
		text = "No files found"
	case total > len(names):
		text += fmt.Sprintf("\n(Showing %d of %d matching files; %d more are not listed. Narrow the pattern or path to see the rest.)", len(names), total, total-len(names))
	}
	return agent.ToolResult{Content: text, Structured: agent.Object{
		"filenames": names, "durationMs": h.seams.Clock.Now().Sub(began).Milliseconds(), "numFiles": len(names),
		"truncated": total > len(names), "totalMatches": total, "countIsComplete": true,
	}}
}

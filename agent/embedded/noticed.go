package embedded

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"mvdan.cc/sh/v3/syntax"
)

// coarse is how much older than its change a file can look.
const coarse = 20 * time.Millisecond

// inPlace are commands that change files of which the model has read another content.
var inPlace = regexp.MustCompile(`\bsed\b[^|;&\n]*\s-i`)

// noticed is what the model reads of a command that has changed files which it has read; "":
// none. began is when the command did.
func (h *hands) noticed(command string, began time.Time) string {
	if !inPlace.MatchString(command) {
		return ""
	}
	h.mu.Lock()
	paths := slices.Sorted(maps.Keys(h.read))
	h.mu.Unlock()
	var changed []string
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil || info.ModTime().Before(began.Add(-coarse)) {
			continue
		}
		if info.ModTime().Before(began) {
			if content, _, err := h.load(nil, path); err != nil || h.isKnown(path, content) {
				continue // it was written before
			}
		}
		changed = append(changed, h.shown(path))
	}
	const most = 5
	list, word := strings.Join(changed[:min(len(changed), most)], ", "), "files"
	switch {
	case len(changed) == 0:
		return ""
	case len(changed) == 1:
		word = "file"
	case len(changed) > most:
		list += fmt.Sprintf(" and %d more", len(changed)-most)
	}
	return fmt.Sprintf("[This command modified %d %s you've previously read: %s. Call Read before editing.]", len(changed), word, list)
}

// refresh takes it that the model knows what its own command has made of files that it wrote,
// as observed; of those that it has read, it does not.
func (h *hands) refresh(command string, began time.Time) {
	if inPlace.MatchString(command) {
		return
	}
	h.mu.Lock()
	files := maps.Clone(h.read)
	h.mu.Unlock()
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if !files[path].own {
			continue
		}
		if info, err := os.Stat(path); err != nil || info.ModTime().Before(began.Add(-coarse)) {
			continue
		}
		if content, _, err := h.load(nil, path); err == nil {
			h.wrote(path, content)
		}
	}
}

func (h *hands) isKnown(path string, content []byte) bool {
	_, same := h.knows(path, content)
	return same
}

// sawBy notes the files that a command has printed whole: with cat, nl, head or sed, each
// alone, in a list of commands in the same directory.
func (h *hands) sawBy(command, dir string) {
	file, err := parsed(command)
	if err != nil {
		return
	}
	calls, plain := [][]string(nil), true
	var each func(s *syntax.Stmt)
	each = func(s *syntax.Stmt) {
		switch c := s.Cmd.(type) {
		case *syntax.BinaryCmd:
			if plain = plain && c.Op == syntax.AndStmt; plain {
				each(c.X)
				each(c.Y)
			}
		case *syntax.CallExpr:
			words := wordsOf(c)
			if len(words) == 0 || len(s.Redirs) > 0 || s.Negated || s.Background {
				return
			}
			plain = plain && words[0] != "cd" && words[0] != "pushd" && words[0] != "popd"
			calls = append(calls, words)
		default:
			plain = false
		}
	}
	for _, s := range file.Stmts {
		each(s)
	}
	if !plain {
		return
	}
	for _, words := range calls {
		name, lines := oneFile(words)
		if name == "" {
			continue
		}
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(dir, path)
		}
		content, _, err := h.load(nil, path)
		if err == nil && (lines < 0 || bytes.Count(content, []byte{'\n'}) <= lines) {
			h.wrote(path, content)
		}
	}
}

// wordsOf are the words of a command, if all are plain texts.
func wordsOf(c *syntax.CallExpr) (words []string) {
	if len(c.Assigns) > 0 {
		return nil
	}
	for _, w := range c.Args {
		text := ""
		for _, part := range w.Parts {
			switch p := part.(type) {
			case *syntax.Lit:
				text += p.Value
			case *syntax.SglQuoted:
				text += p.Value
			case *syntax.DblQuoted:
				for _, inner := range p.Parts {
					lit, ok := inner.(*syntax.Lit)
					if !ok {
						return nil
					}
					text += lit.Value
				}
			default:
				return nil
			}
		}
		words = append(words, text)
	}
	return words
}

var (
	headLines = regexp.MustCompile(`^-(\d+)$`)
	sedLines  = regexp.MustCompile(`^1,(\d+)p$`)
)

// oneFile is the one file that a command prints, and how many of its lines at most; -1: all.
func oneFile(words []string) (name string, lines int) {
	args := words[1:]
	lines = -1
	switch words[0] {
	case "cat", "nl":
		if words[0] == "cat" && len(args) > 0 && args[0] == "-n" {
			args = args[1:]
		}
	case "head":
		lines = 10
		if len(args) == 2 {
			if m := headLines.FindStringSubmatch(args[0]); m != nil {
				lines, _ = strconv.Atoi(m[1]) // digits
				args = args[1:]
			}
		}
	case "sed":
		if len(args) != 3 || args[0] != "-n" {
			return "", 0
		}
		m := sedLines.FindStringSubmatch(args[1])
		if m == nil {
			return "", 0
		}
		lines, _ = strconv.Atoi(m[1]) // digits
		args = args[2:]
	default:
		return "", 0
	}
	if len(args) != 1 || args[0] == "" || strings.HasPrefix(args[0], "-") || strings.ContainsAny(args[0], "*?[~\\") {
		return "", 0
	}
	return args[0], lines
}

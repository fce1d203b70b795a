package main

import (
	"bytes"
	"cmp"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	_ "embed"
)

//go:embed mutant.go.txt
var selector string

// edit replaces a part of a file.
type edit struct {
	from, to int // offsets; equal: text is only put in
	text     string
	closes   bool // what begins before it; it comes before what opens there
	once     bool // several mutants need it once
	order    int
}

func opener(at int, text string) edit { return edit{from: at, to: at, text: text} }

func closer(from, to int, text string) edit {
	return edit{from: from, to: to, text: text, closes: true}
}

// weave returns the text of a file with all mutants in it. The numbers of mutants are those
// of the map.
func weave(text string, mutants []*Site, number map[*Site]int) (string, error) {
	var all []edit
	once := map[int]bool{}
	for i, s := range mutants { // in the order in which they were found: the outer before the inner
		for _, e := range s.edits(number[s]) {
			if e.once {
				if once[e.from] {
					continue
				}
				once[e.from] = true
			}
			e.order = i
			all = append(all, e)
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "", text, parser.PackageClauseOnly)
	if err != nil {
		return "", err
	}
	all = append(all, opener(int(file.Name.End())-1, `; import "github.com/agent-troupe/troupe/internal/mutant"`))
	slices.SortStableFunc(all, func(a, b edit) int {
		switch {
		case a.from != b.from:
			return cmp.Compare(a.from, b.from)
		case a.closes != b.closes && a.closes:
			return -1
		case a.closes != b.closes:
			return 1
		case a.closes: // the inner first
			return cmp.Compare(b.order, a.order)
		}
		return cmp.Compare(a.order, b.order)
	})
	var out strings.Builder
	at := 0
	for _, e := range all {
		if e.from < at {
			return "", fmt.Errorf("two mutants change the same text: %q", e.text)
		}
		out.WriteString(text[at:e.from])
		out.WriteString(e.text)
		at = e.to
	}
	out.WriteString(text[at:])
	return out.String(), nil
}

// copyTree copies what git knows of the tree, and what is new in it.
func copyTree(root, dir string) error {
	cmd := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	list, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("list the files of %s: %w", root, err)
	}
	for name := range bytes.SplitSeq(bytes.TrimRight(list, "\x00"), []byte{0}) {
		from, to := filepath.Join(root, string(name)), filepath.Join(dir, string(name))
		info, err := os.Lstat(from)
		if err != nil || !info.Mode().IsRegular() { // deleted, or a link
			continue
		}
		content, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, content, info.Mode().Perm()); err != nil {
			return err
		}
	}
	return nil
}

// plant writes the mutants into a copy of the tree.
func plant(dir string, mutants []*Site, number map[*Site]int) error {
	byFile := map[string][]*Site{}
	for _, s := range mutants {
		byFile[s.File] = append(byFile[s.File], s)
	}
	for name, of := range byFile {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		woven, err := weave(string(text), of, number)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := os.WriteFile(path, []byte(woven), 0o644); err != nil {
			return err
		}
	}
	home := filepath.Join(dir, "internal", "mutant")
	if err := os.MkdirAll(home, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(home, "mutant.go"), []byte(selector), 0o644)
}

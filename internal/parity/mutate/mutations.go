package main

import (
	_ "embed"
	"fmt"
	"strings"
)

//go:embed mutations.txt
var mutationsFile string

// mutation is one way to break the code of a row.
type mutation struct {
	row  string // id in docs/parity.md
	file string // from the root of the module
	old  string // occurs once in the file
	new  string
}

// parse reads mutations of four lines each, with an empty line between them:
// the row, the file, "- " with the old text, "+ " with the new one. A line that
// begins with # is a comment.
func parse(text string) ([]mutation, error) {
	var all []mutation
	for block := range strings.SplitSeq(text, "\n\n") {
		var lines []string
		for line := range strings.SplitSeq(block, "\n") {
			if line != "" && !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
		if len(lines) == 0 {
			continue
		}
		if len(lines) != 4 || !strings.HasPrefix(lines[2], "- ") || !strings.HasPrefix(lines[3], "+ ") {
			return nil, fmt.Errorf("mutations.txt: a mutation is four lines: row, file, - old, + new; this one is\n%s", block)
		}
		all = append(all, mutation{lines[0], lines[1], lines[2][2:], lines[3][2:]})
	}
	return all, nil
}

// apply returns the content of the file with the mutation.
func (m mutation) apply(content string) (string, error) {
	if n := strings.Count(content, m.old); n != 1 {
		return "", fmt.Errorf("%s: %q occurs %d times in %s, and has to occur once", m.row, m.old, n, m.file)
	}
	return strings.Replace(content, m.old, m.new, 1), nil
}

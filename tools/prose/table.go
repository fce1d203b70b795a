package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A key is a row of prose.txt.
type key struct{ pattern, folder string }

func (k key) compare(o key) int {
	return cmp.Or(cmp.Compare(k.folder, o.folder), cmp.Compare(k.pattern, o.pattern))
}

// A table is how often each pattern may occur in each folder.
type table map[key]int

// parse reads prose.txt: a count, a folder and a pattern on each line, or a comment.
func parse(src []byte) (table, error) {
	t := table{}
	for i, line := range strings.Split(string(src), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		count, rest, _ := strings.Cut(line, " ")
		name, pattern, ok := strings.Cut(rest, " ")
		n, err := strconv.Atoi(count)
		if !ok || err != nil || n <= 0 {
			return nil, fmt.Errorf("line %d is not a count, a folder and a pattern: %q", i+1, line)
		}
		t[key{pattern, name}] = n
	}
	return t, nil
}

func (t table) format() []byte {
	var b bytes.Buffer
	b.WriteString("# How often each pattern of tools/prose may occur in the comments of a folder's Go files, or in\n" +
		"# a Markdown file. A number only falls: go -C tools run ./prose -update lowers it.\n")
	for _, k := range slices.SortedFunc(maps.Keys(t), key.compare) {
		fmt.Fprintf(&b, "%d %s %s\n", t[k], k.folder, k.pattern)
	}
	return b.Bytes()
}

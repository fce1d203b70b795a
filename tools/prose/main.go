// Command prose counts phrases that make a sentence hard to read, in the comments of the
// Go files and in the Markdown of the checkout, and compares the counts with prose.txt.
// CONTRIBUTING.md says what to write instead.
//
//	go -C tools run ./prose             # compares; exits 1 if a count differs
//	go -C tools run ./prose -list DIR   # prints each sentence found below a folder
//	go -C tools run ./prose -update     # lowers the counts in prose.txt to what is there
//
// A count in prose.txt may only fall. Code in Markdown, generated files, the changelog and
// testdata are not read.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("prose: ")
	list := flag.String("list", "", "print what is found in the files whose path starts with this")
	update := flag.Bool("update", false, "lower the counts in prose.txt")
	root := flag.String("root", "..", "the checkout to read")
	flag.Parse()
	if err := run(*root, *list, *update); err != nil {
		log.Fatal(err)
	}
}

func run(root, list string, update bool) error {
	findings, err := read(root)
	if err != nil {
		return err
	}
	if list != "" {
		for _, f := range findings {
			if strings.HasPrefix("./"+f.file, "./"+strings.TrimPrefix(list, "./")) {
				fmt.Printf("%s:%d: [%s] %s\n", f.file, f.line, f.pattern, f.sentence)
			}
		}
		return nil
	}
	counts := table{}
	for _, f := range findings {
		counts[key{f.pattern, folder(f.file)}]++
	}
	for _, p := range patterns() {
		n := [2]int{}
		for k, count := range counts {
			if k.pattern == p.name {
				if strings.HasSuffix(k.folder, ".md") {
					n[1] += count
				} else {
					n[0] += count
				}
			}
		}
		fmt.Printf("%-9s %4d in Go %4d in Markdown\n", p.name, n[0], n[1])
	}
	file := filepath.Join(root, "tools", "prose", "prose.txt")
	src, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	ceiling, err := parse(src)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	errs := compare(counts, ceiling, update)
	if update {
		if err := os.WriteFile(file, ceiling.format(), 0o644); err != nil {
			return err
		}
	}
	return errors.Join(errs...)
}

// read returns what the patterns find in the files that git knows.
func read(root string) ([]finding, error) {
	out, err := exec.Command("git", "-C", root, "ls-files", "-z", "*.go", "*.md").Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files in %s: %w", root, err)
	}
	var all []finding
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if name == "" || name == "CHANGELOG.md" || strings.HasPrefix(name, "testdata/") || strings.Contains(name, "/testdata/") {
			continue
		}
		src, err := os.ReadFile(filepath.Join(root, name))
		if errors.Is(err, os.ErrNotExist) { // removed, and git does not know yet
			continue
		}
		if err != nil {
			return nil, err
		}
		if bytes.HasPrefix(src, []byte("// Code generated ")) {
			continue
		}
		var found []finding
		if strings.HasSuffix(name, ".md") {
			found = inMarkdown(src)
		} else if found, err = inGo(src); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		for i := range found {
			found[i].file = name
		}
		all = append(all, found...)
	}
	return all, nil
}

// folder returns what prose.txt calls a file: the folder of a Go file, or the Markdown file.
func folder(name string) string {
	if strings.HasSuffix(name, ".md") {
		return name
	}
	return filepath.ToSlash(filepath.Dir(name))
}

// compare returns an error for each count that differs from its ceiling. With update it
// first lowers the ceilings that are too high.
func compare(counts, ceiling table, update bool) []error {
	keys := maps.Clone(ceiling)
	for k := range counts {
		keys[k] = 0
	}
	var errs []error
	for _, k := range slices.SortedFunc(maps.Keys(keys), key.compare) {
		switch n, most := counts[k], ceiling[k]; {
		case n > most:
			errs = append(errs, fmt.Errorf("%s: %d times the pattern %q, and %d are allowed: write the new sentence with %s; go -C tools run ./prose -list %s shows all",
				k.folder, n, k.pattern, most, insteadOf(k.pattern), k.folder))
		case n == 0 && update:
			delete(ceiling, k)
		case n < most && update:
			ceiling[k] = n
		case n < most:
			errs = append(errs, fmt.Errorf("%s: %d times the pattern %q, and %d are allowed: lower the number with go -C tools run ./prose -update",
				k.folder, n, k.pattern, most))
		}
	}
	return errs
}

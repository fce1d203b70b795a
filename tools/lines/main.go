// Command lines counts the lines of the module's own Go code that hold at least one
// token: neither blank nor only a comment. Tests, testdata and the modules in contrib
// and tools are left out.
//
//	go -C tools run ./lines            # the checkout that tools is in
//	go -C tools run ./lines -by-folder # one row for each top-level folder, too
//
// It asks git which files there are, and reads them in the working tree.
package main

import (
	"flag"
	"fmt"
	"go/scanner"
	"go/token"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	log.SetFlags(0)
	log.SetPrefix("lines: ")
	byFolder := flag.Bool("by-folder", false, "print a row for each top-level folder")
	root := flag.String("root", "..", "the checkout to count")
	flag.Parse()

	out, err := exec.Command("git", "-C", *root, "ls-files", "-z", "*.go").Output()
	if err != nil {
		log.Fatalf("git ls-files in %s: %v", *root, err)
	}
	total, folders := 0, map[string]int{}
	for name := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		if name == "" || !counts(name) {
			continue
		}
		src, err := os.ReadFile(filepath.Join(*root, name))
		if err != nil {
			log.Fatal(err)
		}
		n := codeLines(src)
		total += n
		folder, _, _ := strings.Cut(name, "/")
		folders[folder] += n
	}
	if *byFolder {
		names := make([]string, 0, len(folders))
		for folder := range folders {
			names = append(names, folder)
		}
		slices.Sort(names)
		for _, folder := range names {
			fmt.Printf("%7d %s\n", folders[folder], folder)
		}
	}
	fmt.Printf("%7d total\n", total)
}

// counts reports whether a file is the main module's own code.
func counts(name string) bool {
	if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "contrib/") || strings.HasPrefix(name, "tools/") {
		return false
	}
	return !strings.HasPrefix(name, "testdata/") && !strings.Contains(name, "/testdata/")
}

// codeLines returns the number of lines that a token other than a comment touches. A
// raw string counts with each of its lines that is not blank.
func codeLines(src []byte) int {
	fset := token.NewFileSet()
	file := fset.AddFile("", fset.Base(), len(src))
	var s scanner.Scanner
	s.Init(file, src, nil, 0)
	lines := map[int]struct{}{}
	for {
		pos, tok, lit := s.Scan()
		if tok == token.EOF {
			return len(lines)
		}
		if tok == token.SEMICOLON && lit == "\n" {
			continue
		}
		first := file.Line(pos)
		for i, part := range strings.Split(lit, "\n") {
			if i == 0 || strings.TrimSpace(part) != "" {
				lines[first+i] = struct{}{}
			}
		}
	}
}

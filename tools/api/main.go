package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"golang.org/x/exp/apidiff"
)

const modulePath = "github.com/agent-troupe/troupe"

func main() {
	log.SetFlags(0)
	log.SetPrefix("api: ")
	record := flag.Bool("record", false, "write the record instead of comparing with it")
	root := flag.String("root", "", "the checkout (default: the one that holds the working directory)")
	flag.Parse()
	dir, err := checkout(*root)
	if err != nil {
		log.Fatal(err)
	}
	problems, err := run(dir, *record)
	if err != nil {
		log.Fatal(err)
	}
	for _, p := range problems {
		fmt.Println(p)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

// checkout is the directory of the main module.
func checkout(root string) (string, error) {
	if root != "" {
		return root, nil
	}
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, stabilityFile)); err == nil {
			return at, nil
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no folder above %s has %s; give -root", dir, stabilityFile)
		}
	}
}

const (
	stabilityFile = "docs/stability.md"
	changelogFile = "CHANGELOG.md"
	recordFile    = "tools/api/recorded.zip"
)

func run(root string, record bool) ([]string, error) {
	page, err := os.ReadFile(filepath.Join(root, stabilityFile))
	if err != nil {
		return nil, err
	}
	promised := promises(string(page))
	if len(promised) == 0 {
		return nil, fmt.Errorf("%s calls no package stable", stabilityFile)
	}
	now, err := load(root, promised)
	if err != nil {
		return nil, err
	}
	at := filepath.Join(root, recordFile)
	if record {
		return nil, write(at, now)
	}
	old, err := read(at)
	if err != nil {
		return nil, fmt.Errorf("%w; go -C tools run ./api -record makes a record", err)
	}
	changelog, err := os.ReadFile(filepath.Join(root, changelogFile))
	if err != nil {
		return nil, err
	}
	problems := unnamed(changes(old, now), unreleased(string(changelog)))
	return append(problems, strangers(now, promised)...), nil
}

// change is an incompatible change. symbol is how CHANGELOG.md names it.
type change struct{ symbol, message string }

// changes are the incompatible changes from one set of packages to another.
func changes(old, now packageSet) (all []change) {
	for _, path := range old.paths() {
		next := now[path]
		if next == nil {
			all = append(all, change{path, "the package is gone, or docs/stability.md does not call it stable any more"})
			continue
		}
		for _, c := range apidiff.Changes(old[path], next).Changes {
			if !c.Compatible {
				all = append(all, change{symbolOf(path, c.Message), c.Message})
			}
		}
	}
	return all
}

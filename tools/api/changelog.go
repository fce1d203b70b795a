package main

import (
	"fmt"
	"regexp"
	"strings"
)

// promises lists the packages that a page calls stable, also those of contrib, by their paths below
// the main module.
func promises(page string) (paths []string) {
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| stable \\|").FindAllStringSubmatch(page, -1) {
		paths = append(paths, row[1])
	}
	return paths
}

// unreleased is the section of a changelog about the next release.
func unreleased(changelog string) string {
	_, section, _ := strings.Cut(changelog, "\n## [Unreleased]\n")
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}

// symbolOf is the name of what a message of apidiff is about: that of "(*T).M: removed" in
// package fleet is fleet.T.M. A type of another package keeps the path of that.
func symbolOf(path, message string) string {
	name := regexp.MustCompile(`^[(*]*([\w./-]+)\)?((?:\.\w+)*)`).FindStringSubmatch(message)
	if name == nil {
		return path
	}
	if other, ours := strings.CutPrefix(name[1], modulePath+"/"); ours {
		return other + name[2]
	}
	return path + "." + name[1] + name[2]
}

// unnamed says which changes the section of the changelog does not name.
func unnamed(all []change, section string) (problems []string) {
	for _, c := range all {
		if !names(section, c.symbol) {
			problems = append(problems, fmt.Sprintf("%s: %s\n\tan incompatible change: name `%s` in %s under Unreleased, or, as long as nothing was released, run go -C tools run ./api -record",
				c.symbol, c.message, c.symbol, changelogFile))
		}
	}
	return problems
}

// names reports whether the section names the symbol or what it is a part of, in backquotes.
func names(section, symbol string) bool {
	for {
		if strings.Contains(section, "`"+symbol+"`") {
			return true
		}
		last := strings.LastIndexByte(symbol, '.')
		if last < 0 {
			return false
		}
		symbol = symbol[:last]
	}
}

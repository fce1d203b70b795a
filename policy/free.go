package policy

import (
	"slices"
	"strings"
)

// needsNoRule reports whether a command beside one that a rule allows needs none: it
// prints, tests or waits, moves to another of the policy's directories, or filters what
// goes through it. The files that a filter reads in its words, Read rules have to allow.
func (d *decision) needsNoRule(c *command, all *script) bool {
	if len(c.known) < len(c.words) || c.outside != "" || c.guarded != "" || !c.words[0].bare || !plain(c.known[0]) || !d.spend(64*len(c.words)) {
		return false
	}
	words := c.known
	if slices.ContainsFunc(c.words, func(w word) bool { return w.veiled }) {
		return false
	}
	if words[0] == "xargs" {
		return d.filtersFiles(words)
	}
	u := programs()[words[0]]
	switch {
	case words[0] == "cd":
		if len(words) != 2 || isOption(words[1]) || words[1] == "" || !d.within(c.here, words[1]) {
			return false
		}
		to, _ := d.places.absolute(c.here, words[1])
		return d.isCwd(to) || !all.writes() // what it writes would count from there
	case u.is("noop"):
		return sure(u, words) && (&reading{words: words, said: 1}).wayOut() == ""
	case !u.is("filter"), !sure(u, words), (&reading{words: words, said: 1}).wayOut() != "":
		return false
	}
	f := &form{words: words, name: words[0], family: words[0]}
	return !slices.ContainsFunc(f.paths(u), func(file string) bool { return file != "-" && !d.mayRead(c.here, file) })
}

// filtersFiles reports whether xargs does no more than to print its input, or to have a
// filter read files, and a rule allows all of them to be read.
func (d *decision) filtersFiles(words []string) bool {
	at := 1
	for at < len(words) && isOption(words[at]) {
		switch w := words[at]; {
		case w == "-n" || w == "-s" || w == "-P" || w == "-L":
			if at++; at == len(words) || !number(words[at]) {
				return false
			}
		case strings.Trim(w, "-0rtx") != "":
			return false
		}
		at++
	}
	if at == len(words) || !sure(programs()[words[at]], words[at:]) {
		return false
	}
	switch words[at] {
	case "echo", "printf":
		return (&reading{words: words[at:], said: 1}).wayOut() == ""
	case "grep", "egrep", "fgrep", "wc", "head", "tail":
		return slices.ContainsFunc(d.allow, func(r rule) bool { return r.tool == "Read" && r.spec == nil })
	}
	return false
}

// mayRead reports whether a rule allows a file to be read, by each of its names.
func (d *decision) mayRead(here, file string) bool {
	return d.coveredFile(here, file, func(r *rule) bool { return r.tool == "Read" })
}

// mayEdit is mayRead for a file that is written, which only a rule with its path allows.
func (d *decision) mayEdit(here, file string) bool {
	return !d.guardedName(here, file) && d.coveredFile(here, file, func(r *rule) bool { return r.tool == "Edit" && r.spec != nil })
}

func (d *decision) coveredFile(here, file string, about func(*rule) bool) bool {
	clean, ok := d.places.absolute(here, file)
	if !ok || !d.within(here, file) {
		return false
	}
	names, ok := d.names(clean)
	return ok && !slices.ContainsFunc(names, func(name string) bool {
		f := newFile(name, false)
		return f.odd != "" || slices.ContainsFunc(f.file, oddName.MatchString) || !slices.ContainsFunc(d.allow, func(r rule) bool {
			spec, is := r.spec.(*pathSpec)
			return about(&r) && (r.spec == nil || is && spec.exact.fits(f.file, d.work))
		})
	})
}

// mayEditAll reports whether rules allow the files that a command edits in place.
func (d *decision) mayEditAll(c *command) bool {
	texts, why := c.plain()
	if why != "" || !edits(texts) {
		return why == ""
	}
	f := &form{words: texts, name: programName(texts[0]), family: familyName(programName(texts[0]))}
	if slices.ContainsFunc(c.words, func(w word) bool { return !w.known }) {
		return false
	}
	return !slices.ContainsFunc(f.paths(program(texts[0])), func(file string) bool { return !d.mayEdit(c.here, file) })
}

// writes reports whether the script has a program that writes the files in its words.
func (s *script) writes() bool {
	return slices.ContainsFunc(s.commands, func(c *command) bool {
		return slices.ContainsFunc(c.forms, func(f form) bool { return program(f.name).is("writes") })
	})
}

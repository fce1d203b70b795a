package policy

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"
)

//go:embed programs.txt
var programsTable string

//go:embed aliases.txt
var aliasesTable string

// programs is programs.txt, by the names of programs.
var programs = sync.OnceValue(func() map[string]*usage { return must(readPrograms(programsTable)) }) //nolint:gochecknoglobals // made once, then only read

// aliases is aliases.txt.
var aliases = sync.OnceValue(func() []section { return must(sections(aliasesTable)) }) //nolint:gochecknoglobals // made once, then only read

// must is for the tables of this package, which a test reads.
func must[T any](table T, err error) T {
	if err != nil {
		panic("policy: " + err.Error())
	}
	return table
}

// section is a part of a table.
type section struct {
	head       [][]string // words; each is one of these names
	attributes []attribute
}

type attribute struct {
	name   string
	values []string
}

// sections reads a table. programs.txt says what it looks like.
func sections(table string) ([]section, error) {
	var all []section
	for i, line := range strings.Split(table, "\n") {
		head, isHead := strings.CutPrefix(line, "[")
		head, closed := strings.CutSuffix(head, "]")
		name, values, isAttribute := strings.Cut(line, ":")
		switch {
		case line == "" || line[0] == '#':
			continue
		case isHead && closed && head != "":
			var s section
			for _, names := range strings.Fields(head) {
				s.head = append(s.head, strings.Split(names, "|"))
			}
			all = append(all, s)
			continue
		case len(all) == 0:
		case line[0] == '\t' && len(all[len(all)-1].attributes) > 0:
			last := &all[len(all)-1].attributes[len(all[len(all)-1].attributes)-1]
			last.values = append(last.values, strings.Fields(line)...)
			continue
		case isAttribute && line[0] != '[':
			s := &all[len(all)-1]
			s.attributes = append(s.attributes, attribute{name, strings.Fields(values)})
			continue
		}
		return nil, fmt.Errorf("line %d of a table is neither a [head], nor an attribute: value, nor a comment: %q", i+1, line)
	}
	return all, nil
}

// readPrograms reads programs.txt.
func readPrograms(table string) (map[string]*usage, error) {
	all, err := sections(table)
	if err != nil {
		return nil, err
	}
	root := &usage{}
	for _, s := range all {
		var u usage
		for _, a := range s.attributes {
			if err := u.set(a); err != nil {
				return nil, fmt.Errorf("%v: %w", s.head, err)
			}
		}
		at := []*usage{root}
		for _, names := range s.head {
			at = inside(at, names)
		}
		for _, node := range at {
			node.options, node.operands, node.traits, node.sure = u.options, u.operands, u.traits, u.sure
		}
	}
	return root.inner, nil
}

// inside are the sections of names below other sections. It makes those that are not
// there yet.
func inside(above []*usage, names []string) []*usage {
	var all []*usage
	for _, u := range above {
		if u.inner == nil {
			u.inner = map[string]*usage{}
		}
		for _, name := range names {
			if u.inner[name] == nil {
				u.inner[name] = &usage{}
			}
			all = append(all, u.inner[name])
		}
	}
	return all
}

// set takes an attribute of programs.txt.
func (u *usage) set(a attribute) error {
	switch a.name {
	case "is":
		u.traits = append(u.traits, a.values...)
		return known(a, "adds", "any", "checks", "code", "edits", "execs", "files", "filter", "globs", "here", "lang", "local", "loose", "more", "moves",
			"named", "nested", "noop", "paths", "pattern", "prints", "reads", "runs", "scripted", "sh", "spelled", "word", "writes")
	case "operands":
		u.operands = a.values
		for _, kind := range a.values {
			switch kind {
			case "run", "tool", "module":
				u.traits = append(u.traits, "runs")
			case "script":
				u.traits = append(u.traits, "script")
			}
		}
		return known(a, "*", "plain", "value", "arg", "below", "package", "source", "fetched", "repo", "peer", "said", "script", "run", "shell", "tool",
			"module", "sedscript", "awkscript", "bundle", "rest")
	case "options":
		return u.allow(a, harmless)
	case "run-options":
		return u.allow(a, runsSomething)
	case "write-options":
		return u.allow(a, writesFile)
	case "print-options":
		return u.allow(a, saysOutput)
	case "script-options":
		return u.allow(a, givesScript)
	case "sure-options":
		u.sure = map[string]string{}
		for _, text := range a.values {
			name := strings.TrimRight(text, "=?#")
			u.sure[name] = text[len(name):]
		}
		return nil
	}
	return fmt.Errorf("there is no attribute %q", a.name)
}

func known(a attribute, values ...string) error {
	for _, v := range a.values {
		if !slices.Contains(values, v) {
			return fmt.Errorf("%s has no value %q", a.name, v)
		}
	}
	return nil
}

// allow takes options that have the same effect.
func (u *usage) allow(a attribute, e effect) error {
	if u.options == nil {
		u.options = map[string]option{}
	}
	for _, text := range a.values {
		name := strings.TrimRight(text, "=?")
		if _, twice := u.options[name]; twice || name == "" || name[0] != '-' || strings.Contains(name, "=") || len(text) > len(name)+1 {
			return fmt.Errorf("%s: %q is there twice, or no option", a.name, text)
		}
		u.options[name] = option{effect: e, value: text[len(name):]}
	}
	return nil
}

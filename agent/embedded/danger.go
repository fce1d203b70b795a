package embedded

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// critical says why a command is asked about in every mode: it removes the root, a directory
// in it, the home directory, the session's directory, or one above it. "": it does not, as far
// as can be seen. A word whose value cannot be seen counts as the worst value that it may have, unless
// it may have any.
func (h *hands) critical(command string) string {
	d := &danger{h: h, dirs: []string{h.dir()}, values: map[string][]string{}, left: maxDanger}
	d.script(command, 0)
	if d.fed {
		for _, w := range slices.Clone(d.words) {
			if strings.ContainsAny(w, " \t\n;$&|") && d.found == "" {
				d.script(w, 1)
			}
		}
	}
	return d.found
}

// danger is a search for removals in a script.
type danger struct {
	h      *hands
	dirs   []string            // in which a command may run
	values map[string][]string // that a variable may have
	words  []string            // all words of the script that are known
	doubt  bool                // a value of the word was not known
	feeds  bool                // a pipe or a redirection feeds a command
	fed    bool                // a shell may read any word of the script as a command
	found  string
	left   int // of the work that it may do
}

const (
	maxChoices = 32      // values of a word, and directories
	maxScripts = 4       // scripts in scripts
	maxDanger  = 1 << 18 // steps of a search
	pathSteps  = 64      // for a path whose links are followed, and for a script
)

// spend takes steps from the work that may be done, and reports whether there were enough. If
// there were not, the command is one that cannot be looked at, and asked about.
func (d *danger) spend(steps int) bool {
	if d.left -= steps; d.left < 0 && d.found == "" {
		d.found = "This command is too long to be checked for what it removes"
	}
	return d.left >= 0
}

// removes reports whether a program, by a path or a name, removes files.
func removes(program string) bool {
	switch filepath.Base(program) {
	case "rm", "rmdir", "unlink", "shred":
		return true
	}
	return false
}

func (d *danger) script(text string, depth int) {
	if len(text) <= maxCommand && !d.spend(pathSteps+2*len(text)) {
		return
	}
	file, err := parsed(text)
	if err != nil {
		d.unread(text)
		return
	}
	syntax.Walk(file, func(n syntax.Node) bool { // first: a loop may use later what it sets
		switch n := n.(type) {
		case *syntax.Assign:
			if n.Name != nil && n.Value != nil {
				d.set(n.Name.Value, d.eval(n.Value))
			}
		case *syntax.WordIter:
			for _, w := range n.Items {
				d.set(n.Name.Value, d.eval(w))
			}
		case *syntax.BinaryCmd:
			d.feeds = d.feeds || n.Op == syntax.Pipe || n.Op == syntax.PipeAll
		case *syntax.Redirect:
			d.feeds = d.feeds || n.Hdoc != nil || n.Op == syntax.WordHdoc
		case *syntax.Word:
			d.words = append(d.words, d.eval(n)...)
		}
		return true
	})
	syntax.Walk(file, func(n syntax.Node) bool {
		if c, ok := n.(*syntax.CallExpr); ok && len(c.Args) > 0 && d.found == "" {
			d.call(c, depth)
		}
		return true
	})
}

// separates reports whether a character ends a word in any reading of a script.
func separates(r rune) bool { return strings.ContainsRune(" \t\n;&|()<>`\"'", r) }

// unread looks at a text that is not a script, word by word.
func (d *danger) unread(text string) {
	remover := ""
	for w := range strings.FieldsFuncSeq(text, separates) {
		if d.found != "" {
			return
		}
		if removes(w) {
			remover = filepath.Base(w)
		} else if remover != "" {
			d.remove(remover, w, true)
		}
	}
	if d.found == "" && slices.ContainsFunc([]string{"$(", "${", "(("}, func(begin string) bool { return strings.Contains(text, begin) }) {
		d.found = unsure
	}
}

// unsure is said of a script that cannot be parsed and in which an expansion begins, as observed on
// Claude Code 2.1.329: hosts and tests read these words.
const unsure = "Claude Code can't be sure it read this command the way the shell will, so it can't rule out a dangerous removal. Read the command, and don't go ahead if you can't tell what it does."

func (d *danger) set(name string, values []string) {
	if len(d.values[name]) < maxChoices {
		d.values[name] = append(d.values[name], values...)
	}
}

var recursive = regexp.MustCompile(`^(-[a-zA-Z]*[rRfF][a-zA-Z]*|--recursive|--force)$`)

// move notes the directories to which cd may lead.
func (d *danger) move(args [][]string) {
	if len(args) == 0 {
		args = [][]string{{"~"}}
	}
	for _, w := range args {
		for _, text := range w {
			if strings.HasPrefix(text, "-") || len(d.dirs) >= maxChoices {
				continue
			}
			for _, dir := range slices.Clone(d.dirs) {
				d.dirs = append(d.dirs, d.path(dir, text))
			}
		}
	}
}

// find looks at the places from which find removes. With a test such as -name it removes a
// part of what is there.
func (d *danger) find(args [][]string) {
	if !slices.ContainsFunc(args, func(w []string) bool { return w[0] == "-delete" || namesRemover(w[0]) }) {
		return
	}
	start := slices.IndexFunc(args, func(w []string) bool { // behind options such as -L and -O3
		return !strings.HasPrefix(w[0], "-") || len(w[0]) > 2 && !strings.HasPrefix(w[0], "-O")
	})
	args = args[max(start, 0):]
	end := slices.IndexFunc(args, func(w []string) bool { return strings.HasPrefix(w[0], "-") || w[0] == "(" || w[0] == "!" })
	places, part, command := args[:max(end, 0)], false, false
	for _, w := range args[max(end, 0):] {
		switch word := w[0]; {
		case command:
			command = word != ";" && word != "+"
		case strings.HasPrefix(word, "-exec"), strings.HasPrefix(word, "-ok"):
			command = true
		case strings.HasPrefix(word, "-"):
			part = part || !slices.Contains(strings.Fields(findsAll), word)
		}
	}
	if len(places) == 0 {
		places = [][]string{{"."}}
	}
	for _, w := range places {
		for _, text := range w {
			if part {
				d.removePart(text)
			} else {
				d.remove("find", text, true)
			}
		}
	}
}

// findsAll are the words of find that leave out nothing.
const findsAll = "-delete -depth -d -mindepth -maxdepth -type -print -print0 -ls -xdev -mount"

// removePart looks at a place from which find removes a part.
func (d *danger) removePart(text string) {
	for _, dir := range d.dirs {
		if text == "" || d.found != "" || !d.spend(pathSteps) {
			return
		}
		path := d.path(dir, text)
		at, err := resolve(path)
		if err != nil {
			at = path
		}
		for _, path := range []string{path, at} {
			if path == "/" || path == d.h.home() {
				d.found = "Dangerous find operation on critical path: " + path
			}
		}
	}
}

func (d *danger) path(dir, text string) string {
	h := d.h
	switch home := h.home(); {
	case text == "~+" || strings.HasPrefix(text, "~+/"):
		text = "." + text[2:]
	case home != "" && (text == "~"+filepath.Base(home) || strings.HasPrefix(text, "~"+filepath.Base(home)+"/")):
		text = home + strings.TrimPrefix(text, "~"+filepath.Base(home))
	case text == "~root" || strings.HasPrefix(text, "~root/"):
		text = "/root" + strings.TrimPrefix(text, "~root")
	case strings.HasPrefix(text, "~"):
		return h.path(text)
	}
	if !filepath.IsAbs(text) {
		text = filepath.Join(dir, text)
	}
	return filepath.Clean(text)
}

// remove looks at a word of a removal. sure says that all of it is known.
func (d *danger) remove(name, text string, sure bool) {
	if d.found != "" || text == "" || strings.HasPrefix(text, "-") {
		return
	}
	for _, dir := range d.dirs {
		if !d.spend(pathSteps) {
			return
		}
		path := d.path(dir, text)
		where, pattern := path, ""
		if i := strings.IndexAny(path, "*?["); i >= 0 {
			where, pattern = filepath.Clean(path[:strings.LastIndexByte(path[:i], '/')+1]), path
			if whole.MatchString(strings.TrimPrefix(path, strings.TrimSuffix(where, "/")+"/")) {
				pattern = "" // all of it
			}
		}
		if why := d.why(name, where, pattern, sure); why != "" {
			d.found = why
			return
		}
		if pattern != "" {
			continue
		}
		if at, err := resolve(where); err == nil && at != where {
			if why := d.why(name, at, "", sure); why != "" {
				d.found = why
				return
			}
		}
	}
}

// whole is a pattern that means all files of a directory.
var whole = regexp.MustCompile(`^[*?.!\[\]^-]*\*[*?.]*$|^\[[^\]]*\]\*$|^\.?\[[^\]]*\]\*$`)

// why says why it is dangerous to remove a path, or, with a pattern, what that names.
func (d *danger) why(name, path, pattern string, sure bool) string {
	h := d.h
	is := func(dir string) bool {
		if dir == "" {
			return false
		}
		if pattern == "" {
			return path == dir
		}
		fits, err := filepath.Match(pattern, dir)
		return err == nil && fits
	}
	above := func(dir string) bool {
		for dir != "" && dir != "/" {
			if is(dir) {
				return true
			}
			dir = filepath.Dir(dir)
		}
		return false
	}
	shown := path
	if pattern != "" {
		shown = pattern
	}
	switch {
	case is("/"), is(h.home()), path != h.real && above(h.home()):
		return "Dangerous " + name + " operation on critical path: " + shown
	case above(h.real), above(h.root), above(h.dir()), slices.ContainsFunc(h.directories(), above):
		return "Dangerous " + name + " operation on working directory or its ancestor: " + shown
	case sure && pattern == "" && filepath.Dir(path) == "/":
		return "Dangerous " + name + " operation on critical path: " + shown
	}
	return ""
}

// eval are the values that a word may have. An unknown value is the empty text.
func (d *danger) eval(w *syntax.Word) []string {
	values := []string{""}
	add := func(more []string) {
		var all []string
		for _, v := range values {
			for _, m := range more {
				if len(all) < maxChoices {
					all = append(all, v+m)
				}
			}
		}
		values = all
	}
	var parts func(list []syntax.WordPart)
	parts = func(list []syntax.WordPart) {
		for _, p := range list {
			if !d.spend(len(values)) {
				return
			}
			switch p := p.(type) {
			case *syntax.Lit:
				add(braces(withoutBackslashes(p.Value)))
			case *syntax.SglQuoted:
				add([]string{p.Value})
			case *syntax.DblQuoted:
				parts(p.Parts)
			case *syntax.ParamExp:
				add(d.value(p))
			default:
				d.doubt = true
				add([]string{""})
			}
		}
	}
	parts(w.Parts)
	return values
}

// value are the values that an expansion may have.
func (d *danger) value(p *syntax.ParamExp) []string {
	if p.Param == nil {
		d.doubt = true
		return []string{""}
	}
	values := slices.Clone(d.values[p.Param.Value])
	switch p.Param.Value {
	case "HOME":
		values = append(values, d.h.home())
	case "IFS":
		values = append(values, " ")
	case "PWD":
		values = append(values, d.h.dir())
	default:
		known := d.h.getenv(p.Param.Value)
		d.doubt = d.doubt || known == ""
		values = append(values, known)
	}
	if p.Exp != nil && p.Exp.Word != nil { // ${X:-/}
		values = append(values, d.eval(p.Exp.Word)...)
	}
	slices.Sort(values)
	return slices.Compact(values)
}

package policy

import (
	"path"
	"slices"
	"strings"
)

// outside is a path in the words of a command that leads, or may lead, out of the
// directories of the rules, or "". Only programs that are known to work on the files in
// their words are looked at, also behind programs that run others. Like Claude Code
// 2.1.329 (observed), it takes no account of what a rule says about the command.
func (d *decision) outside(c *command) string {
	texts, odd := c.plain()
	if d.places.cwd == "" || odd != "" {
		return ""
	}
	forms := c.forms
	if len(c.known) < len(c.words) {
		for i, w := range c.words {
			if !w.glob {
				continue
			}
			before := texts[i][:strings.IndexAny(texts[i], "*?[")]
			if slices.Contains(strings.Split(texts[i][len(before):], "/"), "..") {
				return texts[i]
			}
			texts[i] = before[:strings.LastIndexByte(before, '/')+1] + "x"
		}
		forms = d.forms(texts)
	}
	for i := range forms {
		f := &forms[i]
		u := program(f.name)
		if !u.is("files", "reads", "paths") && !(f.family == "git" && slices.Contains(f.words, "--no-index")) {
			continue
		}
		if u.is("moves") && slices.ContainsFunc(f.words[1:], func(w string) bool { return strings.HasPrefix(w, "-") }) {
			return f.words[0] + " with options" // which may say where to
		}
		for _, w := range f.paths(u) {
			if !d.within(c.here, w) || strings.ContainsAny(w, "$`") && slices.Contains([]string{"cat", "head", "tail", "wc", "ls"}, f.name) {
				return w // the agent takes the latter for an expansion
			}
		}
	}
	return ""
}

// paths are the words of a command that may be paths, and those in its options.
func (f *form) paths(u *usage) []string {
	var all []string
	skip := 0 // words that are not paths
	switch {
	case f.family == "tr":
		skip = 2
	case u.is("pattern") && !slices.ContainsFunc(f.words, givesPattern):
		skip = 1
	}
	operands := 0
	for i, w := range f.words[1:] {
		if f.words[i] == "-e" && u.is("pattern") {
			continue // a pattern, or a script
		}
		if strings.HasPrefix(w, "-") && w != "-" {
			if value := attached(w); value != "" && value != "/" { // cut -d/
				all = append(all, value)
			}
			continue
		}
		if operands++; operands <= skip {
			continue
		}
		all = append(all, w)
		if _, value, found := strings.Cut(w, "="); found { // dd of=x
			all = append(all, value)
		}
	}
	if operands == 0 && (f.name == "cd" || f.name == "pushd" || f.name == "chdir") {
		all = append(all, "~")
	}
	return all
}

// givesPattern reports whether a word may be an option with the pattern or the script,
// so that the first word that is not an option is a path.
func givesPattern(w string) bool {
	if strings.HasPrefix(w, "--") {
		return strings.ContainsAny(w[:min(3, len(w))], "efr")
	}
	return strings.HasPrefix(w, "-") && strings.ContainsAny(w, "ef")
}

// attached is what may be a path in the word of an option.
func attached(w string) string {
	if strings.HasPrefix(w, "--") {
		_, value, _ := strings.Cut(w, "=")
		return value
	}
	at := len(w)
	for _, mark := range []string{"/", ".."} {
		if i := strings.Index(w, mark); i >= 0 {
			at = min(at, i)
		}
	}
	return w[at:]
}

// within reports whether a path surely is in the directories of the rules, by
// each of its names. One that goes up behind a segment, or behind cd, may follow
// a link there.
func (d *decision) within(here, text string) bool {
	segments := strings.Split(strings.Trim(text, "/"), "/")
	down := slices.IndexFunc(segments, func(s string) bool { return s != ".." && s != "." && s != "" })
	relative := !path.IsAbs(text) && !strings.HasPrefix(text, "~")
	up := slices.Contains(segments, "..")
	if down >= 0 && slices.Contains(segments[down:], "..") || relative && up && here != d.dir {
		return false
	}
	if relative && here == "" {
		return !up
	}
	clean, ok := d.places.absolute(here, text)
	if !ok {
		return false
	}
	names, ok := d.names(clean)
	return ok && !slices.ContainsFunc(names, func(name string) bool { return !d.below(name) })
}

// below reports whether a clean path is one of the directories of the rules, or
// in one, by any of the directory's names.
func (d *decision) below(name string) bool {
	if d.roots == nil {
		for _, dir := range append([]string{d.places.cwd}, d.places.directories...) {
			names, _ := d.names(path.Clean(dir))
			d.roots = append(d.roots, names...)
		}
	}
	return slices.ContainsFunc(d.roots, func(root string) bool {
		return root == "/" || name == root || strings.HasPrefix(name, root+"/")
	})
}

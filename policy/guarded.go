package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// guardedDirectories and guardedFiles have a say in what programs run later: of
// git, of editors, of shells, of package managers, and of the agents. Claude Code
// 2.1.329 asks about a write below or to one of them, whatever a rule says
// (observed); so does a policy. A name counts at any depth.
const (
	guardedDirectories = " .git .vscode .idea .claude .husky .cargo .devcontainer .yarn .mvn "
	guardedFiles       = " .gitconfig .gitmodules .bashrc .bash_profile .zshrc .zprofile .profile .zshenv .zlogin .zlogout .bash_login " +
		".bash_aliases .bash_logout .envrc .ripgreprc .mcp.json .claude.json .npmrc .yarnrc .yarnrc.yml .pnp.cjs .pnp.loader.mjs " +
		".pnpmfile.cjs bunfig.toml .bunfig.toml .bazelrc .bazelversion .bazeliskrc .pre-commit-config.yaml lefthook.yml " +
		".lefthook.yml lefthook.yaml .lefthook.yaml gradle-wrapper.properties maven-wrapper.properties .devcontainer.json " +
		"pyrightconfig.json "
)

// oddName matches the names that Windows and file systems like its own read as
// other names: GIT~1, x., x.con, and segments of three dots or more.
var oddName = regexp.MustCompile(`(?i)~[0-9]|[^.][. ]+$|^\.{3,}$|\.(con|prn|aux|nul|com[1-9]|lpt[1-9])$`)

// guarded reports whether a path is one that no rule allows to be written.
func guarded(file string) bool {
	// Some file systems take the letters ı and ſ for i and s. ToLower does not.
	segments := strings.Split(strings.NewReplacer("ı", "i", "ſ", "s").Replace(strings.ToLower(file)), "/")
	worktree := false
	for i, s := range segments {
		next := strings.Join(segments[i+1:min(i+2, len(segments))], "")
		switch {
		case s == "" || strings.Contains(s, " "):
		case s == ".claude" && next == "worktrees" && !worktree: // where subagents work
			worktree = true
		case s == ".config" && next == "git", strings.Contains(guardedDirectories, " "+s+" "),
			next == "" && strings.Contains(guardedFiles, " "+s+" "):
			return true
		}
	}
	return slices.ContainsFunc(segments, oddName.MatchString)
}

// guarded finds what no rule allows the call to write: by a file tool, by a
// program that works on the files in its words, or by a redirection.
func (d *decision) guarded(c Call, s subject) string {
	if editsFiles(c.Tool) {
		for _, p := range s.parts {
			if guarded(p.String()) {
				return p.String()
			}
		}
	}
	if s.script == nil {
		return ""
	}
	if s.script.unread {
		return "a command that cannot be read"
	}
	for _, c := range s.script.commands {
		if c.guarded != "" {
			return c.guarded
		}
	}
	for _, p := range s.parts {
		if t, is := p.(*redirection); is && !t.read && d.guardedName(d.dir, t.text) {
			return t.text
		}
	}
	return ""
}

// guardedWord is the first word of a command that names what no rule allows it
// to write, or what it must not remove.
func (d *decision) guardedWord(c *command) string {
	for i := range c.forms {
		f := &c.forms[i]
		if !program(f.name).is("writes") {
			continue
		}
		removes := f.name == "rm" || f.name == "rmdir"
		for i, w := range c.words[len(c.known)-len(f.words)+1:] {
			if i == 0 && f.name == "sed" && w.known && sureSed([]string{"sed", w.text}) {
				continue // a script, which names no file
			}
			if removes && d.removesAll(c.here, w.text) {
				return w.text
			}
			for _, name := range strings.Split(w.text, "=") {
				if d.guardedName(c.here, name) || isOption(name) && d.guardedName(c.here, name[min(2, len(name)):]) {
					return w.text
				}
			}
		}
	}
	return ""
}

// guardedName reports whether a word names a guarded path, by any of its names.
func (d *decision) guardedName(here, text string) bool {
	if text == "" || !d.spend(8+len(text)) {
		return false
	}
	if strings.HasPrefix(text, "//") {
		return true // another computer's, to some
	}
	names := []string{text}
	if clean, ok := d.places.absolute(here, text); ok {
		more, _ := d.names(clean)
		names = append(names, more...)
	}
	return slices.ContainsFunc(names, guarded)
}

// removesAll reports whether a word of rm is a directory that the call runs in or
// below, the home directory, a directory directly below the root, or everything in one
// of these.
func (d *decision) removesAll(here, text string) bool {
	text = path.Clean(strings.ReplaceAll(text, unknownPart, "*"))
	if strings.Trim(path.Base(text), "*") == "" {
		text = path.Dir(text)
	}
	clean, ok := d.places.absolute(here, text)
	if !ok {
		return text == "." || strings.HasPrefix(text, "..")
	}
	return strings.Count(clean, "/") < 2 || slices.ContainsFunc([]string{here, d.dir, d.places.cwd, d.places.home}, func(dir string) bool {
		return dir != "" && (path.Clean(dir)+"/" == clean+"/" || strings.HasPrefix(path.Clean(dir), clean+"/"))
	})
}

package search

import (
	"bytes"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"
)

// verdict is what rules say of a path.
type verdict int

const (
	silent verdict = iota // nothing
	ignored
	wanted
)

// ignoreRule is a line of an ignore file.
type ignoreRule struct {
	*wildcard
	wants    bool // the line begins with !
	dirsOnly bool
}

// parseIgnore reads a line; nil if it has no rule.
func parseIgnore(line string) (*ignoreRule, error) {
	written := line
	if strings.HasPrefix(line, "#") {
		return nil, nil
	}
	if !strings.HasSuffix(line, `\ `) {
		line = strings.TrimRight(line, " \t\r\n\v\f")
	}
	if line == "" {
		return nil, nil
	}
	r, rooted := &ignoreRule{}, false
	if strings.HasPrefix(line, `\!`) || strings.HasPrefix(line, `\#`) {
		line = line[1:]
	} else {
		line, r.wants = strings.CutPrefix(line, "!")
		line, rooted = strings.CutPrefix(line, "/")
	}
	if strings.HasSuffix(line, "/") {
		r.dirsOnly = true
		line = strings.TrimSuffix(line[:len(line)-1], `\`)
	}
	if !rooted && !strings.Contains(line, "/") && line != "**" {
		line = "**/" + line
	}
	if strings.HasSuffix(line, "/**") {
		line += "/*" // what is in the directory, not the directory
	}
	var err error
	r.wildcard, err = parseWildcard(line, written)
	return r, err
}

// rules are lines of one source. The last that matches decides.
type rules []*ignoreRule

func (rs rules) about(rel string, dir bool) verdict {
	for i := len(rs) - 1; i >= 0; i-- {
		r := rs[i]
		if r.dirsOnly && !dir || !r.matches(rel) {
			continue
		}
		if r.wants {
			return wanted
		}
		return ignored
	}
	return silent
}

// parseRules reads an ignore file. A line that cannot be read is left out.
func parseRules(text []byte) (rs rules) {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	for line := range bytes.Lines(text) {
		if r, err := parseIgnore(strings.TrimRight(string(line), "\r\n")); err == nil && r != nil {
			rs = append(rs, r)
		}
	}
	return rs
}

// level is a directory with its ignore files.
type level struct {
	up    *level
	name  string // in the directory above
	above bool   // it is above the one that is searched
	repo  bool   // it has a .git
	size  int64  // bytes of its ignore files, and of those above

	own, plain, git, exclude rules // .rgignore, .ignore, .gitignore, .git/info/exclude
}

// maxIgnoreFile is the size up to which ignore files are read: of a directory and all above it.
const maxIgnoreFile = 1 << 20

// levelOf reads the ignore files of a directory.
func levelOf(up *level, name string, root *os.Root) *level {
	l := &level{up: up, name: name}
	if up != nil {
		l.size = up.size
	}
	read := func(name string) rules {
		info, err := root.Lstat(name)
		if err != nil || !info.Mode().IsRegular() {
			return nil
		}
		f, err := Open(root, name, info)
		if err != nil {
			return nil
		}
		defer func() { _ = f.Close() }() // it was read
		text, _ := io.ReadAll(io.LimitReader(f, maxIgnoreFile-l.size))
		l.size += int64(len(text))
		return parseRules(text)
	}
	if _, err := root.Lstat(".git"); err == nil {
		l.repo = true
		l.exclude = read(filepath.Join(".git", "info", "exclude"))
	}
	l.own, l.plain, l.git = read(".rgignore"), read(".ignore"), read(".gitignore")
	return l
}

// above reads the ignore files of the directories above dir.
func above(dir string) *level {
	up := filepath.Dir(dir)
	if up == dir {
		return nil
	}
	next := above(up)
	root, err := os.OpenRoot(up)
	if err != nil {
		return next
	}
	defer func() { _ = root.Close() }() // it was read
	l := levelOf(next, filepath.Base(up), root)
	l.above = true
	return l
}

// about is what the ignore files say of an entry of a directory. global are the user's
// rules for every repository.
func (l *level) about(name string, dir bool, global rules) verdict {
	inRepo := false
	for at := l; at != nil; at = at.up {
		inRepo = inRepo || at.repo
	}
	var own, plain, git, exclude, user verdict
	first := func(v *verdict, rs rules, rel string) {
		if *v == silent {
			*v = rs.about(rel, dir)
		}
	}
	rel, sawRepo := name, false
	for at := l; at != nil; at = at.up {
		first(&own, at.own, rel)
		first(&plain, at.plain, rel)
		if inRepo && !sawRepo {
			first(&git, at.git, rel)
			first(&exclude, at.exclude, rel)
		}
		sawRepo = sawRepo || at.repo
		rel = path.Join(at.name, rel)
	}
	if inRepo {
		first(&user, global, rel)
	}
	for _, v := range []verdict{own, plain, git, exclude, user} {
		if v != silent {
			return v
		}
	}
	return silent
}

// globalRules are the rules that a user has for every repository.
func globalRules(home, config string) rules {
	if config == "" {
		config = filepath.Join(home, ".config")
	}
	if !filepath.IsAbs(config) {
		return nil
	}
	name := filepath.Join(config, "git", "ignore")
	if info, err := os.Stat(name); err != nil || !info.Mode().IsRegular() || info.Size() > maxIgnoreFile {
		return nil
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	return parseRules(text)
}

// Open opens the file that info is about: no link, and no other file that took its place.
func Open(root *os.Root, name string, info fs.FileInfo) (*os.File, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if now, err := f.Stat(); err != nil || !os.SameFile(info, now) {
		_ = f.Close() // it is not read
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return f, nil
}

package hostgit

import (
	"context"
	"path/filepath"
	"regexp"
	"strings"
)

// Setting is a key of a git configuration with a value: section.name, or
// section.subsection.name.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// taken are the settings of a repository that are taken over, in lower case but for the
// subsection. None names a program, a file, or another repository on this machine's disk that
// git would run something in.
var taken = regexp.MustCompile(`^(core\.(autocrlf|eol|safecrlf|symlinks|filemode|ignorecase|precomposeunicode|protecthfs|protectntfs|longpaths|` +
	`sparsecheckout|sparsecheckoutcone|bigfilethreshold|trustctime|checkstat|compression)|` +
	`extensions\.(objectformat|partialclone|compatobjectformat)|(user|author|committer)\.(name|email)|` +
	`remote\.(.+\.(url|pushurl|fetch|promisor|partialclonefilter)|pushdefault)|branch\..+\.(remote|merge|pushremote)|` +
	`url\..+\.(insteadof|pushinsteadof)|push\.(default|autosetupremote|followtags)|init\.defaultbranch)$`)

// remoteURL are keys whose value is the address of a repository. Addresses such as
// ext::COMMAND name programs; git allows them in no case by default, and they are not
// taken.
var remoteURL = regexp.MustCompile(`^(remote\..+\.(url|pushurl)|url\..+\.(insteadof|pushinsteadof))$`)

func wanted(s Setting) bool {
	key := s.Key
	if first := strings.IndexByte(key, '.'); first >= 0 { // the subsection is as it was written
		last := strings.LastIndexByte(key, '.')
		key = strings.ToLower(key[:first]) + key[first:last] + strings.ToLower(key[last:])
	}
	if !taken.MatchString(key) || strings.ContainsAny(s.Key, "\n\x00") {
		return false
	}
	helper := strings.Contains(s.Value, "::") || strings.HasPrefix(s.Value, "-") || strings.HasPrefix(key, "url.") && strings.Contains(key, "::")
	return !remoteURL.MatchString(key) || !helper
}

// settings reads a file of configuration. It is only parsed: no other file is included.
func (g *Git) settings(ctx context.Context, name string) ([]Setting, error) {
	if _, err := readSmall(name); err != nil {
		return nil, nil //nolint:nilerr // there is none, or one that says nothing
	}
	out, err := g.plain(ctx, filepath.Dir(name), "config", "--file", name, "--no-includes", "--null", "--list")
	if err != nil {
		return nil, err
	}
	var all []Setting
	for entry := range strings.SplitSeq(out, "\x00") {
		key, value, given := strings.Cut(entry, "\n")
		if !given && key != "" {
			value = "true" // a key without a value
		}
		if s := (Setting{key, value}); wanted(s) {
			all = append(all, s)
		}
	}
	return all, nil
}

var quoteValue = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`) //nolint:gochecknoglobals // only read

// write adds a setting to the text of a configuration.
func (s Setting) write(b *strings.Builder) {
	first, last := strings.IndexByte(s.Key, '.'), strings.LastIndexByte(s.Key, '.')
	if first < 0 {
		return
	}
	b.WriteString("[" + s.Key[:first])
	if first < last {
		sub := strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s.Key[first+1 : last])
		b.WriteString(` "` + sub + `"`)
	}
	b.WriteString("]\n\t" + s.Key[last+1:] + ` = "` + quoteValue.Replace(s.Value) + "\"\n")
}

// config is the text of the configuration of a directory of the host's own.
func (r *Repo) config(excludes string) string {
	var b strings.Builder
	version := "0"
	for _, s := range r.Config {
		if !wanted(s) { // it may have been kept in a file
			continue
		}
		if strings.HasPrefix(strings.ToLower(s.Key), "extensions.") {
			version = "1"
		}
		s.write(&b)
	}
	own := []Setting{
		{"core.repositoryformatversion", version}, {"core.bare", "false"}, {"core.logallrefupdates", "false"},
		{"core.fsmonitor", "false"}, {"core.hooksPath", nowhere}, {"core.quotePath", "false"}, {"gc.auto", "0"},
		{"maintenance.auto", "false"}, {"submodule.recurse", "false"}, {"diff.ignoreSubmodules", "all"}, {"core.untrackedCache", "false"},
	}
	if excludes != "" {
		own = append(own, Setting{"core.excludesFile", excludes})
	}
	for _, s := range own { // the last one counts
		s.write(&b)
	}
	return b.String()
}

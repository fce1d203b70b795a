package policy

import (
	"path"
	"slices"
	"strings"
)

// vocabulary is what stands in a script, in whichever of its commands.
type vocabulary struct {
	tokens  map[string]bool
	options []string // in lower case
	all     string   // the words in lower case
	from    []string // where relative paths may start; "" is the call's directory
	lost    bool     // they may start anywhere
}

func vocabularyOf(script []command) *vocabulary {
	v, all := &vocabulary{tokens: map[string]bool{}, from: []string{""}}, strings.Builder{}
	for _, c := range script {
		v.move(c)
		for i, w := range c.known() {
			for _, token := range tokens(w) {
				v.tokens[token] = true
			}
			if i == 0 {
				v.tokens[programName(w)] = true
			}
			if isOption(w) {
				v.options = append(v.options, strings.ToLower(w))
			}
			all.WriteString(strings.ToLower(w) + " ")
		}
	}
	v.all = all.String()
	return v
}

// maxDirectories bounds the directories that a script may be in.
const maxDirectories = 16

// move follows cd.
func (v *vocabulary) move(c command) {
	at := 0
	for at < len(c.words)-1 && runsArguments(c.words[at].text) {
		at++
	}
	name, words := c.words[at].text, c.known()
	if name != "cd" && name != "pushd" && name != "chdir" {
		return
	}
	to := slices.DeleteFunc(words[min(at+1, len(words)):], isOption)
	switch {
	case len(words) < len(c.words), len(to) > 1, len(to) == 1 && strings.ContainsAny(to[0][:min(1, len(to[0]))], "-+"), len(v.from) > maxDirectories/2:
		v.lost = true
	case len(to) == 0:
		v.from = append(v.from, "~")
	default:
		for _, dir := range v.from[:len(v.from):len(v.from)] {
			v.from = append(v.from, below(dir, to[0]))
		}
	}
}

// below is a path that starts in a directory.
func below(dir, file string) string {
	if dir == "" || strings.HasPrefix(file, "/") || strings.HasPrefix(file, "~") {
		return file
	}
	return path.Join(dir, file)
}

package policy

import (
	"cmp"
	"encoding/json"
	"path"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
)

// inert finds out why a rule cannot match what its author means by it; nil when nothing
// speaks against it. The mistakes that are known are named, with what to write. For any
// other rule a call is made that it has to match.
func inert(r *rule, content string, at places) *flaw {
	switch spec := r.spec.(type) {
	case *commandSpec:
		if f := inertCommand(spec, content); f != nil {
			return f
		}
	case *pathSpec:
		if f := inertPath(content, at); f != nil {
			return f
		}
	case nil:
		return nil // every call of the tool
	}
	call, ok := witness(r, content, at)
	if ok {
		r := *r
		r.Behavior = protocol.BehaviorDeny
		p := &Policy{deny: []rule{r}, places: at, paths: true}
		p.places.resolve = nil
		ok = p.Decide(call) == protocol.BehaviorDeny
	}
	if !ok {
		return &flaw{0, "cannot match any call", "write it without the characters that no call has"}
	}
	return nil
}

// inertCommand finds what is read as a literal word, and is not meant so.
func inertCommand(s *commandSpec, content string) *flaw {
	prefix, isPrefix := strings.CutSuffix(content, ":*")
	for i, w := range s.words {
		for _, piece := range w[:len(w)-1] {
			if strings.HasSuffix(piece, ":") && !strings.HasSuffix(piece, "::") {
				return &flaw{max(strings.Index(content, ":*"), 0), "has :* before its end, where it is read as a colon and more", "write * in its place: " + strings.Join(strings.Fields(strings.ReplaceAll(content, ":*", " *")), " ")}
			}
		}
		if len(w) == 1 && i == len(s.words)-1 && !s.open && strings.HasSuffix(w[0], ":*") {
			return &flaw{max(strings.Index(content, w[0]), 0), "has its wildcard in quotes, where it is a star", "write the words without quotes: git push *"}
		}
	}
	if len(s.words) == 0 {
		return nil
	}
	if first := s.words[0]; strings.ContainsAny(strings.Join(first, ""), " \t\n") {
		return &flaw{0, "has quotes around more than one word, which make it the name of one program", "write the words without quotes: git push *"}
	}
	if isPrefix && len(s.words) > 1 && prefix != "" && strings.ContainsAny(prefix[len(prefix)-1:], "-_=/.,") {
		return &flaw{len(prefix) - 1, "ends within a word, and :* stands for whole words", "write " + prefix + "*"}
	}
	return nil
}

// outsideRoots are the directories that a path of the file system begins with, and one of
// a project hardly does.
const outsideRoots = " home Users root etc proc private Volumes "

// inertPath finds what gitignore patterns do not have, and paths from the wrong root.
func inertPath(content string, at places) *flaw {
	bad := func(offset int, what, fix string) *flaw { return &flaw{offset, what, fix} }
	if strings.HasPrefix(content, "/") && !strings.HasPrefix(content, "//") {
		first, _, more := strings.Cut(content[1:], "/")
		for _, dir := range append([]string{at.root, at.cwd, at.home}, at.directories...) {
			if dir != "" && dir != "/" && (content == dir || strings.HasPrefix(content, path.Clean(dir)+"/")) {
				return bad(0, "begins with one slash, which is "+at.root, "write it as /"+content+" for the root of the file system")
			}
		}
		if more && strings.Contains(outsideRoots, " "+first+" ") {
			return bad(0, "begins with one slash, which is "+at.root, "write it as /"+content+" for the root of the file system, or ."+content+" for the project")
		}
	}
	if i := strings.IndexAny(content, `"'`); i >= 0 && strings.Count(content, content[i:i+1])%2 == 0 {
		return bad(i, "has quotes, which are part of the names here", "leave them out; a pattern may hold spaces")
	}
	offset := 0
	for segment := range strings.SplitSeq(content, "/") {
		if segment != strings.TrimSpace(segment) {
			return bad(offset, "has a space at the edge of a name", "leave it out")
		}
		if open := strings.IndexByte(segment, '{'); open >= 0 && strings.Contains(content[offset+open:], "}") && strings.ContainsAny(content[offset+open:], ",") {
			return bad(offset+open, "has braces, which are part of the names here", "write a rule for each of the patterns")
		}
		for i := range len(segment) - 1 {
			if strings.IndexByte("!@+?*", segment[i]) >= 0 && segment[i+1] == '(' && (i == 0 || segment[i-1] != '\\') && strings.Contains(segment[i:], ")") {
				return bad(offset+i, "has a pattern of a shell, which is part of the names here", "write rules for the names, or an allow rule beside a wider one")
			}
		}
		if strings.HasPrefix(segment, "$") {
			return bad(offset, "has a variable, which is not expanded here", "write ~/ for the home directory, // for the root of the file system")
		}
		offset += len(segment) + 1
	}
	return nil
}

// witness is a call that a rule has to match.
func witness(r *rule, content string, at places) (c Call, ok bool) {
	c.Tool, c.Cwd = r.tool, cmp.Or(at.cwd, "/")
	in := map[string]string{}
	switch spec := r.spec.(type) {
	case *commandSpec:
		words := make([]string, 0, len(spec.words)+1)
		for _, w := range spec.words {
			words = append(words, "'"+strings.ReplaceAll(strings.Join(w, "x"), "'", `'\''`)+"'")
		}
		if len(words) == 0 {
			words = []string{"x"}
		}
		in["command"] = strings.Join(words, " ")
	case *pathSpec:
		names := slices.Clone(spec.exact.bases[0])
		for _, s := range spec.exact.segments {
			name, found := s.example()
			if !found {
				return c, false
			}
			names = append(names, name)
		}
		file := "/" + strings.Join(names, "/")
		if strings.HasSuffix(content, "/") {
			file += "/x" // all that is in it
		}
		in[map[bool]string{true: "notebook_path", false: "file_path"}[strings.HasPrefix(r.tool, "Notebook")]] = file
		if r.tool == "Grep" || r.tool == "Glob" || r.tool == "LS" {
			in = map[string]string{"path": file, "pattern": "x"}
		}
	case *hostSpec:
		in["url"] = "https://" + map[bool]string{true: "x.", false: ""}[spec.subdomains] + spec.host + "/"
	case *nameSpec:
		in[map[bool]string{true: "subagent_type", false: "skill"}[isAgentTool(r.tool)]] = spec.name
	}
	raw, err := json.Marshal(in)
	c.Input = raw
	return c, err == nil
}

// example is a name that a segment of a pattern matches.
func (s *segment) example() (name string, found bool) {
	switch {
	case s.many:
		return "x", true
	case s.literal:
		return s.pattern, true
	}
	var b strings.Builder
	for i := 0; i < len(s.pattern); i++ {
		switch s.pattern[i] {
		case '*', '?':
			b.WriteByte('x')
		case '\\':
			i++
			b.WriteByte(s.pattern[i])
		case '[':
			end := i + 1
			for end < len(s.pattern) && (s.pattern[end] != ']' || end == i+1) {
				if s.pattern[end] == '\\' {
					end++
				}
				end++
			}
			class := s.pattern[i:min(end+1, len(s.pattern))]
			at := strings.IndexFunc(candidates, func(r rune) bool { ok, _ := path.Match(class, string(r)); return ok })
			if at < 0 {
				return "", false
			}
			b.WriteByte(candidates[at])
			i = end
		default:
			b.WriteByte(s.pattern[i])
		}
	}
	ok, _ := path.Match(s.pattern, b.String())
	return b.String(), ok
}

// candidates are tried for a class of characters.
const candidates = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_. ,;:!@#$%&()+={}[]^~'\"|<>\\*?"

// Warnings returns what is legal in the rules and probably not meant: allow rules that
// cannot match anything, and deny rules about a tool that leave another with the same
// effect open. Each has the list, the rule and what to write instead.
func (p *Policy) Warnings() []*ParseError { return slices.Clone(p.warnings) }

// openEdits warns of rules about single tools that leave others open.
func openEdits(r *rule, all []rule) *flaw {
	if r.spec == nil || r.tool == "Edit" || !editsFiles(r.tool) || slices.ContainsFunc(all, func(other rule) bool { return other.tool == "Edit" }) {
		return nil
	}
	_, content, _ := strings.Cut(r.Text, "(")
	return &flaw{0, "is about the tool " + r.tool + " alone: Edit and the other tools that write files stay open", "write Edit(" + content + ", which is about all of them and about commands"}
}

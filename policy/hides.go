package policy

import (
	"path"
	"slices"
	"strings"
)

// Hiding returns a function that says of an absolute path, whose links were followed, what the
// deny rules about reading files mean for it: whether one denies it, or all that is below it, and
// whether one may deny something below it. It is for programs that keep files from processes.
// Only rules with a path count, not the rule Read. A name in the other case counts, as for
// calls. The links in the part of a rule without wildcards are followed by Rules.Resolve now.
func (p *Policy) Hiding() func(path string) (here, below bool) {
	var patterns []pathPattern
	for _, r := range p.deny {
		if spec, is := r.spec.(*pathSpec); is && r.tool == "Read" {
			patterns = append(append(patterns, spec.folded), spec.exact.behindLinks(p.places.resolve)...)
		}
	}
	return func(path string) (here, below bool) {
		file := segmentsOf(strings.ToLower(path))
		w := &work{left: maxWork}
		for i := range patterns {
			if patterns[i].holds(file, w) {
				return true, true
			}
			below = below || patterns[i].reaches(file, w)
		}
		return w.exhausted(), below || w.exhausted()
	}
}

// behindLinks are the pattern at where its first segments lead, in lower case.
func (p *pathPattern) behindLinks(resolve func(string) (string, error)) (more []pathPattern) {
	if resolve == nil {
		return nil
	}
	literal := 0
	for literal < len(p.segments) && p.segments[literal].literal {
		literal++
	}
	var rest []string
	for _, s := range p.segments[literal:] {
		rest = append(rest, s.pattern)
	}
	for _, base := range p.bases {
		written := slices.Clone(base)
		for _, s := range p.segments[:literal] {
			written = append(written, s.pattern)
		}
		clean := "/" + strings.Join(written, "/")
		at, err := resolve(clean)
		if err != nil || at == clean || !path.IsAbs(at) {
			continue
		}
		target, texts := segmentsOf(at), rest
		if len(texts) == 0 {
			if len(target) == 0 {
				continue // all of the file system
			}
			texts, target = []string{escaped(target[len(target)-1])}, target[:len(target)-1]
		}
		more = append(more, newPattern([][]string{target}, texts, p.holdsAll, strings.ToLower))
	}
	return more
}

// escaped is a name as a pattern that matches it alone.
func escaped(name string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(name)
}

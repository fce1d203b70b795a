package main

import (
	"go/parser"
	"go/token"
	"regexp"
	"strings"
)

// A pattern is a turn of phrase that a reader has to read twice.
type pattern struct {
	name    string
	expr    *regexp.Regexp
	instead string
}

// patterns returns the patterns, for a sentence whose white space is single spaces.
func patterns() []pattern {
	return []pattern{
		{"nobody", regexp.MustCompile(`(?i)\b(nobody|somebody|whoever)\b`), "say who: the caller, the agent, no reader"},
		{"is none", regexp.MustCompile(`\b(?i:is|are|was|were|has|have|had) none\b|\b(?i:is|are|was|were) no\b`), "repeat the noun: has no session, is not an error"},
		{"nil:", regexp.MustCompile(`\bnil: (nobody|there|it|they|nothing|no one|who|none [a-z])`), "nil if the session is not traced"},
		{"own", regexp.MustCompile(`(?i)\bof (its|one's|their|our|his|my|the user's) own([.,;:)]| (and|that|which|for|by|with|in|on|to|of|or|as|when|so|if|is|are|has|from)\b|$)|\bthe user's own\b`), "its own, a separate, the user's"},
		{"told", regexp.MustCompile(`(?i)\b(is|are|was|were|be|been|being) told\b|\bhears\b|\btells\b`), "the message: sends, reports, receives, notifies"},
		{"goes on", regexp.MustCompile(`(?i)\b(goes|go|going|went|gone) on\b`), "continues, keeps running"},
		{"for ever", regexp.MustCompile(`(?i)\bfor ever(more)?\b`), "indefinitely, without a limit"},
		{"clause", regexp.MustCompile(`(^|[:;|] )(What|Whatever|Whoever|Which|Who) [^?]*$|\bwhat is left\b`), "name the thing: the remaining delay, pending messages"},
	}
}

// plain is what looks like a pattern and is good English.
var plain = regexp.MustCompile(`(?i)\bthere (is|are|was|were) no\b|\bno longer\b|\btells the (model|agent)\b`) //nolint:gochecknoglobals // only read

// A finding is a sentence with a pattern.
type finding struct {
	file     string
	line     int
	pattern  string
	sentence string
}

// inGo returns the findings in the comments of a Go file.
func inGo(src []byte) ([]finding, error) {
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, "", src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	var all []finding
	for _, group := range file.Comments {
		all = append(all, inText(group.Text(), fset.Position(group.Pos()).Line)...)
	}
	return all, nil
}

// inMarkdown returns the findings in the prose of a Markdown file: what is neither a
// fenced block nor a code span.
func inMarkdown(src []byte) []finding {
	keepLines := func(code string) string { return strings.Repeat("\n", strings.Count(code, "\n")) }
	text := regexp.MustCompile("(?ms)^ *```.*?^ *```").ReplaceAllStringFunc(string(src), keepLines)
	text = regexp.MustCompile("`[^`\n]*`").ReplaceAllString(text, "CODE")
	return inText(text, 1)
}

// inText returns the findings in a text whose first line has the number.
func inText(text string, line int) []finding {
	var all []finding
	paragraphs := strings.SplitSeq(text, "\n\n")
	for paragraph := range paragraphs {
		flat := strings.Join(strings.Fields(paragraph), " ")
		for sentence := range strings.SplitAfterSeq(flat, ". ") {
			checked := plain.ReplaceAllString(sentence, "…")
			for _, p := range patterns() {
				for range p.expr.FindAllStringIndex(checked, -1) {
					all = append(all, finding{line: line, pattern: p.name, sentence: strings.TrimSpace(sentence)})
				}
			}
		}
		line += strings.Count(paragraph, "\n") + 2
	}
	return all
}

// insteadOf says what to write instead of a pattern.
func insteadOf(name string) string {
	for _, p := range patterns() {
		if p.name == name {
			return p.instead
		}
	}
	return "other words"
}

package policy

import (
	"regexp"
	"slices"
	"strings"
)

// A filter beside a command that a rule allows needs no rule about it, in the forms that the
// agent is sure about, too; in all others it asks, and so does a policy.
// [observed with Claude Code 2.1.329; its decisions are in testdata/forms.json]

// sure reports whether words of a filter, a printer or a test are in such a form.
func sure(u *usage, words []string) bool {
	for _, w := range words[1:] {
		if !sureWord(words[0], w) {
			return false
		}
	}
	switch words[0] {
	case "sed":
		return sureSed(words)
	case "jq":
		return !slices.ContainsFunc(words, func(w string) bool { return strings.HasPrefix(w, "--arg") }) || !strings.Contains(strings.Join(words, " "), "$")
	case "pwd":
		return len(words) == 1
	case "printf":
		return len(words) == 1 || !isOption(words[1]) && words[1] != "-"
	case "test", "[":
		return !slices.ContainsFunc(words[1:], func(w string) bool { return w == "-" || w == "-a" || w == "-o" })
	}
	return u == nil || u.sure == nil || sureOptions(u.sure, words)
}

// jqReads are the functions of jq that read the environment, or other files.
var jqReads = regexp.MustCompile(`\benv\b|\$ENV|\b(import|include)\s*"`)

// sureWord reports whether a word, which the shell does not change, holds nothing that the
// agent takes for an expansion.
func sureWord(program, w string) bool {
	braces := strings.Contains(w, "{") && (strings.Contains(w, ",") || strings.Contains(w, ".."))
	switch program {
	case "echo", "tr", "column", "paste", "fold":
		return true
	case "cut":
		return !braces
	case "jq":
		return !strings.ContainsAny(w, "`'") && !jqReads.MatchString(w)
	case "printf":
		return !strings.ContainsAny(w, "$`")
	case "sort", "base64":
		if strings.HasPrefix(w, "~") {
			return false
		}
	case "test", "[":
		if strings.Contains(w, "[") {
			return false
		}
	}
	return !braces && !strings.ContainsAny(w, "$`\n")
}

// sureOptions reports whether all options are among those of a table, in its forms.
func sureOptions(table map[string]string, words []string) bool {
	for i := 1; i < len(words); i++ {
		w := words[i]
		if w == "--" {
			return true
		}
		if !isOption(w) {
			continue
		}
		name, value, inside := w, "", false
		if strings.HasPrefix(w, "--") {
			name, value, inside = strings.Cut(w, "=")
		}
		form, is := table[name]
		switch {
		case !is:
			if !sureBundle(table, w) {
				return false
			}
			continue
		case form == "", form == "?":
			if inside != (form == "?") {
				return false
			}
			continue
		case !inside:
			if i++; i == len(words) {
				return false
			}
			value = words[i]
		}
		if strings.HasPrefix(value, "-") || form != "=" && !number(value) {
			return false
		}
	}
	return true
}

// sureBundle reports whether a word is several options without values, or one with its number.
func sureBundle(table map[string]string, w string) bool {
	if strings.HasPrefix(w, "--") {
		return false
	}
	if table[w[:2]] == "##" {
		return number(w[2:])
	}
	for _, letter := range w[1:] {
		if form, is := table["-"+string(letter)]; !is || form != "" {
			return false
		}
	}
	return true
}

var (
	surePrints      = regexp.MustCompile(`^((\d+,)?\d+)?p(;\s*((\d+,)?\d+)?p)*$`)
	sureSubstitutes = regexp.MustCompile(`^s/[^/]*/[^/]*/[gpimIM]*[1-9]?[gpimIM]*$`)
	// In these the agent sees, or may see, another command of sed.
	doubtfulSed = regexp.MustCompile(`[{};#\n]|[^ -~\t]|[/\d]!|,\+|y/|s\\|[wWeErR]\s|\s[wWeErR]`)
)

// sureSed reports whether sed prints lines by their numbers, or substitutes once in what goes
// through it.
func sureSed(words []string) bool {
	quiet, rest := false, []string(nil)
	for i, w := range words[1:] {
		if w == "--" {
			rest = append(rest, words[i+2:]...)
			break
		}
		letters := strings.TrimPrefix(w, "-")
		switch {
		case !isOption(w):
			rest = append(rest, w)
		case w == "--quiet", w == "--silent":
			quiet = true
		case w == "--posix", w == "--regexp-extended":
		case w == "--zero-terminated":
			letters = "z"
			fallthrough
		case !strings.HasPrefix(w, "--") && strings.Trim(letters, "nErz") == "":
			quiet = quiet || strings.Contains(letters, "n")
			if strings.Contains(letters, "z") && !slices.ContainsFunc(words, surePrints.MatchString) {
				return false
			}
		default:
			return false
		}
	}
	switch {
	case len(rest) == 0:
		return false
	case quiet:
		return surePrints.MatchString(rest[0])
	}
	return len(rest) == 1 && sureSubstitutes.MatchString(rest[0]) && !doubtfulSed.MatchString(rest[0])
}

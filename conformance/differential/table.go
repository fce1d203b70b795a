package differential

import (
	_ "embed" // the table
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
)

//go:embed testdata/allowed.json
var allowed []byte

// Row is an allowed difference. It names one field, or one text.
type Row struct {
	Name string `json:"name"`
	// Field is where the difference is, with all that is below it.
	Field string `json:"field"`
	// Claude and Embedded are regular expressions: what the first matches in a text of Claude
	// Code is as good as what the second matches in the other's. "" matches nothing: the text
	// is not there. Both are "" for a field whose value does not matter.
	Claude   string `json:"claude"`
	Embedded string `json:"embedded"`
	// Runs are those in which the row must excuse a case: recorded, live, full.
	Runs   []string `json:"runs"`
	Reason string   `json:"reason"`

	claude, embedded *regexp.Regexp
}

// Table are the allowed differences.
type Table []*Row

// Rows reads the table.
func Rows() (Table, error) { return rows(allowed) }

func rows(list []byte) (Table, error) {
	var t Table
	if err := json.Unmarshal(list, &t); err != nil {
		return nil, fmt.Errorf("read the table of allowed differences: %w", err)
	}
	for _, r := range t {
		if r.Name == "" || r.Reason == "" || len(r.Runs) == 0 {
			return nil, fmt.Errorf("row %q of the allowed differences needs a name, a reason and its runs", r.Name)
		}
		if r.Field == "" && r.Claude == "" && r.Embedded == "" {
			return nil, fmt.Errorf("row %q of the allowed differences names neither a field nor a text", r.Name)
		}
		if protected(r.Field) {
			return nil, fmt.Errorf("row %q is about %s, which no row may be about", r.Name, r.Field)
		}
		if r.Field != "" && !strings.Contains(r.Field, ".") {
			return nil, fmt.Errorf("row %q is about all of %s: it may name one field", r.Name, r.Field)
		}
		var err error
		if r.claude, err = narrow(r.Claude); err != nil {
			return nil, fmt.Errorf("row %q: %w", r.Name, err)
		}
		if r.embedded, err = narrow(r.Embedded); err != nil {
			return nil, fmt.Errorf("row %q: %w", r.Name, err)
		}
	}
	return t, nil
}

// narrow compiles a pattern, which must not match any text.
func narrow(pattern string) (*regexp.Regexp, error) {
	re, err := regexp.Compile(pattern)
	if err == nil && pattern != "" && (re.MatchString("") || re.MatchString("x")) {
		err = fmt.Errorf("%q matches any text", pattern)
	}
	return re, err
}

// protected reports whether no row may excuse a difference there: gates, files, whether a
// call ran, and is_error.
func protected(field string) bool {
	switch field { // that there is one at all
	case "frames.assistant/tool_use", "frames.user/tool_result", "structured.result", "reads.tool_result", "result":
		return true
	}
	for _, part := range []string{"gates", "files", "calls"} {
		if field == part || strings.HasPrefix(field, part+".") {
			return true
		}
	}
	for _, end := range []string{".is_error", ".non_execution_kind", ".decision"} {
		if strings.HasSuffix(field, end) {
			return true
		}
	}
	return false
}

// Excuse returns the rows that together excuse the difference, or nil.
func (t Table) Excuse(d Difference) []*Row {
	if protected(d.Field) {
		return nil
	}
	if used := t.excuse(d, nil); used != nil {
		return used
	}
	for _, without := range t { // a row may spoil what two others excuse
		if used := t.excuse(d, without); used != nil {
			return used
		}
	}
	return nil
}

func (t Table) excuse(d Difference, without *Row) []*Row {
	want, got := text(d.Want), text(d.Got)
	var used []*Row
	for _, r := range t {
		if r == without {
			continue
		}
		if r.Field != "" && d.Field != r.Field && !strings.HasPrefix(d.Field, r.Field+".") {
			continue
		}
		if r.Claude == "" && r.Embedded == "" {
			return []*Row{r}
		}
		w, g := r.put(r.Claude, r.claude, want), r.put(r.Embedded, r.embedded, got)
		if w == want && g == got {
			continue
		}
		if strings.HasPrefix(r.Claude, `\s*`) { // blanks before the text do not count, on either side
			g = strings.TrimRight(g, " \t\n")
		}
		want, got, used = w, g, append(used, r)
		if sameText(want, got) {
			return used
		}
	}
	return nil
}

func text(s string) string {
	if s == absent {
		return ""
	}
	return s
}

// put replaces what the row is about.
func (r *Row) put(pattern string, re *regexp.Regexp, s string) string {
	if pattern == "" {
		return s
	}
	mark := "<" + r.Name + ">"
	if r.Claude == "" || r.Embedded == "" {
		mark = "" // one of the two does not say it
	}
	return re.ReplaceAllLiteralString(s, mark)
}

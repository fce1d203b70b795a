package parity

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Row is one line of the ledger.
type Row struct {
	// ID is vendor/kind/name, such as claude/option/model. The vendor is
	// claude, qoder or both.
	ID   string
	Name string
	// Source is where the name comes from, by the keys of the document.
	Source string
	// Symbols are what covers it here: package.Name or package.Type.Member.
	Symbols []string
	// Test closes the row, as package.Test/subtest; "" if it is open.
	Test string
	// Reason is why the row is open; "" if it is closed.
	Reason string

	line int // in the document, from 0
}

// Ledger is the content of internal/parity/testdata/parity.md.
type Ledger struct {
	Rows  []Row
	index map[string]int
	lines []string
}

// Row returns the row id, or nil.
func (l *Ledger) Row(id string) *Row {
	if i, ok := l.index[id]; ok {
		return &l.Rows[i]
	}
	return nil
}

// path is where the ledger lies in the module.
func path(root string) string {
	return filepath.Join(root, "internal", "parity", "testdata", "parity.md")
}

// Read reads the ledger of the module at root.
func Read(root string) (*Ledger, error) {
	text, err := os.ReadFile(path(root))
	if err != nil {
		return nil, err
	}
	return Parse(string(text))
}

const (
	closedBy = "closed: "
	openFor  = "open: "
)

// Parse reads the tables of a document. A table of the ledger is one whose
// first column is called id.
func Parse(text string) (*Ledger, error) {
	l := &Ledger{index: map[string]int{}, lines: strings.Split(text, "\n")}
	id := regexp.MustCompile(`^(claude|qoder|both)/[a-z-]+/[^ ]+$`)
	symbol := regexp.MustCompile("`([^`]+)`")
	inside := false
	for n, line := range l.lines {
		if !strings.HasPrefix(line, "|") {
			inside = false
			continue
		}
		cells := split(line)
		switch {
		case cells[0] == "id":
			inside = true
		case !inside || strings.Trim(cells[0], "-: ") == "":
		default:
			row, err := parse(cells, id, symbol)
			row.line = n
			if err == nil && l.Row(row.ID) != nil {
				err = fmt.Errorf("row %s stands there twice", row.ID)
			}
			if err != nil {
				return nil, fmt.Errorf("internal/parity/testdata/parity.md:%d: %w", n+1, err)
			}
			l.index[row.ID] = len(l.Rows)
			l.Rows = append(l.Rows, row)
		}
	}
	return l, nil
}

func split(line string) []string {
	cells := strings.Split(strings.Trim(line, "| "), "|")
	for i := range cells {
		cells[i] = strings.TrimSpace(cells[i])
	}
	return cells
}

func parse(cells []string, id, symbol *regexp.Regexp) (Row, error) {
	if len(cells) != 5 {
		return Row{}, fmt.Errorf("%d columns; there are five: id, name, source, here, state", len(cells))
	}
	r := Row{ID: plain(cells[0]), Name: plain(cells[1]), Source: cells[2]}
	for _, s := range symbol.FindAllStringSubmatch(cells[3], -1) {
		r.Symbols = append(r.Symbols, s[1])
	}
	if !id.MatchString(r.ID) {
		return Row{}, fmt.Errorf("%q is no id: vendor/kind/name, without spaces", r.ID)
	}
	state := cells[4]
	switch {
	case strings.HasPrefix(state, closedBy):
		r.Test = plain(state[len(closedBy):])
		if len(r.Symbols) == 0 {
			return Row{}, fmt.Errorf("row %s is closed and names no symbol", r.ID)
		}
	case strings.HasPrefix(state, openFor):
		r.Reason = state[len(openFor):]
	}
	if r.Test == "" && r.Reason == "" {
		return Row{}, fmt.Errorf("row %s is neither closed by a test nor open for a reason: %q", r.ID, state)
	}
	if r.Source == "" || r.Name == "" {
		return Row{}, fmt.Errorf("row %s has no source or no name", r.ID)
	}
	return r, nil
}

func plain(cell string) string { return strings.ReplaceAll(cell, "`", "") }

// setTest closes the row in the text of the document.
func (l *Ledger) setTest(r *Row, test string) {
	cells := split(l.lines[r.line])
	r.Test, r.Reason = test, ""
	cells[4] = closedBy + "`" + test + "`"
	l.lines[r.line] = "| " + strings.Join(cells, " | ") + " |"
}

// Write writes the document back to the module at root.
func (l *Ledger) Write(root string) error {
	return os.WriteFile(path(root), []byte(strings.Join(l.lines, "\n")), 0o644) //nolint:gosec // a document for everybody
}

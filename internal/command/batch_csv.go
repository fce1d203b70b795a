package command

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/internal/optionfile"
)

// csv reads a line of names and then a row from each line. Without --template the names are
// keys of a task. Semicolons and tabs may separate the cells, as spreadsheets write them.
func (r *taskReader) csv(text []byte) {
	if !bytes.ContainsRune(text, '\n') {
		text = bytes.ReplaceAll(text, []byte("\r"), []byte("\n")) // as some programs for the Mac end lines
	}
	comma, text, skipped := separator(text)
	rows := csvReader(text, comma)
	names, err := rows.Read()
	if err != nil {
		r.fail(optionfile.Mistake{Line: 1, Problem: "has no line with the names of the columns: " + csvProblem(err)})
		return
	}
	r.columns = map[string]optionfile.Mistake{}
	for i := range names {
		names[i] = strings.TrimSpace(names[i])
		line, column := rows.FieldPos(i)
		r.columns[names[i]] = optionfile.Mistake{Line: line + skipped, Column: column}
		for j := range i {
			if names[i] != "" && names[i] == names[j] {
				r.fail(optionfile.Mistake{Line: line + skipped, Column: column, Key: names[i], Problem: "names two columns", Fix: "rename one of them"})
			}
		}
	}
	if len(r.mistakes) > 0 {
		return
	}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return
		}
		if err != nil {
			var at *csv.ParseError
			m := optionfile.Mistake{Problem: csvProblem(err)}
			if errors.As(err, &at) {
				m.Line, m.Column = at.Line+skipped, at.Column
			}
			r.fail(m)
			return // the rest is read wrongly
		}
		r.csvRow(names, row, func(i int) (line, column int) {
			line, column = rows.FieldPos(i)
			return line + skipped, column
		})
	}
}

// ofColumns reports an unknown column once, at its name: each row has the same mistake.
func (r *taskReader) ofColumns(mistakes []optionfile.Mistake) []optionfile.Mistake {
	var told []optionfile.Mistake
	for _, m := range mistakes {
		if at, ok := r.columns[m.Key]; ok && m.Problem == "is not known" {
			if at.Problem != "" {
				continue
			}
			m.Line, m.Column = at.Line, at.Column
			if !strings.HasPrefix(m.Fix, "did you mean") {
				m.Fix += ", or make the prompt of columns with --template 'Fix {{." + m.Key + "}}'"
			}
			r.columns[m.Key] = m
		}
		told = append(told, m)
	}
	return told
}

func (r *taskReader) csvRow(names, row []string, place func(int) (int, int)) {
	line, column := place(0)
	if strings.TrimSpace(strings.Join(row, "")) == "" {
		return // spreadsheets write such rows below the last one
	}
	if len(row) != len(names) {
		r.fail(optionfile.Mistake{Line: line, Problem: fmt.Sprintf("has %s, and the first line names %s", shown.Count(len(row), "cell"), shown.Count(len(names), "column")), Fix: "put a cell with a separator in it into quotes"})
		r.unread(line, column)
		return
	}
	n := optionfile.NewObject(line, column)
	for i, name := range names {
		line, column := place(i)
		value := optionfile.NewText(row[i], line, column)
		if r.template == nil {
			if row[i] == "" {
				continue
			}
			var m *optionfile.Mistake
			if value, m = cell(name, value); m != nil {
				r.fail(*m)
				continue
			}
		}
		if name == "" {
			if row[i] != "" {
				r.fail(optionfile.Mistake{Line: line, Column: column, Problem: fmt.Sprintf("is a cell of column %d, which has no name", i+1), Fix: "name it in the first line"})
			}
			continue
		}
		n.Pairs = append(n.Pairs, optionfile.Pair{Key: optionfile.NewText(name, line, column), Value: value})
	}
	r.add(n)
}

// separator finds what separates the cells: the first of comma, semicolon and tab with which the rows have as many
// cells as there are names; without one, the first with which there are several names. A line sep=; that spreadsheets
// write is left out; skipped is the number of such lines.
func separator(text []byte) (comma rune, rest []byte, skipped int) {
	first, after, _ := bytes.Cut(text, []byte("\n"))
	if sep, ok := bytes.CutPrefix(bytes.TrimRight(first, "\r"), []byte("sep=")); ok && len(sep) == 1 {
		return rune(sep[0]), after, 1
	}
	for _, c := range ",;\t" {
		rows := csvReader(text, c)
		names, err := rows.Read()
		if err != nil || len(names) < 2 {
			continue
		}
		if alike(rows, len(names)) {
			return c, text, 0
		}
		if comma == 0 {
			comma = c
		}
	}
	if comma == 0 {
		comma = ','
	}
	return comma, text, 0
}

// alike reports whether the next rows, up to a hundred of them, have so many cells.
func alike(rows *csv.Reader, cells int) bool {
	for n := range 100 {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return n > 0
		}
		if err != nil || len(row) != cells {
			return false
		}
	}
	return true
}

func csvReader(text []byte, comma rune) *csv.Reader {
	rows := csv.NewReader(bytes.NewReader(text))
	rows.Comma, rows.FieldsPerRecord = comma, -1
	return rows
}

// csvProblem is an error of the reader, without the place.
func csvProblem(err error) string {
	var at *csv.ParseError
	switch {
	case errors.Is(err, csv.ErrQuote):
		return "has a quote that does not end a cell: inside of a cell in quotes write it twice"
	case errors.Is(err, csv.ErrBareQuote):
		return "has a quote inside of a cell: put the cell in quotes, and write the quote twice"
	case errors.Is(err, io.EOF):
		return "it is empty"
	case errors.As(err, &at):
		return at.Err.Error()
	}
	return err.Error()
}

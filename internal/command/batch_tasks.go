package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/internal/optionfile"
	"github.com/agent-troupe/troupe/internal/textfile"
	"github.com/agent-troupe/troupe/schema"
	"github.com/agent-troupe/troupe/sdk"
)

// Values of --format.
const (
	formJSONL = "jsonl"
	formCSV   = "csv"
	formYAML  = "yaml"
)

// maxTaskMistakes is how many mistakes of a file of tasks are shown.
const maxTaskMistakes = 20

// taskReader reads tasks from a file.
type taskReader struct {
	name     string
	schema   *optionfile.Schema
	template *rowTemplate                  // nil: each row is a task
	columns  map[string]optionfile.Mistake // of a CSV file: where each is named, and what is wrong with the name
	mistakes []optionfile.Mistake
	tasks    []fleet.Task
	places   []string // of the tasks: file:line:column
}

// readTasks reads all tasks, and says where each one is. The error has every mistake, with its line and column.
func readTasks(name, form, prompt string, set []string, in io.Reader) (tasks []fleet.Task, places []string, err error) {
	taskSchema, err := optionfile.ParseSchema(schema.JSON("tasks"))
	if err != nil {
		return nil, nil, err
	}
	r := &taskReader{name: name, schema: taskSchema}
	if prompt != "" || len(set) > 0 {
		if r.template, err = newRowTemplate(prompt, set); err != nil {
			return nil, nil, err
		}
	}
	raw, err := io.ReadAll(in)
	if err != nil {
		return nil, nil, err
	}
	text, err := textfile.Decode(raw)
	if wrong := (*textfile.Error)(nil); errors.As(err, &wrong) {
		return nil, nil, fmt.Errorf("%s:%d:%d: %s; %s", name, wrong.Line, wrong.Column, wrong.Problem, wrong.Fix)
	}
	if form == "" {
		form = formOf(name)
	}
	switch form {
	case formCSV:
		r.csv(text)
	case formYAML:
		r.yaml(text)
	default:
		r.jsonl(text)
	}
	if len(r.mistakes) > 0 {
		return nil, nil, errors.Join(r.wrong(), r.wrongToo())
	}
	if len(r.tasks) == 0 {
		return nil, nil, fmt.Errorf("%s has no tasks", name)
	}
	return r.tasks, r.places, nil
}

// formOf is the form of a file with this name.
func formOf(name string) string {
	switch strings.ToLower(filepath.Ext(name)) {
	case ".csv", ".tsv":
		return formCSV
	case ".yaml", ".yml", ".json": // JSON is YAML
		return formYAML
	}
	return formJSONL
}

// wrong is all mistakes, each with its place. A mistake of many rows is reported once.
func (r *taskReader) wrong() error {
	var texts []string
	places, again := map[string]string{}, map[string]int{}
	for _, m := range r.mistakes {
		text := strings.TrimSpace(m.Key + " " + m.Problem)
		if m.Fix != "" {
			text += "; " + m.Fix
		}
		if places[text] != "" {
			again[text]++
			continue
		}
		at := r.name
		if m.Line > 0 {
			at += fmt.Sprintf(":%d", m.Line)
		}
		if m.Column > 0 {
			at += fmt.Sprintf(":%d", m.Column)
		}
		texts, places[text] = append(texts, text), at
	}
	var lines []string
	for i, text := range texts {
		if i == maxTaskMistakes {
			lines = append(lines, r.name+": "+shown.Count(len(texts)-i, "more mistake"))
			break
		}
		line := places[text] + ": " + text
		if n := again[text]; n > 0 {
			line += " (and " + shown.Count(n, "more time") + ")"
		}
		lines = append(lines, line)
	}
	return errors.New(strings.Join(lines, "\n"))
}

func (r *taskReader) fail(all ...optionfile.Mistake) { r.mistakes = append(r.mistakes, all...) }

func (r *taskReader) jsonl(text []byte) {
	number := 0
	for line := range bytes.Lines(text) {
		number++
		line = bytes.TrimRight(line, "\r\n")
		start := bytes.TrimSpace(line)
		if len(start) == 0 {
			continue
		}
		if len(r.tasks) == 0 && start[0] != '{' {
			r.fail(optionfile.Mistake{Line: number, Column: 1, Problem: "is no JSON object: " + notObject(start), Fix: "a line is a task, such as " + `{"prompt": "…"}`})
			return
		}
		n, m := optionfile.ParseLine(line, number)
		if m != nil {
			if strings.Contains(m.Problem, "after top-level value") {
				m.Problem = "follows the object of the line"
				m.Fix = "write each task on a line of its own"
			}
			r.fail(*m)
			r.unread(number, 1)
			continue
		}
		r.add(n)
	}
}

// notObject says what a line is that is not the object of a task.
func notObject(line []byte) string {
	switch {
	case line[0] == '[':
		return "this is a JSON list, which --format yaml reads"
	case bytes.HasPrefix(line, []byte("- ")) || bytes.HasPrefix(line, []byte("tasks:")) || bytes.Equal(line, []byte("---")):
		return "this is YAML, which --format yaml reads"
	case bytes.Contains(line, []byte(",")):
		return "if this is a CSV file, --format csv reads it"
	}
	return "this is plain text"
}

// yaml reads a list of tasks, or an object with one under tasks.
func (r *taskReader) yaml(text []byte) {
	root, mistakes := optionfile.ParseList(text)
	r.fail(mistakes...)
	if root == nil {
		return
	}
	list := root
	if root.Kind == optionfile.Object {
		if list = root.Get("tasks"); list == nil {
			r.fail(root.Mistake("", "is an object without the key tasks, and has to be a list of tasks", "write - prompt: …"))
			return
		}
		for _, p := range root.Pairs {
			if p.Key.Text != "tasks" {
				r.fail(p.Key.Mistake(p.Key.Text, "is not known beside tasks", "leave it out"))
			}
		}
		r.fail(root.Duplicates()...)
	}
	if list.Kind != optionfile.List {
		r.fail(list.Mistake("", "is "+list.Kind.String()+", and has to be a list of tasks", "write - prompt: …"))
		return
	}
	for _, n := range list.List {
		r.add(n)
	}
}

// add takes a row: a task, or with a template what makes one.
func (r *taskReader) add(n *optionfile.Node) {
	line, column := nodePlace(n)
	if t, ok := r.read(n); ok {
		r.take(t, line, column)
	} else {
		r.unread(line, column)
	}
}

func (r *taskReader) read(n *optionfile.Node) (t fleet.Task, ok bool) {
	if n.Kind != optionfile.Object {
		fix := `write {"prompt": "…"}`
		if n.Kind == optionfile.Text {
			fix = "write prompt: before it"
		}
		r.fail(n.Mistake("", "is "+n.Kind.String()+", and has to be the object of a task", fix))
		return t, false
	}
	if r.template != nil {
		r.fail(n.Duplicates()...)
		made, mistakes := r.template.fill(n)
		if r.fail(mistakes...); made == nil {
			return t, false
		}
		n = made
	}
	if id := n.Get("id"); id != nil && id.Kind == optionfile.Number {
		id.Kind = optionfile.Text // spreadsheets and trackers number their rows
	}
	checked, mistakes := r.schema.Check(n, optionHint)
	if r.fail(r.ofColumns(mistakes)...); checked == nil {
		return t, false
	}
	if err := json.Unmarshal(checked.JSON(), &t); err != nil {
		r.fail(n.Mistake("", "cannot be read: "+err.Error(), ""))
		return t, false
	}
	return t, true
}

// optionHint says where a key belongs that is an option of the session.
func optionHint(key string) string {
	_, err := sdk.LoadOptions(strings.NewReader(`{"` + strings.ReplaceAll(key, `"`, "") + `": {}}`))
	if err == nil || !strings.Contains(err.Error(), "is not known") {
		return `it is an option of the session: put it under "options"`
	}
	return ""
}

// listKeys are the keys of a task whose cells are lists of words.
func listKeys() []string { return []string{"tags", "after"} }

// cell is the value of a task's key that is a text in a CSV file or a template.
func cell(key string, n *optionfile.Node) (*optionfile.Node, *optionfile.Mistake) {
	switch text := n.Text; {
	case slices.Contains(listKeys(), key):
		words, err := json.Marshal(strings.Fields(strings.ReplaceAll(text, ",", " ")))
		if err != nil {
			return nil, &optionfile.Mistake{Problem: err.Error()}
		}
		list, err := optionfile.ParseJSON(words)
		if err != nil {
			return nil, &optionfile.Mistake{Problem: err.Error()}
		}
		return list.At(n), nil
	case slices.Contains([]string{"expectTools", "expectChange", "clean", "slash", "workspace.remove"}, key):
		return parsed(key, strings.ToLower(text), n) // spreadsheets write TRUE
	case slices.Contains([]string{"turns", "options", "workspace", "budget", "priority", "labels", "verify", "verify.rounds", "workspace.lockfiles"}, key) || strings.HasPrefix(key, "budget.") && key != "budget.wall":
		return parsed(key, text, n)
	}
	return n, nil
}

func parsed(key, text string, n *optionfile.Node) (*optionfile.Node, *optionfile.Mistake) {
	v, err := optionfile.ParseJSON([]byte(text))
	if err != nil {
		m := n.Mistake(key, fmt.Sprintf("is %q, and has to be what JSON has there: a number, true or false, or a value in brackets", text), "")
		return nil, &m
	}
	return v.At(n), nil
}

package main

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/goccy/go-yaml"

	"github.com/agent-troupe/troupe/fleet"
)

// Values of --format.
const (
	formJSONL = "jsonl"
	formCSV   = "csv"
	formYAML  = "yaml"
)

// maxTaskLine is the longest line of a file of tasks.
const maxTaskLine = 16 << 20

// taskReader reads tasks from a file.
type taskReader struct {
	name     string
	template *template.Template // nil: each line has its prompt
	tasks    []fleet.Task
}

// readTasks reads all tasks. Every error names the line.
func readTasks(name, form, prompt string, in io.Reader) ([]fleet.Task, error) {
	r := &taskReader{name: name}
	if prompt != "" {
		t, err := template.New("--template").Option("missingkey=error").Parse(prompt)
		if err != nil {
			return nil, fmt.Errorf("--template: %w", err)
		}
		r.template = t
	}
	if form == "" {
		switch strings.ToLower(filepath.Ext(name)) {
		case ".csv":
			form = formCSV
		case ".yaml", ".yml", ".json": // JSON is YAML
			form = formYAML
		default:
			form = formJSONL
		}
	}
	var err error
	switch form {
	case formCSV:
		err = r.csv(in)
	case formYAML:
		err = r.yaml(in)
	default:
		err = r.jsonl(in)
	}
	if err == nil && len(r.tasks) == 0 {
		err = fmt.Errorf("%s has no tasks", name)
	}
	return r.tasks, err
}

func (r *taskReader) jsonl(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxTaskLine)
	number := 0
	for lines.Scan() {
		number++
		if text := bytes.TrimSpace(lines.Bytes()); len(text) > 0 {
			if err := r.add(number, text); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s:%d: %w", r.name, number+1, err)
	}
	return nil
}

// yaml reads a list of tasks, or an object with one under tasks.
func (r *taskReader) yaml(in io.Reader) error {
	raw, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	doc, err := yaml.YAMLToJSON(raw)
	if err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	var all []json.RawMessage
	if err := json.Unmarshal(doc, &all); err != nil {
		var within struct {
			Tasks []json.RawMessage `json:"tasks"`
		}
		if json.Unmarshal(doc, &within) != nil || within.Tasks == nil {
			return fmt.Errorf("%s is not a list of tasks, and has none under the key tasks", r.name)
		}
		all = within.Tasks
	}
	for i, text := range all {
		if err := r.add(i+1, text); err != nil {
			return err
		}
	}
	return nil
}

// csv reads a line of names and then a task from each line. Without --template there must
// be a column prompt.
func (r *taskReader) csv(in io.Reader) error {
	rows := csv.NewReader(in)
	names, err := rows.Read()
	if err != nil {
		return fmt.Errorf("%s: the first line, with the names of the columns: %w", r.name, err)
	}
	for i := range names {
		names[i] = strings.TrimSpace(strings.TrimPrefix(names[i], "\uFEFF"))
	}
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		line, _ := rows.FieldPos(0)
		fields := map[string]any{}
		for i, name := range names {
			if row[i] == "" {
				continue
			}
			if fields[name] = row[i]; r.template == nil {
				if fields[name], err = cell(name, row[i]); err != nil {
					return fmt.Errorf("%s:%d: %w", r.name, line, err)
				}
			}
		}
		text, err := json.Marshal(fields)
		if err == nil {
			err = r.add(line, text)
		}
		if err != nil {
			return err
		}
	}
}

// cell is the value of a task's key that a CSV file has as text.
func cell(name, text string) (any, error) {
	switch name {
	case "tags", "after":
		return strings.Fields(strings.ReplaceAll(text, ",", " ")), nil
	case "expectTools", "expectChange", "clean":
		text = strings.ToLower(text) // spreadsheets write TRUE
	case "turns", "options", "workspace", "budget", "priority", "labels", "verify":
	default:
		return text, nil
	}
	if !json.Valid([]byte(text)) {
		return nil, fmt.Errorf("column %s: %q is not what JSON has there: a number, true or false, or a value in brackets", name, text)
	}
	return json.RawMessage(text), nil
}

// add takes a task, or with a template the fields that make one.
func (r *taskReader) add(line int, text []byte) error {
	var t fleet.Task
	var err error
	if r.template == nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields() // a misspelt key would be a task without it
		err = d.Decode(&t)
		if err == nil && d.More() {
			err = errors.New("more than one object is on the line")
		}
	} else {
		t, err = r.fill(text)
	}
	if err != nil {
		return fmt.Errorf("%s:%d: %w", r.name, line, err)
	}
	if t.ID == "" {
		t.ID = fmt.Sprintf("%04d", len(r.tasks)+1)
	}
	r.tasks = append(r.tasks, t)
	return nil
}

func (r *taskReader) fill(text []byte) (fleet.Task, error) {
	var t fleet.Task
	var fields map[string]any
	if err := json.Unmarshal(text, &fields); err != nil {
		return t, err
	}
	if id, ok := fields["id"]; ok {
		t.ID = fmt.Sprint(id)
	}
	var b strings.Builder
	if err := r.template.Execute(&b, fields); err != nil {
		return t, err
	}
	t.Prompt = b.String()
	return t, nil
}

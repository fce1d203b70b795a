package embedded

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/agent-troupe/troupe/agent"
)

// notebook is a Jupyter notebook, as far as it is shown.
type notebook struct {
	Cells    []cell `json:"cells"`
	Metadata struct {
		Info struct {
			Name string `json:"name"`
		} `json:"language_info"`
	} `json:"metadata"`
}

type cell struct {
	Type    string    `json:"cell_type"`
	ID      string    `json:"id"`
	Source  joined    `json:"source"`
	Count   *int      `json:"execution_count"`
	Outputs []printed `json:"outputs"`
}

// printed is an output: what a cell has printed.
type printed struct {
	Type      string            `json:"output_type"`
	Text      joined            `json:"text"`
	Data      map[string]joined `json:"data"`
	Name      string            `json:"ename"`
	Value     string            `json:"evalue"`
	Traceback []string          `json:"traceback"`
}

// joined is a text, or a list of its parts. known is false for anything else.
type joined struct {
	text  string
	known bool
}

// UnmarshalJSON implements [json.Unmarshaler].
func (j *joined) UnmarshalJSON(b []byte) error {
	var parts []string
	if json.Unmarshal(b, &j.text) == nil {
		j.known = true
	} else if json.Unmarshal(b, &parts) == nil {
		j.text, j.known = strings.Join(parts, ""), true
	}
	return nil
}

// notebookText collects what the model reads of a notebook.
type notebookText struct {
	blocks []any
	text   strings.Builder
}

// say adds a part on a separate line.
func (t *notebookText) say(s string) {
	if t.text.Len() > 0 {
		t.text.WriteByte('\n')
	}
	t.text.WriteString(s)
}

// picture ends the text, and adds an image, if it is not nil.
func (t *notebookText) picture(image any) {
	if t.text.Len() > 0 {
		t.blocks = append(t.blocks, agent.Object{"type": "text", "text": t.text.String()})
		t.text.Reset()
	}
	if image != nil {
		t.blocks = append(t.blocks, image)
	}
}

// notebookResult is a notebook as the model reads it: cells with what they have printed.
func notebookResult(name string, content []byte) agent.ToolResult {
	if !json.Valid(content) {
		return failure("Notebook file is not valid JSON (it may be truncated, corrupted, or still being written): JSON Parse error: %s", jsonProblem(content))
	}
	var n notebook
	if json.Unmarshal(content, &n) != nil || n.Cells == nil {
		return failure("%s", errNoNotebook)
	}
	language := n.Metadata.Info.Name
	if language == "" {
		language = "python"
	}
	cells, t := []any{}, &notebookText{}
	for i, c := range n.Cells {
		if !c.Source.known {
			return failure("%s", errNoNotebook)
		}
		if c.ID == "" {
			c.ID = fmt.Sprintf("cell-%d", i)
		}
		if c.size() > maxOutputs {
			c.Outputs = []printed{{Type: "stream", Text: joined{fmt.Sprintf("Outputs are too large to include. Use Bash with: cat <notebook_path> | jq '.cells[%d].outputs'", i), true}}}
		}
		cells = append(cells, c.shown(language, t))
	}
	t.picture(nil)
	structured := agent.Object{"type": "notebook", "file": agent.Object{"filePath": name, "cells": cells}}
	if len(t.blocks) == 0 {
		return agent.ToolResult{Content: "(Read completed with no output)", Structured: structured}
	}
	return agent.ToolResult{Content: t.blocks, Structured: structured}
}

// maxOutputs are the characters of a cell's outputs that are shown (observed).
const maxOutputs = 10000

// size is that of a cell's outputs.
func (c *cell) size() (n int) {
	for i := range c.Outputs {
		structured, _ := c.Outputs[i].shown()
		text, _ := structured["text"].(string)
		n += len(utf16.Encode([]rune(text)))
		if image, ok := structured["image"].(agent.Object); ok {
			data, _ := image["image_data"].(string)
			n += len(data)
		}
	}
	return n
}

// shown is a cell as tool_use_result has it; t gets what the model reads.
func (c *cell) shown(language string, t *notebookText) agent.Object {
	o := agent.Object{"cellType": c.Type, "source": c.Source.text, "cell_id": c.ID}
	about := ""
	switch {
	case c.Type != "code":
		about = "<cell_type>" + c.Type + "</cell_type>"
	case language != "python":
		about = "<language>" + language + "</language>"
	}
	t.say(`<cell id="` + c.ID + `">` + about + c.Source.text + `</cell id="` + c.ID + `">`)
	if c.Type == "code" {
		o["language"] = language
		if c.Count != nil {
			o["execution_count"] = *c.Count
		}
	}
	var outputs []any
	for i := range c.Outputs {
		structured, image := c.Outputs[i].shown()
		if text, there := structured["text"].(string); there {
			t.say("\n" + text)
		}
		if image != nil {
			t.picture(image)
		}
		outputs = append(outputs, structured)
	}
	if len(outputs) > 0 {
		o["outputs"] = outputs
	}
	return o
}

// shown is an output as tool_use_result has it, and its image, or nil.
func (o *printed) shown() (structured agent.Object, image any) {
	structured = agent.Object{"output_type": o.Type}
	switch o.Type {
	case "stream":
		structured["text"] = o.Text.text
	case "error":
		structured["text"] = o.Name + ": " + o.Value + "\n" + strings.Join(o.Traceback, "\n")
	default:
		if plain, there := o.Data["text/plain"]; there {
			structured["text"] = plain.text
		}
		for _, kind := range []string{"image/png", "image/jpeg"} {
			if data, there := o.Data[kind]; there {
				clean := strings.Join(strings.FieldsFunc(data.text, unicode.IsSpace), "")
				structured["image"] = agent.Object{"image_data": clean, "media_type": kind}
				return structured, inlined{Media: kind, Data: clean}.block()
			}
		}
	}
	return structured, nil
}

// jsonProblem says what is wrong with a text that is not JSON. Of one that ends too early, it
// has the words of the vendor's parser.
func jsonProblem(content []byte) string {
	var open []byte
	quoted, escaped := false, false
	for _, c := range content {
		switch {
		case escaped:
			escaped = false
		case quoted:
			escaped, quoted = c == '\\', c != '"'
		case c == '"':
			quoted = true
		case c == '{':
			open = append(open, '}')
		case c == '[':
			open = append(open, ']')
		case (c == '}' || c == ']') && len(open) > 0 && open[len(open)-1] == c:
			open = open[:len(open)-1]
		}
	}
	switch {
	case strings.TrimSpace(string(content)) == "":
		return "Unexpected EOF"
	case quoted:
		return "Unterminated string"
	case len(open) > 0:
		return "Expected '" + string(open[len(open)-1]) + "'"
	}
	if word := wordAt.FindSubmatch(content); word != nil {
		switch string(word[1]) {
		case "true", "false", "null":
		default:
			return "Unexpected identifier \"" + string(word[1]) + "\""
		}
	}
	return "Unexpected token"
}

// wordAt is a word at the beginning of a text.
var wordAt = regexp.MustCompile(`^\s*([A-Za-z_$][\w$]*)`)

package embedded

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/protocol"
)

// notebookEdit is the tool NotebookEdit, as Claude Code 2.1.329 has it (observed).
func notebookEdit() *tool {
	return &tool{
		name:  "NotebookEdit",
		about: "Changes one cell of a Jupyter notebook, which must have been read. new_source replaces the cell's source, or is that of a new cell behind it (insert; without cell_id the first one).",
		path:  "notebook_path",
		params: []param{
			{name: "notebook_path", kind: "string", about: "The .ipynb file.", required: true},
			{name: "cell_id", kind: "string", about: "The cell's id as Read shows it, or cell-N for the one with index N."},
			{name: "new_source", kind: "string", required: true},
			{name: "cell_type", schema: `"type":"string","enum":["code","markdown"]`, take: oneOf("code", "markdown")},
			{name: "edit_mode", schema: `"type":"string","enum":["replace","insert","delete"]`, take: oneOf("replace", "insert", "delete")},
		},
		late:   func(h *hands) bool { return h.hasNotebook() },
		beside: alone,
		writes: true,
		check: func(h *hands, in agent.Object) string {
			if h.linkRefusal(h.path(str(in, "notebook_path"))) != "" {
				return "" // run says it
			}
			_, problem := h.planCell(nil, in)
			return problem
		},
		run: func(ctx context.Context, h *hands, in agent.Object) agent.ToolResult {
			return h.editCell(spotOf(ctx), in)
		},
	}
}

// cellEdit is what an edit of a notebook does.
type cellEdit struct {
	path     string
	before   *document
	text     string // of the notebook after the edit, with LF
	mode     string // replace, insert, delete
	id       string // of the cell, as the model names it; of a new one, its own
	kind     string // of the cell
	language string
	old      *string // the source before; nil for a new cell
}

// planCell finds out what an edit of a notebook does, or why it cannot be done. It is done
// before the gates and again when the call runs.
func (h *hands) planCell(u *spot, in agent.Object) (*cellEdit, string) {
	e := &cellEdit{path: h.path(str(in, "notebook_path")), mode: cmp.Or(str(in, "edit_mode"), "replace"), id: str(in, "cell_id")}
	kind := str(in, "cell_type")
	switch {
	case filepath.Ext(e.path) != ".ipynb":
		return nil, "File must be a Jupyter notebook (.ipynb file). For editing other file types, use the FileEdit tool."
	case e.mode == "insert" && kind == "":
		return nil, "Cell type is required when using edit_mode=insert."
	case !h.hasRead(e.path):
		return nil, unreadText
	}
	d, refused, err := h.open(u, e.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, h.missing(e.path)
	case err != nil:
		return nil, h.explain(err, e.path, "open")
	case refused != "":
		return nil, refused
	}
	if _, same := h.knows(e.path, d.content); !same {
		return nil, staleText
	}
	e.before = d
	book, cells, err := notebookParts(strings.TrimPrefix(d.text, bom))
	if err != nil {
		return nil, err.Error()
	}
	e.language = languageOf(book)
	at, problem := e.find(cells)
	if problem != "" {
		return nil, problem
	}
	if cells, err = e.apply(book, cells, at, kind, str(in, "new_source"), h.newCellID); err != nil {
		return nil, err.Error()
	}
	if e.text, err = notebookWith(book, cells); err != nil {
		return nil, err.Error()
	}
	if strings.HasPrefix(d.text, bom) {
		e.text = bom + e.text
	}
	if strings.HasSuffix(d.text, "\n") {
		e.text += "\n"
	}
	if len(e.text) > maxFile {
		return nil, fmt.Sprintf("The notebook would have %s after this edit, and at most %s are written.", sizeOf(len(e.text)), sizeOf(maxFile))
	}
	return e, ""
}

var byIndex = regexp.MustCompile(`^cell-(\d+)$`)

// find is the index of the cell that the edit is about; of a new one, that before which it
// comes.
func (e *cellEdit) find(cells []members) (at int, problem string) {
	if e.id == "" && e.mode == "insert" {
		return 0, ""
	}
	if e.id == "" {
		return 0, "Cell ID must be specified when not inserting a new cell."
	}
	at = slices.IndexFunc(cells, func(c members) bool { return c.text("id") == e.id })
	if n := byIndex.FindStringSubmatch(e.id); at < 0 && n != nil {
		i, err := strconv.Atoi(n[1])
		if err != nil || i >= len(cells) {
			return 0, "Cell with index " + n[1] + " does not exist in notebook."
		}
		at = i
	}
	if at < 0 {
		return 0, fmt.Sprintf("Cell with ID %q not found in notebook.", e.id)
	}
	if e.mode == "insert" {
		at++
	}
	return at, ""
}

// apply makes the edit in the list of cells.
func (e *cellEdit) apply(book members, cells []members, at int, kind, source string, newID func() string) ([]members, error) {
	written, err := plainJSON(source)
	if err != nil {
		return nil, err
	}
	if e.mode == "insert" {
		var c members
		e.kind = kind
		c.set("cell_type", textJSON(kind))
		e.id = fmt.Sprintf("cell-%d", at)
		if book.hasCellIDs() {
			e.id = newID()
			c.set("id", textJSON(e.id))
		}
		c.set("source", written)
		c.set("metadata", []byte("{}"))
		if kind == "code" {
			c.set("execution_count", []byte("null"))
			c.set("outputs", []byte("[]"))
		}
		return slices.Insert(cells, at, c), nil
	}
	c := cells[at]
	var before joined
	_ = before.UnmarshalJSON(c.get("source")) // a cell without one has an empty one
	e.old, e.kind = &before.text, cmp.Or(c.text("cell_type"), "code")
	if e.mode == "delete" {
		return slices.Delete(cells, at, at+1), nil
	}
	ran := e.kind == "code"
	e.kind = cmp.Or(kind, e.kind)
	if ran || e.kind == "code" { // what it has printed is of another source
		c.set("execution_count", []byte("null"))
		c.set("outputs", []byte("[]"))
	}
	c.set("source", written)
	c.set("cell_type", textJSON(e.kind))
	cells[at] = c
	return cells, nil
}

func (h *hands) editCell(u *spot, in agent.Object) agent.ToolResult {
	name := str(in, "notebook_path")
	if no := h.linkRefusal(h.path(name)); no != "" {
		return failure("%s", no)
	}
	e, problem := h.planCell(u, in)
	switch {
	case e != nil && u.changed(e.path, e.before):
		return failure("%s", movedText)
	case problem != "":
		return failure("%s", problem)
	}
	stored := e.text
	if e.before.crlf {
		stored = strings.ReplaceAll(stored, "\n", "\r\n") // no line of JSON has another one
	}
	content := e.before.encode(stored)
	if err := h.replace(u, e.path, e.before, content); err != nil {
		return failure("%s", h.writeError(err, e.path))
	}
	h.wrote(e.path, content)
	source := str(in, "new_source")
	structured := agent.Object{
		"new_source": source, "cell_type": e.kind, "language": e.language, "edit_mode": e.mode, "cell_id": e.id, "error": "",
		"notebook_path": name, "original_file": e.before.text, "updated_file": e.text,
	}
	if e.old != nil {
		structured["old_source"] = *e.old
	}
	text := "Updated cell " + e.id + " with " + source
	switch e.mode {
	case "insert":
		text = "Inserted cell " + e.id + " with " + source
	case "delete":
		text = "Deleted cell " + e.id
	}
	return agent.ToolResult{Content: text, Structured: structured}
}

// hasRead reports whether the model has read a file.
func (h *hands) hasRead(path string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	_, read := h.read[path]
	return read
}

func (h *hands) newCellID() string { return fmt.Sprintf("%08x", uint32(h.seams.Rand.Uint64())) }

// hasCellIDs reports whether cells of the notebook have ids: those of format 4.5 and later do.
func (m members) hasCellIDs() bool {
	var major, minor int
	_, _ = protocol.Unmarshal(m.get("nbformat"), &major), protocol.Unmarshal(m.get("nbformat_minor"), &minor) // 0: an old one
	return major > 4 || major == 4 && minor >= 5
}

// errNoNotebook is what the model reads of another kind of file.
var errNoNotebook = errors.New(`Notebook file is not a valid Jupyter notebook (top-level "cells" must be an array of cell objects, each with a string or string-array "source").`) //nolint:staticcheck,revive // what the model reads

func membersOf(object []byte) (all members, err error) {
	d := json.NewDecoder(bytes.NewReader(object))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nil, errNoNotebook
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, errNoNotebook
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, errNoNotebook
		}
		key, _ := name.(string) // of an object
		all.set(key, value)
	}
	return all, nil
}

// notebookParts are the members of a notebook, and those of its cells.
func notebookParts(text string) (book members, cells []members, err error) {
	if !json.Valid([]byte(text)) {
		return nil, nil, errors.New("Notebook file is not valid JSON (it may be truncated, corrupted, or still being written): JSON Parse error: " + jsonProblem([]byte(text)))
	}
	if book, err = membersOf([]byte(text)); err != nil {
		return nil, nil, err
	}
	var list []json.RawMessage
	if protocol.Unmarshal(book.get("cells"), &list) != nil || list == nil {
		return nil, nil, errNoNotebook
	}
	for _, raw := range list {
		c, err := membersOf(raw)
		if err != nil {
			return nil, nil, err
		}
		cells = append(cells, c)
	}
	return book, cells, nil
}

// notebookWith is the text of the notebook with these cells, indented as notebooks are.
func notebookWith(book members, cells []members) (string, error) {
	list := []byte{'['}
	for i, c := range cells {
		if i > 0 {
			list = append(list, ',')
		}
		raw, err := c.object()
		if err != nil {
			return "", err
		}
		list = append(list, raw...)
	}
	book.set("cells", append(list, ']'))
	raw, err := book.object()
	if err != nil {
		return "", err
	}
	var compact, out bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		return "", err
	}
	if err := json.Indent(&out, compact.Bytes(), "", " "); err != nil {
		return "", err
	}
	return out.String(), nil
}

func languageOf(book members) string {
	var meta struct {
		Info struct {
			Name string `json:"name"`
		} `json:"language_info"`
	}
	_ = protocol.Unmarshal(book.get("metadata"), &meta) // none
	return cmp.Or(meta.Info.Name, "python")
}

package embedded

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/agent-troupe/troupe/agent"
)

const (
	unreadText  = "File has not been read yet. Read it first before writing to it."
	currentNote = " (file state is current in your context — no need to Read it back)"
	staleText   = "File has been modified since read, either by the user or by a linter. Read it again before attempting to write it."
)

// write is the tool Write, as Claude Code 2.1.329 has it (observed).
func write() *tool {
	return &tool{
		name:  "Write",
		about: "Writes a file, and the directories above it, in place of what was there.",
		path:  "file_path",
		params: []param{
			{name: "file_path", kind: "string", required: true, aliases: []string{"path"}},
			{name: "content", kind: "string", required: true},
		},
		beside: func(*hands, agent.Object) bool { return false },
		writes: true,
		fix:    fixWrite,
		check: func(h *hands, in agent.Object) string {
			path := h.path(str(in, "file_path"))
			info, err := os.Stat(path)
			switch {
			case errors.Is(err, syscall.ENOTDIR):
				return "Error calling tool (Write): ENOTDIR: not a directory, stat '" + path + "'"
			case err != nil:
				return "" // run says it
			case info.IsDir():
				return str(in, "file_path") + " is a directory, not a file. To create a file inside it, include the file name in file_path."
			}
			if !info.Mode().IsRegular() {
				return path + " exists but is not a regular file (a device, FIFO or socket). Write only creates or overwrites regular files."
			}
			if h.unreadIsError(path) {
				return unreadText
			}
			if content, _, err := h.load(nil, path); err == nil {
				if read, same := h.knows(path, content); read && !same {
					return staleText
				}
			}
			return ""
		},
		run: func(ctx context.Context, h *hands, in agent.Object) agent.ToolResult { return h.write(spotOf(ctx), in) },
	}
}

// fixWrite takes other names of parameters, and leaves a description out, if the input is
// right then. The model reads what was done.
func fixWrite(t *tool, in agent.Object) string {
	fixed, note := maps.Clone(in), ""
	for range t.aliased(fixed) {
		note += " `path` was read as `file_path`."
	}
	if _, there := fixed["description"]; there {
		delete(fixed, "description")
		note += " `description` was ignored."
	}
	if note == "" || len(t.coerce(fixed, slices.Collect(maps.Keys(fixed)))) > 0 { //troupe:maporder their number counts
		return ""
	}
	clear(in)
	maps.Copy(in, fixed)
	return "\n\nNote: Write's parameters are named `file_path` and `content`." + note
}

func (h *hands) write(u *spot, in agent.Object) agent.ToolResult {
	name, text := str(in, "file_path"), str(in, "content")
	path := h.path(name)
	if no := h.linkRefusal(path); no != "" {
		return failure("%s", no)
	}
	before, refused, err := h.open(u, path)
	switch {
	case (err == nil || errors.Is(err, fs.ErrNotExist)) && refused == "" && u.changed(path, before):
		return failure("%s", movedText)
	case errors.Is(err, fs.ErrNotExist):
		return h.created(u, name, path, text)
	case err != nil:
		return failure("%s", h.explain(err, path, "open"))
	case refused != "":
		return failure("%s", refused)
	}
	if read, same := h.knows(path, before.content); read && !same {
		return failure("%s", staleText) // it has changed since the check
	}
	if strings.HasPrefix(before.text, bom) && !strings.HasPrefix(text, bom) {
		text = bom + text
	}
	content := before.encode(text)
	if err := h.replace(u, path, before, content); err != nil {
		return failure("%s", h.writeError(err, path))
	}
	h.wrote(path, content)
	if before.text == "" {
		return created(name, text) // as observed
	}
	return agent.ToolResult{
		Content: "The file " + name + " has been updated successfully." + currentNote,
		Structured: agent.Object{
			"type": "update", "filePath": name, "content": text, "structuredPatch": patch(before.text, text),
			"originalFile": before.text, "userModified": false,
		},
	}
}

// created writes a file that was not there.
func (h *hands) created(u *spot, name, path, text string) agent.ToolResult {
	if err := h.replace(u, path, nil, []byte(text)); err != nil {
		return failure("%s", h.writeError(err, path))
	}
	h.wrote(path, []byte(text))
	return created(name, text)
}

// created is what the model reads of a new file.
func created(name, text string) agent.ToolResult {
	return agent.ToolResult{
		Content: "File created successfully at: " + name + currentNote,
		Structured: agent.Object{
			"type": "create", "filePath": name, "content": text, "structuredPatch": []any{}, "originalFile": nil, "userModified": false,
		},
	}
}

// writeError is an error of replace in the words of Claude Code.
func (h *hands) writeError(err error, path string) string {
	switch {
	case errors.Is(err, errMoved):
		return movedText
	case errors.Is(err, fs.ErrPermission):
		return "EACCES: permission denied, open '" + path + "'"
	case errors.Is(err, syscall.ENOSPC):
		return "ENOSPC: no space left on device, write '" + path + "'"
	}
	return err.Error()
}

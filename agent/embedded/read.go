package embedded

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/agent-troupe/troupe/agent"
)

const (
	maxRead = 256 << 10 // bytes of a file that is read without a limit
	maxFile = 64 << 20  // bytes of a file that is read at all

	maxResult   = 16 << 20 // bytes of lines with their numbers
	numberWidth = 8        // of a number, about
)

// read is the tool Read, as Claude Code 2.1.329 has it (observed).
func read() *tool {
	return &tool{
		name:  "Read",
		about: "Reads a file. Before each line stand its number and a tab. offset is the first line, from 1, and limit how many; without them all of it is read, if it is not too large. Images, PDF files and notebooks are shown as such.",
		reads: true,
		path:  "file_path",
		params: []param{
			{name: "file_path", kind: "string", about: "From the root, or the shell's directory.", required: true},
			{name: "offset", kind: "integer"},
			{name: "limit", kind: "integer"},
			{name: "pages", kind: "string", about: "Of a PDF file, such as 3 or 1-5."},
			{name: "allow_large", kind: "boolean", about: "Also above the limits of size."},
		},
		fix: func(_ *tool, in agent.Object) string {
			delete(in, "description")
			return ""
		},
		check: func(h *hands, in agent.Object) string {
			if problem := pagesProblem(str(in, "pages")); problem != "" {
				return problem
			}
			if device.MatchString(h.path(str(in, "file_path"))) {
				return noDevice(h.path(str(in, "file_path")))
			}
			return binaryProblem(str(in, "file_path"))
		},
		run: func(ctx context.Context, h *hands, in agent.Object) agent.ToolResult {
			return h.readFile(ctx, spotOf(ctx), in)
		},
	}
}

func (h *hands) readFile(ctx context.Context, u *spot, in agent.Object) agent.ToolResult {
	name := str(in, "file_path")
	path := h.path(name) // as the gate has it
	content, _, err := h.load(u, path)
	if path == os.DevNull {
		err = nil // it is empty
	}
	if err != nil {
		return failure("%s", h.explain(err, path, "read"))
	}
	switch kind := imageKind(path); {
	case kind != "":
		return h.imageResult(path, content)
	case strings.EqualFold(filepath.Ext(path), ".pdf"):
		return h.pdfResult(ctx, name, path, str(in, "pages"), content)
	case strings.EqualFold(filepath.Ext(path), ".ipynb"):
		r := notebookResult(name, content)
		if !r.IsError {
			h.saw(path, content)
		}
		return r
	}
	text, note := decoded(content)
	limit, limited := number(in, "limit")
	large, _ := in["allow_large"].(bool)
	if len(content) > maxRead && !large && (!limited || limit <= 0) {
		return failure("File content (%s) exceeds maximum allowed size (256KB). %s", sizeOf(len(content)), readLess)
	}
	if at, _ := number(in, "offset"); text == "" && at <= 1 {
		h.saw(path, content)
		return agent.ToolResult{Content: "<system-reminder>Warning: the file exists but the contents are empty.</system-reminder>", Structured: textFile(name, "", 1, 1, 1)}
	}
	total := strings.Count(text, "\n") + 1
	offset, _ := number(in, "offset")
	first := int(min(max(offset, 1), math.MaxInt32))
	shown := int(offset) // an offset of 0 counts from 0, as observed
	if _, given := in["offset"]; !given || offset < 0 {
		shown = 1
	}
	if first > total {
		return agent.ToolResult{
			Content:    fmt.Sprintf("<system-reminder>Warning: the file exists but is shorter than the provided offset (%d). The file has %d lines.</system-reminder>", first, total),
			Structured: textFile(name, "", 0, first, total),
		}
	}
	count := total - first + 1
	if limited && limit > 0 {
		count = int(min(limit, float64(count)))
	}
	part := lineRange(text, first, count)
	if size := len(part) + numberWidth*count; size > maxResult {
		return failure("These lines have %s with their numbers, and at most %s are read at once. Use offset and limit to read fewer.", sizeOf(size), sizeOf(maxResult))
	}
	about := ""
	if !large {
		switch n := h.tokens(ctx, part); {
		case n <= maxTokens:
		case limited && limit > 0:
			return tooManyTokens(n)
		default:
			part, count, about = firstPage(path, part, first, total, n)
		}
	}
	if count == total && about == "" {
		h.saw(path, content)
	} else {
		h.sawLines(path, content, first, first+count-1)
	}
	var b strings.Builder
	number := shown
	for line := range strings.SplitSeq(part, "\n") {
		if number > shown {
			b.WriteByte('\n')
		}
		b.WriteString(strconv.Itoa(number))
		b.WriteByte('\t')
		b.WriteString(line)
		number++
	}
	result := agent.ToolResult{Content: b.String() + note, Structured: textFile(name, part, count, shown, total), Note: about}
	if about != "" {
		result.Structured.(agent.Object)["file"].(agent.Object)["truncatedByTokenCap"] = true
	}
	return result
}

// lineRange are lines of a text that has them, from the one with the number first.
func lineRange(text string, first, count int) string {
	for ; first > 1; first-- {
		text = text[strings.IndexByte(text, '\n')+1:]
	}
	end := 0
	for ; count > 0; count-- {
		i := strings.IndexByte(text[end:], '\n')
		if i < 0 {
			return text
		}
		end += i + 1
	}
	return text[:end-1]
}

func textFile(name, content string, lines, start, total int) agent.Object {
	return agent.Object{"type": "text", "file": agent.Object{
		"filePath": name, "content": content, "numLines": lines, "startLine": start, "totalLines": total,
	}}
}

// errNoFile is a path that names no file: a pipe, a socket, a device.
var errNoFile = errors.New("no regular file")

// device are paths of devices and of files of a process that are not read. The environment of
// this program can have keys.
var device = regexp.MustCompile(`^/dev/(zero|full|random|urandom|console|ptmx|kmsg|mem|kmem|port|stdin|stdout|stderr|tty.*|fd/.*|pts/.*)$|^/proc/[^/]+/(task/[^/]+/)?(mem|environ|fd/.*|kcore|pagemap)$|^/proc/(kcore|kmsg)$`)

func noDevice(path string) string {
	return "Cannot read '" + path + "': this path names a device or process file that this tool does not read."
}

// explain is an error of the file system in the words of Claude Code (observed).
func (h *hands) explain(err error, path, op string) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return h.missing(path)
	case errors.Is(err, syscall.EISDIR):
		return "EISDIR: illegal operation on a directory, " + op + " '" + path + "'"
	case errors.Is(err, fs.ErrPermission):
		return "EACCES: permission denied, open '" + path + "'"
	case errors.Is(err, syscall.ENOTDIR):
		return "ENOTDIR: not a directory, open '" + path + "'"
	case errors.Is(err, syscall.ELOOP):
		return "Refusing to read " + path + ": where it leads on disk could not be determined (a link on the way could not be examined, or the links do not resolve)."
	case errors.Is(err, errMoved):
		return movedText
	case errors.Is(err, errNoFile):
		return noDevice(path)
	}
	return err.Error()
}

// Notes behind a file whose encoding the tools do not write.
const (
	noteBE   = "This file is UTF-16 big-endian (it starts FE FF), which these tools cannot write."
	noteNUL  = "This file has NUL bytes in its first 8 KB: binary data, UTF-16/UTF-32 without a byte-order mark, or text with embedded NULs."
	noteUTF8 = "This file is not valid UTF-8: it uses a legacy encoding such as Windows-1252, Shift-JIS or GBK, or it is binary. Its undecodable bytes show above as U+FFFD."
	noteEnd  = " Edit and Write will refuse it: change it with a shell command that keeps its encoding, or ask the user whether to convert it to UTF-8.]"
)

// decoded is a file's text with LF at the ends of lines, and a note if the tools cannot write
// such a file.
func decoded(content []byte) (text, note string) {
	switch {
	case bytes.HasPrefix(content, []byte("\xff\xfe")):
		return lf(utf16le(content[2:])), ""
	case bytes.HasPrefix(content, []byte("\xfe\xff")):
		note = noteBE
	case bytes.IndexByte(content[:min(len(content), 8<<10)], 0) >= 0:
		note = noteNUL
	case !utf8.Valid(content):
		note = noteUTF8
	}
	if note != "" {
		note = "\n\n[" + note + noteEnd
	}
	return lf(toUTF8(bytes.TrimPrefix(content, []byte("\xef\xbb\xbf")))), note
}

func lf(s string) string { return strings.TrimSuffix(strings.ReplaceAll(s, "\r\n", "\n"), "\r") }

func utf16le(b []byte) string {
	units := make([]uint16, len(b)/2)
	for i := range units {
		units[i] = uint16(b[2*i]) | uint16(b[2*i+1])<<8
	}
	return string(utf16.Decode(units))
}

// toUTF8 is text in which what is not UTF-8 is U+FFFD.
func toUTF8(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	var out []byte
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		out = utf8.AppendRune(out, r)
		b = b[n:]
	}
	return string(out)
}

// sizeOf is a number of bytes for people.
func sizeOf(n int) string {
	if n < 1024 {
		return strconv.Itoa(n) + " bytes"
	}
	s := strconv.FormatFloat(float64(n)/1024, 'f', 1, 64)
	return strings.TrimSuffix(s, ".0") + "KB"
}

package embedded

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"unicode"
	"unicode/utf16"

	"github.com/agent-troupe/troupe/agent"
)

// edit is the tool Edit, as Claude Code 2.1.329 has it (observed).
func edit() *tool {
	return &tool{
		name:  "Edit",
		about: "Replaces old_string by new_string in a file. old_string must be there exactly once, with its white space, unless replace_all is set. An empty old_string makes a new file.",
		path:  "file_path",
		params: []param{
			{name: "file_path", kind: "string", required: true, aliases: []string{"path"}},
			{name: "old_string", kind: "string", required: true, aliases: []string{"old_str"}},
			{name: "new_string", kind: "string", required: true, aliases: []string{"new_str"}},
			{name: "replace_all", kind: "boolean", otherwise: "false"},
		},
		beside: func(*hands, agent.Object) bool { return false },
		writes: true,
		fix: func(t *tool, in agent.Object) string {
			t.aliased(in)
			for _, name := range []string{"old_str", "new_str"} { // beside the right name
				if _, isText := in[strings.TrimSuffix(name, "str")+"string"].(string); isText {
					delete(in, name)
				}
			}
			return ""
		},
		check: func(h *hands, in agent.Object) string {
			if h.linkRefusal(h.path(str(in, "file_path"))) != "" {
				return "" // run says it
			}
			_, problem := h.planEdit(nil, in)
			return problem
		},
		run: func(ctx context.Context, h *hands, in agent.Object) agent.ToolResult { return h.edit(spotOf(ctx), in) },
	}
}

// edited is what an edit does.
type edited struct {
	path          string
	before        *document // nil: the file is new
	old, next     string    // as they match the file
	given         string    // next as the model gave it, without trailing white space
	text          string    // after the edit, with LF
	stale, unseen bool      // the file has changed since it was read; the model has not seen the place
}

// planEdit finds out what an edit does, or why it cannot be done. It is done before the
// gates and again when the call runs, so a file that has changed meanwhile is seen.
func (h *hands) planEdit(u *spot, in agent.Object) (*edited, string) {
	name, old, next := str(in, "file_path"), str(in, "old_string"), str(in, "new_string")
	all, _ := in["replace_all"].(bool)
	e := &edited{path: h.path(name)}
	if old == next {
		return nil, "No changes to make: old_string and new_string are exactly the same."
	}
	d, refused, err := h.open(u, e.path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && old == "":
		e.text = next
		return e, ""
	case errors.Is(err, fs.ErrNotExist):
		return nil, h.missing(e.path)
	case errors.Is(err, syscall.EISDIR):
		return nil, "Error calling tool (Edit): EISDIR: illegal operation on a directory, read"
	case errors.Is(err, syscall.ENOTDIR):
		return nil, "Error calling tool (Edit): ENOTDIR: not a directory, stat '" + e.path + "'"
	case errors.Is(err, errNoFile):
		return nil, e.path + " exists but is not a regular file (a device, FIFO or socket). Edit only changes regular files."
	case err != nil:
		return nil, h.explain(err, e.path, "open")
	case filepath.Ext(e.path) == ".ipynb":
		return nil, "File is a Jupyter Notebook. Use the NotebookEdit to edit this file."
	case refused != "":
		return nil, refused
	}
	e.before = d
	if old == "" {
		if strings.TrimSpace(strings.TrimPrefix(d.text, bom)) != "" {
			return nil, "Cannot create new file - file already exists."
		}
		e.text = next
		if strings.HasPrefix(d.text, bom) {
			e.text = bom + next
		}
		return e, ""
	}
	if strips(e.path) {
		next = trailing.ReplaceAllString(next, "$1")
	}
	if h.unreadIsError(e.path) {
		return nil, unreadText
	}
	e.old, e.next, e.given = match(d.text, old, next)
	read, same := h.knows(e.path, d.content)
	e.stale, e.unseen = read && !same, !read || !same || !h.whole(e.path)
	n := strings.Count(d.text, e.old)
	switch {
	case n == 0 && e.stale:
		return nil, staleText
	case n == 0:
		return nil, "String to replace not found in file.\nString: " + old + escapeNote(old)
	case n > 1 && !all && e.stale:
		return nil, staleText
	case n > 1 && !all:
		return nil, fmt.Sprintf("Found %d matches of the string to replace, but replace_all is false. To replace all occurrences, set replace_all to true. To replace only one occurrence, please provide more context to uniquely identify the instance.\nString: %s", n, old)
	}
	what := e.old
	if e.next == "" && !strings.HasSuffix(what, "\n") && strings.Contains(d.text, what+"\n") {
		what += "\n" // a deleted line goes with its end
	}
	times := 1
	if all {
		times = strings.Count(d.text, what)
	}
	if size := len(d.text) + times*(len(e.next)-len(what)); size > maxFile {
		return nil, fmt.Sprintf("The file would have %s after this edit, and at most %s are written. Replace fewer places, or with a shorter text.", sizeOf(size), sizeOf(maxFile))
	}
	e.text = strings.Replace(d.text, what, e.next, times)
	return e, ""
}

// escapeNote is what the model reads if escapes were tried, too, and did not match.
func escapeNote(old string) string {
	if !strings.ContainsFunc(old, func(r rune) bool { return r > unicode.MaxASCII }) && !escapes.MatchString(old) {
		return ""
	}
	return "\n(note: Edit also tried swapping \\uXXXX escapes and their characters; neither form matched, so the mismatch is likely elsewhere in old_string. Re-read the file and copy the exact surrounding text.)"
}

// strips reports whether white space at the end of lines is left out. In Markdown it says
// something.
func strips(path string) bool {
	ext := strings.ToLower(filepath.Ext(path))
	return ext != ".md" && ext != ".mdx"
}

// trailing is white space at the end of a line.
var trailing = regexp.MustCompile(`[ \t\v\f\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff}]+(\r\n|\n|\r|$)`)

func (h *hands) edit(u *spot, in agent.Object) agent.ToolResult {
	name := str(in, "file_path")
	all, _ := in["replace_all"].(bool)
	if no := h.linkRefusal(h.path(name)); no != "" {
		return failure("%s", no)
	}
	e, problem := h.planEdit(u, in)
	switch {
	case e != nil && u.changed(e.path, e.before):
		return failure("%s", movedText)
	case problem != "":
		return failure("%s", problem)
	}
	original := ""
	stored := e.text
	if e.before != nil {
		original = e.before.text
		if e.before.crlf {
			stored = strings.ReplaceAll(strings.ReplaceAll(stored, "\r\n", "\n"), "\n", "\r\n")
		}
	}
	content := e.before.encode(stored)
	if err := h.replace(u, e.path, e.before, content); err != nil {
		return failure("%s", h.writeError(err, e.path))
	}
	if !e.unseen || e.before == nil || e.old == "" {
		h.wrote(e.path, content)
	} else {
		h.carry(e.path, content)
	}
	structured := agent.Object{
		"filePath": name, "oldString": e.old, "newString": e.given, "originalFile": original,
		"structuredPatch": patch(original, e.text), "userModified": false, "replaceAll": all,
	}
	if e.old == "" {
		structured["newString"] = str(in, "new_string")
	}
	text := "The file " + name + " has been updated successfully."
	if all {
		text = "The file " + name + " has been updated. All occurrences were successfully replaced."
	}
	switch {
	case e.stale:
		structured["staleRecovered"], structured["contentNotInModelContext"] = true, true
		text += " (note: the file had been modified on disk since you last read it — the edit applied cleanly, but the file contains other changes not in your context. Read it before edits that depend on surrounding content.)"
	case e.unseen && e.old != "":
		structured["contentNotInModelContext"] = true
	default:
		text += currentNote
	}
	return agent.ToolResult{Content: text, Structured: structured}
}

// match finds old in the text as it stands there, with the quotes of the text, or with
// characters where old has their escapes, or the other way round; next takes the same form.
// If it is not there, both are returned as they are. shown is next as tool_use_result has it.
func match(text, old, next string) (there, fitting, shown string) {
	if strings.Contains(text, old) {
		return old, next, next
	}
	plain, runes := straight(old), []rune(text)
	if at := strings.Index(straight(text), plain); at >= 0 {
		from := len([]rune(straight(text)[:at]))
		there := string(runes[from : from+len([]rune(plain))])
		given := next
		if there != plain {
			next = curled(next, there)
		}
		return there, next, given
	}
	if other := unescaped(old); other != old && strings.Contains(text, other) {
		return other, unescaped(next), unescaped(next)
	}
	for _, format := range []string{"%04x", "%04X"} {
		if other := escapedText(old, format); other != old && strings.Contains(text, other) {
			return other, escapedText(next, format), next
		}
	}
	if other := longer(old); other != old && strings.Contains(text, other) {
		return other, longer(next), longer(next)
	}
	return old, next, next
}

// longer puts in texts that a model may not be able to write as they are, in place of what it writes
// for them (as of Claude Code 2.1.329, observed).
func longer(s string) string {
	return strings.NewReplacer(
		"<fnr>", "<function_results>", "<n>", "<name>", "</n>", "</name>", "<o>", "<output>", "</o>", "</output>", "<e>", "<error>", "</e>", "</error>",
		"<s>", "<system>", "</s>", "</system>", "<r>", "<result>", "</r>", "</result>", "< META_START >", "<META_START>", "< META_END >", "<META_END>",
		"< EOT >", "<EOT>", "< META >", "<META>", "< SOS >", "<SOS>", "\n\nH:", "\n\nHuman:", "\n\nA:", "\n\nAssistant:",
	).Replace(s)
}

// straight is text with straight quotes, rune for rune.
func straight(s string) string {
	return strings.NewReplacer("“", `"`, "”", `"`, "‘", "'", "’", "'").Replace(s)
}

// curled is text with the curly quotes that the model's example has.
func curled(s, like string) string {
	double, single := strings.ContainsAny(like, "“”"), strings.ContainsAny(like, "‘’")
	var b strings.Builder
	before := ' '
	for _, r := range s {
		opens := strings.ContainsRune(" \t\n([{—", before)
		before = r
		switch {
		case r == '"' && double && opens:
			r = '“'
		case r == '"' && double:
			r = '”'
		case r == '\'' && single && opens:
			r = '‘'
		case r == '\'' && single:
			r = '’'
		}
		b.WriteRune(r)
	}
	return b.String()
}

var escapes = regexp.MustCompile(`(\\u[0-9a-fA-F]{4})+`)

// escapedText is text with \uXXXX for characters beyond ASCII.
func escapedText(s, format string) string {
	var b strings.Builder
	for _, r := range s {
		if r <= unicode.MaxASCII {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&b, `\u`+format, unit)
		}
	}
	return b.String()
}

// unescaped is text with characters for \uXXXX.
func unescaped(s string) string {
	return escapes.ReplaceAllStringFunc(s, func(run string) string {
		var units []uint16
		for e := run; e != ""; e = e[6:] {
			n, _ := strconv.ParseUint(e[2:6], 16, 16) // it has matched
			units = append(units, uint16(n))
		}
		return string(utf16.Decode(units))
	})
}

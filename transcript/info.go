package transcript

import (
	"bytes"
	"cmp"
	"io"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// Info describes a session.
type Info struct {
	SessionID    string    `json:"sessionId"`
	Summary      string    `json:"summary"` // the best text that there is: a title, the last prompt, the first prompt
	LastModified time.Time `json:"lastModified"`
	FileSize     int64     `json:"fileSize"`              // of the transcript, in bytes; 0: a store listed it without loading it
	CustomTitle  string    `json:"customTitle,omitempty"` // of the user, else of the model; "": none
	FirstPrompt  string    `json:"firstPrompt,omitempty"` // one line, at most 200 characters
	GitBranch    string    `json:"gitBranch,omitempty"`   // HEAD outside a repository
	Cwd          string    `json:"cwd,omitempty"`
	Tag          string    `json:"tag,omitempty"`
	CreatedAt    time.Time `json:"createdAt,omitzero"` // the first timestamp in the file; zero: none
	// Archived is nil if the session was never archived, and false if it was taken out of
	// the archive or got a prompt since. Qoder has no archive.
	Archived *bool  `json:"archived,omitempty"`
	Path     string `json:"path"` // of the transcript, below the configuration directory, with slashes; "": it is in a store
}

// windowBytes is how much Claude's SDK reads at each end of a file for its lists.
const windowBytes = 64 << 10

// scanner makes the descriptions of sessions. It has the buffers for many.
type scanner struct {
	head, tail []byte
}

// ends reads the first and the last 64 KiB of a file; one slice if the file is smaller.
func (sc *scanner) ends(r io.ReaderAt, size int64) (head, tail []byte, err error) {
	if sc.head == nil {
		sc.head, sc.tail = make([]byte, windowBytes), make([]byte, windowBytes)
	}
	n, err := r.ReadAt(sc.head[:min(size, windowBytes)], 0)
	if err != nil && n == 0 {
		return nil, nil, err
	}
	head = sc.head[:n]
	if size <= windowBytes {
		return head, head, nil
	}
	n, err = r.ReadAt(sc.tail, size-windowBytes)
	if err != nil && n == 0 {
		return nil, nil, err
	}
	return head, sc.tail[:n], nil
}

// facts is what a file says about its session.
type facts struct {
	title, aiTitle     string
	titled             bool // there is a custom title, perhaps an empty one
	headTitle, headAI  string
	lastPrompt         string
	summary            string
	firstPrompt        string
	picture            string // Image or Document
	timestamp          string
	branch             string
	tag                string
	cwd, relocated     string
	sidechain          bool
	entrypoint, kind   string
	commandPrompt      string
	firstPromptDecided bool
}

// windows reads the facts from the two ends of a file, as Claude's SDK does.
func windows(head, tail []byte) *facts {
	f := &facts{}
	first := head
	if i := bytes.IndexByte(head, '\n'); i >= 0 {
		first = head[:i]
	}
	f.sidechain = bytes.Contains(first, []byte(`"isSidechain":true`)) || bytes.Contains(first, []byte(`"isSidechain": true`))
	f.title, f.titled = lastMember(tail, typeCustomTitle, "customTitle")
	f.aiTitle, _ = lastMember(tail, typeAITitle, "aiTitle")
	if len(head) == 0 || &head[0] != &tail[0] { // the file is larger than both
		f.headTitle, _ = lastMember(head, typeCustomTitle, "customTitle")
		f.headAI, _ = lastMember(head, typeAITitle, "aiTitle")
	}
	f.lastPrompt, _ = lastMember(tail, "", "lastPrompt")
	f.summary, _ = lastMember(tail, "", "summary")
	f.tag, _ = lastMember(tail, typeTag, "tag")
	f.relocated, _ = lastMember(tail, typeRelocated, "relocatedCwd")
	if f.branch, _ = lastMember(tail, "", "gitBranch"); f.branch == "" {
		f.branch = firstMember(head, "gitBranch")
	}
	f.cwd = firstMember(head, "cwd")
	f.timestamp = firstMember(head, "timestamp")
	if f.entrypoint = firstMember(head, "entrypoint"); f.entrypoint == "" {
		f.entrypoint, _ = lastMember(tail, "", "entrypoint")
	}
	f.kind = firstMember(head, "sessionKind")
	for line := range bytes.Lines(head) {
		if f.firstPromptDecided {
			break
		}
		if bytes.Contains(line, []byte(`"user"`)) {
			f.addPrompt(parseLine(bytes.TrimSpace(line)), true)
		}
	}
	return f
}

// lastPromptTime returns the time of the newest prompt in the two ends.
func lastPromptTime(head, tail []byte) time.Time {
	var newest time.Time
	for _, part := range [][]byte{head, tail} {
		for line := range bytes.Lines(part) {
			if !bytes.Contains(line, []byte(`"user"`)) || bytes.Contains(line, []byte(`"tool_result"`)) {
				continue
			}
			l := parseLine(bytes.TrimSpace(line))
			if l.Damage != "" || l.Type() != typeUser || l.Meta() || l.Sidechain() || isTrue(l.head.summary) {
				continue
			}
			if at := l.Time(); at.After(newest) {
				newest = at
			}
		}
	}
	return newest
}

// whole reads the facts from all lines, as Qoder's SDK does.
func whole(r io.Reader) (*facts, error) {
	f := &facts{}
	d := NewDecoder(r)
	first := true
	for {
		l, err := d.Next()
		if err == io.EOF { //nolint:errorlint // the decoder's own
			return f, nil
		}
		if err != nil {
			return nil, err
		}
		if l.Damage != "" {
			continue
		}
		if first {
			f.sidechain, first = l.Sidechain(), false
		}
		f.addLine(l)
	}
}

func (f *facts) addLine(l *Line) {
	switch l.Type() {
	case typeCustomTitle:
		f.title, f.titled = text(get(l.Raw, "customTitle")), true
	case typeAITitle:
		f.aiTitle = text(get(l.Raw, "aiTitle"))
	case typeTag:
		f.tag = text(get(l.Raw, "tag"))
	case typeLastPrompt:
		f.lastPrompt = text(get(l.Raw, "lastPrompt"))
	case typeRelocated:
		f.relocated = text(get(l.Raw, "relocatedCwd"))
	case typeUser:
		if !f.firstPromptDecided {
			f.addPrompt(l, false)
		}
	}
	if f.timestamp == "" {
		f.timestamp = l.Timestamp()
	}
	m := membersOf(l.Raw)
	for m.next() {
		switch string(m.key) {
		case "cwd":
			if f.cwd == "" {
				f.cwd = text(m.value)
			}
		case "gitBranch":
			if b := text(m.value); b != "" {
				f.branch = b
			}
		case "summary": // of a line of any type, as for Claude
			if isString(m.value) {
				f.summary = text(m.value)
			}
		}
	}
}

// addPrompt looks for the first prompt in a user line.
func (f *facts) addPrompt(l *Line, pictures bool) {
	if l.Damage == "" && l.Type() == typeUser && !bytes.Contains(l.Raw, []byte(`"tool_result"`)) {
		f.addText(l, pictures)
	}
}

// addText looks for the first prompt in a user line without tool results.
func (f *facts) addText(l *Line, pictures bool) {
	if l.Meta() || isTrue(l.head.summary) || !isObject(l.head.message) {
		return
	}
	content := get(l.head.message, "content")
	var texts []string
	if s, ok := unquote(content); ok {
		texts = append(texts, s)
	} else if isArray(content) {
		blocks := elementsOf(content)
		for blocks.next() {
			if !isObject(blocks.value) {
				continue
			}
			switch text(get(blocks.value, "type")) {
			case "text":
				if s, ok := unquote(get(blocks.value, "text")); ok {
					texts = append(texts, s)
				}
			case "image":
				if pictures && f.picture == "" {
					f.picture = "Image"
				}
			case "document":
				if pictures && f.picture == "" {
					f.picture = "Document"
				}
			}
		}
	}
	for _, s := range texts {
		if prompt, ok := f.prompt(s); ok {
			f.firstPrompt, f.firstPromptDecided = prompt, true
			return
		}
	}
}

// prompt returns the text as a first prompt, and false if it is not a prompt.
func (f *facts) prompt(s string) (string, bool) {
	s = strings.TrimSpace(strings.ReplaceAll(s, "\n", " "))
	if s == "" {
		return "", false
	}
	if name, ok := between(s, "<command-name>", "</command-name>"); ok {
		f.commandPrompt = cmp.Or(f.commandPrompt, name)
		return "", false
	}
	if command, ok := between(s, "<bash-input>", "</bash-input>"); ok {
		return "! " + strings.TrimSpace(command), true
	}
	if isTagged(s) || strings.HasPrefix(s, "[Request interrupted by user") {
		return "", false
	}
	if units := utf16.Encode([]rune(s)); len(units) > 200 {
		if utf16.IsSurrogate(rune(units[199])) && utf16.IsSurrogate(rune(units[200])) {
			units = units[:199]
		}
		s = strings.TrimSpace(string(utf16.Decode(units[:min(len(units), 200)]))) + "…"
	}
	return s, true
}

func between(s, from, to string) (string, bool) {
	_, rest, ok := strings.Cut(s, from)
	if !ok {
		return "", false
	}
	inner, _, ok := strings.Cut(rest, to)
	return inner, ok
}

// isTagged reports whether the text begins with a tag, as text of the agent does.
func isTagged(s string) bool {
	if len(s) < 3 || s[0] != '<' || s[1] < 'a' || s[1] > 'z' {
		return false
	}
	for i := 2; i < len(s); i++ {
		switch c := s[i]; {
		case c == '>' || c == ' ':
			return true
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return false
}

// lastMember returns the member of the last line that has it as a string; typ is the type
// that the line must have, "" for any. found is also true for an empty string.
func lastMember(lines []byte, typ, member string) (value string, found bool) {
	key := []byte(`"` + member + `"`)
	if !bytes.Contains(lines, key) {
		return "", false // much faster than the search from the end
	}
	for end := len(lines); end > 0; {
		from := bytes.LastIndexByte(lines[:end-1], '\n') + 1
		line := bytes.TrimSpace(lines[from:end])
		end = from
		if !bytes.Contains(line, key) {
			continue
		}
		if v, ok := memberOf(line, typ, member); ok {
			return v, true
		}
		// A line of Claude's SDK may be glued to a line that was not ended.
		if j := bytes.LastIndex(line, []byte(`{"type":`)); j > 0 {
			if v, ok := memberOf(line[j:], typ, member); ok {
				return v, true
			}
		}
	}
	return "", false
}

// firstMember returns the member of the first line that has it as a string that is not
// empty.
func firstMember(lines []byte, member string) string {
	key := []byte(`"` + member + `"`)
	for line := range bytes.Lines(lines) {
		if bytes.Contains(line, key) {
			if v, ok := memberOf(bytes.TrimSpace(line), "", member); ok && v != "" {
				return v
			}
		}
	}
	return ""
}

// memberOf returns a string member of a line that is one JSON object.
func memberOf(line []byte, typ, member string) (string, bool) {
	m := members{c: jsonscan.StrictObject(line)}
	var value []byte
	kind := ""
	for m.next() {
		switch string(m.key) {
		case member:
			value = m.value
		case "type":
			kind = typeName(m.value)
		}
	}
	if !m.c.Whole() || typ != "" && kind != typ {
		return "", false
	}
	return unquote(value)
}

package fleet

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/url"
	"os"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/sdk"
)

// Redactor returns what hides, in texts, the secrets that the job knows of itself and of this process,
// as its report does: a text that it changes should not leave this machine.
func (j *Job) Redactor() *strings.Replacer {
	tasks := make([]*Task, len(j.Tasks))
	for i := range j.Tasks {
		tasks[i] = &j.Tasks[i]
	}
	return j.secrets(tasks).replacer()
}

// redactor returns what hides the secrets that the job knows: the values of variables whose
// names say so, of this process, of the options of the job and its tasks and of their MCP
// servers, and all headers of MCP servers. They are hidden also as JSON escapes them, once and
// twice, because transcripts have JSON in JSON, and as URLs do.
func (r *reporter) redactor(end *closing) *strings.Replacer {
	s := r.job.secrets(end.tasks)
	for _, left := range end.remains {
		s.options(left.opts)
	}
	return s.replacer()
}

// secrets are those of this process and of the options of the job and its tasks.
func (j *Job) secrets(tasks []*Task) secrets {
	s := secrets{}
	for _, kv := range os.Environ() {
		name, value, _ := strings.Cut(kv, "=")
		s.variable(name, value)
	}
	s.options(j.Options)
	for _, t := range tasks {
		if len(t.Options) > 0 {
			if o, err := overlay(&sdk.Options{}, t.Options); err == nil { // it was checked before
				s.options(o)
			}
		}
	}
	return s
}

// secrets is a set.
type secrets map[string]struct{}

func (s secrets) options(o *sdk.Options) {
	if o == nil {
		return
	}
	for name, value := range o.Env { //troupe:maporder a set
		s.variable(name, value)
	}
	for _, server := range o.MCPServers { //troupe:maporder a set
		for name, value := range server.Env {
			s.variable(name, value)
		}
		for _, value := range server.Headers { //troupe:maporder a set
			s.add(value)
			if _, token, ok := strings.Cut(value, " "); ok { // Bearer and its like
				s.add(token)
			}
		}
	}
}

// variable adds the value if the name says that it is secret.
func (s secrets) variable(name, value string) {
	if secretName(name) {
		s.add(value)
	}
}

// secretName reports whether the name of a variable says that its value is secret.
func secretName(name string) bool {
	name = strings.ToUpper(name)
	return slices.ContainsFunc([]string{"KEY", "TOKEN", "SECRET", "PASSWORD", "AUTH"}, func(word string) bool { return strings.Contains(name, word) })
}

// add adds a value without the space around it, which a mounted file of secrets often has, and
// each of its lines, which diffs and quotes show one by one.
func (s secrets) add(value string) {
	const (
		least     = 8  // shorter ones stand in texts by chance
		leastLine = 16 // and so do shorter lines
	)
	value = strings.TrimSpace(value)
	if len(value) < least {
		return
	}
	s[value] = struct{}{}
	if !strings.ContainsAny(value, "\r\n") {
		return
	}
	for line := range strings.FieldsFuncSeq(value, func(r rune) bool { return r == '\r' || r == '\n' }) {
		if line = strings.TrimSpace(line); len(line) >= leastLine {
			s[line] = struct{}{}
		}
	}
}

func (s secrets) replacer() *strings.Replacer {
	written := secrets{}
	for value := range s { //troupe:maporder a set
		for _, value := range []string{value, url.QueryEscape(value), url.PathEscape(value)} {
			written[value] = struct{}{}
			for _, html := range []bool{false, true} {
				once := escaped(value, html)
				written[once] = struct{}{}
				written[escaped(once, html)] = struct{}{}
			}
		}
	}
	all := make([]string, 0, len(written))
	for value := range written {
		all = append(all, value)
	}
	// The first that fits is replaced: of two that begin alike it has to be the longer one.
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(len(b)-len(a), strings.Compare(a, b)) })
	pairs := make([]string, 0, 2*len(all))
	for _, value := range all {
		pairs = append(pairs, value, "[redacted]")
	}
	return strings.NewReplacer(pairs...)
}

// escaped is a text as it stands inside a string of JSON. html also escapes what is special in
// HTML, as package encoding/json does by default.
func escaped(text string, html bool) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(html)
	_ = e.Encode(text) // a string, to memory
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSuffix(b.String(), "\n"), `"`), `"`)
}

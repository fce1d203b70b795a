package sdk

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/internal/optionfile"
)

// schemaFile describes what LoadOptions reads. It is made from Options: see
// docs/schema_test.go.
//
//go:embed options.schema.json
var schemaFile []byte

// optionsSchema is schemaFile, which takes 2 ms to read.
var optionsSchema = sync.OnceValues(func() (*optionfile.Schema, error) { //nolint:gochecknoglobals // read once, then never changed
	return optionfile.ParseSchema(schemaFile)
})

// LoadOption changes how [LoadOptions] reads.
type LoadOption func(*loadSettings)

type loadSettings struct {
	lookup func(string) (string, bool)
}

// ExpandWith looks variables up in f for the values that ask for it; the
// default is the environment of this process.
func ExpandWith(f func(name string) (string, bool)) LoadOption {
	return func(s *loadSettings) { s.lookup = f }
}

// LoadOptions reads options from YAML or JSON. Keys are those of the vendors'
// documents, as in the json tags of [Options]. Callbacks, Backend and what else
// is Go has no key.
//
// Forms are the vendors' too: settings is an object, a path, or JSON text;
// mcpServers an object or a path; systemPrompt a text, a list, or an object of
// type preset, custom or file; tools a list, "all", or an object of type
// preset; taskBudget a number or {total}; a null in env takes the variable
// away. pathToClaudeCodeExecutable, pathToQoderCLIExecutable and cliPath are
// pathToExecutable. controlRequestTimeoutMs (Limits.Control; 0 is no limit) and
// closeGraceMs (Graces.EOF) are keys, too. A duration is a text such as 90s; with
// Ms behind its key it is a number of milliseconds. What has a field Extra takes such keys under
// extra. $schema is left to editors.
//
// Nothing is taken from the environment unless a value asks for it:
// {"$env": "Bearer ${TOKEN}"} is that text with ${NAME} and ${NAME:-default}
// replaced. It may stand for any text, number or boolean. Elsewhere ${NAME}
// stays as it is.
//
// A null is an option that is not given; in a list, or under a name of the
// user's, it is a mistake. Unknown keys, wrong types, keys that are missing or
// given twice and variables that are not set are reported all at once, each as
// a *[LoadError] with line and column, of more than a thousand the first; see
// [LoadErrors]. What cannot work is found later, by whatever opens a session.
// The options are nil unless the error is. A file has at most 4 MiB, and one in
// YAML 20,000 words, because its parser is slow with more; JSON may have any number.
func LoadOptions(r io.Reader, opts ...LoadOption) (*Options, error) {
	return loadOptions("", r, opts)
}

// LoadOptionsFile is [LoadOptions] of a file. Paths in it are as they are: the
// agent resolves them in Cwd.
func LoadOptionsFile(path string, opts ...LoadOption) (*Options, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("load options: %w", err)
	}
	defer func() { _ = f.Close() }()
	return loadOptions(path, f, opts)
}

func loadOptions(file string, in io.Reader, opts []LoadOption) (*Options, error) {
	raw, err := io.ReadAll(io.LimitReader(in, optionfile.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("load options: %w", err)
	}
	s := &loadSettings{lookup: os.LookupEnv}
	for _, o := range opts {
		o(s)
	}
	schema, err := optionsSchema()
	if err != nil {
		return nil, fmt.Errorf("load options: %w", err)
	}
	doc, mistakes := schema.Read(raw, s.lookup)
	if len(mistakes) > 0 {
		all := make([]error, len(mistakes))
		for i, m := range mistakes {
			all[i] = &LoadError{file, m.Line, m.Column, m.Key, m.Problem, m.Fix}
		}
		return nil, errors.Join(all...)
	}
	var f fileOptions
	if err := json.Unmarshal(doc, &f); err != nil {
		return nil, &LoadError{File: file, Problem: "does not decode: " + err.Error()}
	}
	return f.options(), nil
}

// fileOptions are options with the vendors' keys for what is not one field of
// [Options].
type fileOptions struct {
	Options
	ControlRequestTimeout Opt[time.Duration] `json:"controlRequestTimeout"` // of Limits.Control; 0 is no limit
	CloseGrace            Opt[time.Duration] `json:"closeGrace"`            // of Graces.EOF; 0 is no wait
}

func (f *fileOptions) options() *Options {
	if d, given := f.ControlRequestTimeout.Value(); given {
		if f.Limits.Control = d; d == 0 {
			f.Limits.Control = -1
		}
	}
	if d, given := f.CloseGrace.Value(); given {
		f.Graces.EOF = max(d, time.Nanosecond) // 0 is the backend's own
	}
	return &f.Options
}

// LoadError is what is wrong in a configuration, and where.
type LoadError struct {
	File         string // as given; "" for what came from a reader
	Line, Column int    // from 1; 0 when it is about the whole
	Key          string // path of the key, such as mcpServers.db.command; may be ""
	Problem      string // what is wrong
	Fix          string // what to do; may be ""
}

// Error implements error.
func (e *LoadError) Error() string {
	var b strings.Builder
	b.WriteString(cmp.Or(e.File, "options"))
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": ")
	if e.Key != "" {
		b.WriteString(e.Key + " ")
	}
	b.WriteString(e.Problem)
	if e.Fix != "" {
		b.WriteString("; " + e.Fix)
	}
	return b.String()
}

// LoadErrors are all of a configuration's errors, by place.
func LoadErrors(err error) []*LoadError {
	var all []*LoadError
	switch e := err.(type) { //nolint:errorlint // this walks the tree that errors.As stops in
	case *LoadError:
		all = append(all, e)
	case interface{ Unwrap() error }:
		all = LoadErrors(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, sub := range e.Unwrap() {
			all = append(all, LoadErrors(sub)...)
		}
	}
	return all
}

package sdk

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/internal/optionfile"
	"github.com/agent-troupe/troupe/schema"
)

// optionsSchema describes what LoadOptions reads. It takes 2 ms to read.
var optionsSchema = sync.OnceValues(func() (*optionfile.Schema, error) { //nolint:gochecknoglobals // read once, then never changed
	return optionfile.ParseSchema(schema.JSON("options"))
})

// LoadOption is an option of [LoadOptions].
type LoadOption func(*loadSettings)

type loadSettings struct {
	lookup func(string) (string, bool)
}

// ExpandWith makes [LoadOptions] look variables up with f. Without it they are looked up
// in the environment of this process.
func ExpandWith(f func(name string) (string, bool)) LoadOption {
	return func(s *loadSettings) { s.lookup = f }
}

// LoadOptions reads options from YAML or JSON. The keys are those of the vendors'
// documents, as in the json tags of [Options]. Callbacks, Backend and other Go values
// have no key.
//
// Values have the vendors' forms, too:
//
//   - settings is an object, a path, or JSON text; mcpServers is an object or a path.
//   - systemPrompt is a text, a list, or an object of type preset, custom or file.
//   - tools is a list, "all", or an object of type preset.
//   - taskBudget is a number or {total}. A null in env removes the variable.
//   - pathToClaudeCodeExecutable, pathToQoderCLIExecutable and cliPath are other names
//     of pathToExecutable.
//   - controlRequestTimeoutMs sets Limits.Control (0: no limit), closeGraceMs sets
//     Graces.EOF.
//   - A duration is a text such as 90s. A key with the suffix Ms takes a number of
//     milliseconds instead.
//   - Keys for a field Extra go under extra. $schema is ignored.
//
// Environment variables are read only where a value asks for it:
// {"$env": "Bearer ${TOKEN}"} is that text with ${NAME} and ${NAME:-default} replaced.
// It may be used for any text, number or boolean. In all other texts ${NAME} is not
// replaced.
//
// A null value means that the option is not given. In a list, or under a name that you
// chose, such as that of a server, null is an error. Unknown keys, wrong types, missing
// keys, duplicate keys and variables that are not set are reported together, each as a
// *[LoadError] with line and column; at most the first thousand are reported. See
// [LoadErrors]. Options that cannot work are found when a session is opened. If the
// error is not nil, the options are nil. Input may have at most 4 MiB. YAML may have at
// most 20,000 words, because its parser is slow with more; JSON has no such limit.
func LoadOptions(r io.Reader, opts ...LoadOption) (*Options, error) {
	return loadOptions("", r, opts)
}

// LoadOptionsFile is [LoadOptions] for the file at path. Relative paths in the file are
// relative to Options.Cwd, not to the file.
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
	ControlRequestTimeout Opt[time.Duration] `json:"controlRequestTimeout"` // of Limits.Control; 0: no limit
	CloseGrace            Opt[time.Duration] `json:"closeGrace"`            // of Graces.EOF; 0: no wait
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

// LoadError is one error of a configuration that [LoadOptions] read.
type LoadError struct {
	File         string // the path that LoadOptionsFile was given; "" for LoadOptions
	Line, Column int    // from 1; 0 if the error is about the whole file
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

// LoadErrors returns every *[LoadError] in err, ordered by their place in the file.
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

package sdk

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

const (
	maxConfig   = 4 << 20 // bytes of a configuration
	maxMistakes = 1000    // that are told one by one
)

// LoadOption changes how [LoadOptions] reads.
type LoadOption func(*configReader)

// ExpandWith looks variables up in f for the values that ask for it; the
// default is the environment of this process.
func ExpandWith(f func(name string) (string, bool)) LoadOption {
	return func(r *configReader) { r.lookup = f }
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
// pathToExecutable. A duration is a text such as 90s; with Ms behind its key it
// is a number of milliseconds. What has a field Extra takes such keys under
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
// The options are nil unless the error is. Write what has many thousand keys in
// JSON: the parser of YAML is slow with them.
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
	raw, err := io.ReadAll(io.LimitReader(in, maxConfig+1))
	if err != nil {
		return nil, fmt.Errorf("load options: %w", err)
	}
	r := &configReader{file: file, lookup: os.LookupEnv}
	for _, o := range opts {
		o(r)
	}
	o := &Options{}
	if len(raw) > maxConfig {
		r.fail(nil, "", fmt.Sprintf("is longer than %d bytes", maxConfig), "move documents to files of their own")
	} else if root := r.parse(raw); root != nil {
		r.options(root, o)
	}
	if len(r.errs) > 0 {
		return nil, r.problems()
	}
	return o, nil
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

// configReader reads one configuration.
type configReader struct {
	file   string
	lookup func(string) (string, bool)
	errs   []*LoadError
	more   int      // mistakes that are not told
	unset  []string // variables that are null
}

// fail reports a problem at n, which may be nil.
func (r *configReader) fail(n *configNode, key, problem, fix string) {
	if r.full() {
		r.more++
		return
	}
	e := &LoadError{File: r.file, Key: key, Problem: problem, Fix: fix}
	if n != nil {
		e.Line, e.Column = n.line, n.column
	}
	r.errs = append(r.errs, e)
}

// full reports whether enough mistakes have been told.
func (r *configReader) full() bool { return len(r.errs) >= maxMistakes }

func (r *configReader) problems() error {
	slices.SortStableFunc(r.errs, func(a, b *LoadError) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	all := make([]error, len(r.errs), len(r.errs)+1)
	for i, e := range r.errs {
		all[i] = e
	}
	if r.more > 0 {
		all = append(all, &LoadError{File: r.file, Problem: fmt.Sprintf("has %d mistakes more", r.more), Fix: "begin with those"})
	}
	return errors.Join(all...)
}

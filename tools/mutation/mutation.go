package mutation

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Mutation is one way to break the code.
type Mutation struct {
	ID   string // of what is broken
	File string // from the root of the module
	Old  string // occurs once in the file
	New  string
}

// Parse reads mutations of four lines each, with an empty line between them: the id, the
// file, "- " with the old text, "+ " with the new one. A line that begins with # is a
// comment. source names the text in errors.
func Parse(source, text string) ([]Mutation, error) {
	var all []Mutation
	for block := range strings.SplitSeq(text, "\n\n") {
		var lines []string
		for line := range strings.SplitSeq(block, "\n") {
			if line != "" && !strings.HasPrefix(line, "#") {
				lines = append(lines, line)
			}
		}
		if len(lines) == 0 {
			continue
		}
		if len(lines) != 4 || !strings.HasPrefix(lines[2], "- ") || !strings.HasPrefix(lines[3], "+ ") {
			return nil, fmt.Errorf("%s: a mutation is four lines: id, file, - old, + new; this one is\n%s", source, block)
		}
		all = append(all, Mutation{lines[0], lines[1], lines[2][2:], lines[3][2:]})
	}
	return all, nil
}

// Apply returns the content of the file with the mutation.
func (m Mutation) Apply(content string) (string, error) {
	if n := strings.Count(content, m.Old); n != 1 {
		return "", fmt.Errorf("%s: %q occurs %d times in %s, and has to occur once", m.ID, m.Old, n, m.File)
	}
	return strings.Replace(content, m.Old, m.New, 1), nil
}

// Test is a run of go test against the broken code.
type Test struct {
	Root    string // the directory of the module
	Dir     string // for temporary files; they are overwritten
	Package string // from the root of the module
	Pattern string // for -run
	Flags   []string
	Env     []string // in addition to that of this process
}

// Run runs the test with the mutation. It returns what the test printed, and whether it
// passed. A mutation that does not compile and a test that does not exist are errors.
func (m Mutation) Run(ctx context.Context, t Test) (output string, passed bool, err error) {
	path, err := filepath.Abs(filepath.Join(t.Root, m.File))
	if err != nil {
		return "", false, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return "", false, err
	}
	broken, err := m.Apply(string(content))
	if err != nil {
		return "", false, err
	}
	replacement, overlay := filepath.Join(t.Dir, "broken.go"), filepath.Join(t.Dir, "overlay.json")
	doc, err := json.Marshal(map[string]any{"Replace": map[string]string{path: replacement}})
	if err != nil {
		return "", false, err
	}
	if err := errors.Join(os.WriteFile(replacement, []byte(broken), 0o600), os.WriteFile(overlay, doc, 0o600)); err != nil {
		return "", false, err
	}
	args := append([]string{"test", "-overlay=" + overlay, "-vet=off", "-run", t.Pattern}, t.Flags...)
	cmd := exec.CommandContext(ctx, "go", append(args, "./"+t.Package)...)
	cmd.Dir = t.Root
	cmd.Env = append(os.Environ(), t.Env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	switch text := out.String(); {
	case ctx.Err() != nil:
		return text, false, ctx.Err()
	case strings.Contains(text, "[build failed]") || strings.Contains(text, "[setup failed]"):
		return text, false, fmt.Errorf("%s: the mutation does not compile:\n%s", m.ID, text)
	case strings.Contains(text, "no tests to run"):
		return text, false, fmt.Errorf("%s: there is no test %s in %s", m.ID, t.Pattern, t.Package)
	default:
		return text, err == nil, nil
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/agent-troupe/troupe/internal/parity"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

var (
	errUnnoticed = errors.New("rows are closed by a test that does not notice; improve the tests, or open the rows")
	errInvalid   = errors.New("mutations could not be tried; fix mutations.txt")
)

func run(ctx context.Context) error {
	root := flag.String("root", ".", "the `directory` of the module")
	rows := flag.String("row", "", "only rows whose id matches the `expression`")
	most := flag.Int("n", 0, "at most so many mutations; 0: all")
	flag.Parse()
	which, err := regexp.Compile(*rows)
	if err != nil {
		return err
	}
	all, err := parse(mutationsFile)
	if err != nil {
		return err
	}
	ledger, err := parity.Read(*root)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	done, unnoticed, invalid := 0, 0, 0
	for _, m := range all {
		if !which.MatchString(m.row) || *most > 0 && done == *most {
			continue
		}
		row := ledger.Row(m.row)
		if row == nil || row.Test == "" {
			return fmt.Errorf("%s is no closed row of docs/parity.md", m.row)
		}
		done++
		noticed, err := m.noticed(ctx, *root, dir, row.Test)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			invalid++
			fmt.Printf("INVALID   %v\n", err)
		case !noticed:
			unnoticed++
			fmt.Printf("UNNOTICED %s: %s passes with %q in %s\n", m.row, row.Test, m.new, m.file)
		default:
			fmt.Printf("noticed   %s\n", m.row)
		}
	}
	fmt.Printf("%d mutations, %d unnoticed, %d invalid\n", done, unnoticed, invalid)
	switch {
	case unnoticed > 0:
		return errUnnoticed
	case invalid > 0:
		return errInvalid
	}
	return nil
}

// noticed runs the test with the mutation, and reports whether it fails.
func (m mutation) noticed(ctx context.Context, root, dir, test string) (bool, error) {
	path, err := filepath.Abs(filepath.Join(root, m.file))
	if err != nil {
		return false, err
	}
	content, err := os.ReadFile(path)
	if err != nil {
		return false, err
	}
	broken, err := m.apply(string(content))
	if err != nil {
		return false, err
	}
	replacement, overlay := filepath.Join(dir, "broken.go"), filepath.Join(dir, "overlay.json")
	doc, err := json.Marshal(map[string]any{"Replace": map[string]string{path: replacement}})
	if err != nil {
		return false, err
	}
	if err := errors.Join(os.WriteFile(replacement, []byte(broken), 0o600), os.WriteFile(overlay, doc, 0o600)); err != nil {
		return false, err
	}
	pkg, pattern := command(test)
	cmd := exec.CommandContext(ctx, "go", "test", "-overlay="+overlay, "-vet=off", "-short", "-run", pattern, "./"+pkg)
	cmd.Dir = root
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	switch text := out.String(); {
	case ctx.Err() != nil:
		return false, ctx.Err()
	case strings.Contains(text, "[build failed]") || strings.Contains(text, "[setup failed]"):
		return false, fmt.Errorf("%s: the mutation does not compile:\n%s", m.row, text)
	case strings.Contains(text, "no tests to run"):
		return false, fmt.Errorf("%s: there is no test %s", m.row, test)
	case err == nil:
		return false, nil
	}
	return true, nil
}

// command is the package of a test as the ledger names it, and the expression
// for go test -run.
func command(test string) (pkg, pattern string) {
	slash := strings.Index(test, ".Test")
	pkg = test[:slash]
	var parts []string
	for part := range strings.SplitSeq(test[slash+1:], "/") {
		parts = append(parts, "^"+regexp.QuoteMeta(part)+"$")
	}
	return pkg, strings.Join(parts, "/")
}

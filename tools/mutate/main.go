package main

import (
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"strings"

	"github.com/agent-troupe/troupe/internal/parity"
	"github.com/agent-troupe/troupe/tools/mutation"
)

//go:embed mutations.txt
var mutationsFile string

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
	all, err := mutation.Parse("mutations.txt", mutationsFile)
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
		if !which.MatchString(m.ID) || *most > 0 && done == *most {
			continue
		}
		row := ledger.Row(m.ID)
		if row == nil || row.Test == "" {
			return fmt.Errorf("%s is no closed row of the ledger", m.ID)
		}
		done++
		pkg, pattern := command(row.Test)
		_, passed, err := m.Run(ctx, mutation.Test{Root: *root, Dir: dir, Package: pkg, Pattern: pattern, Flags: []string{"-short"}})
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			invalid++
			fmt.Printf("INVALID   %v\n", err)
		case passed:
			unnoticed++
			fmt.Printf("UNNOTICED %s: %s passes with %q in %s\n", m.ID, row.Test, m.New, m.File)
		default:
			fmt.Printf("noticed   %s\n", m.ID)
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

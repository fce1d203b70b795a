package parity

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

// MaxRows is how many rows one test may close.
const MaxRows = 10

// Variable is the environment variable with the directory for the rows that
// tests cover; unset, they are only checked for being in the ledger.
const Variable = "TROUPE_PARITY"

// recordsFile is where in that directory, one line for each row.
const recordsFile = "covered.tsv"

// Covers says that t closes rows of the ledger, by their ids, if it passes. It
// fails t for a row that is not there. Call it once, first thing in the test.
func Covers(t testing.TB, ids ...string) {
	t.Helper()
	root, rel, err := module()
	if err != nil {
		t.Fatalf("parity: %v", err)
	}
	ledger, err := os.ReadFile(path(root))
	if err != nil {
		t.Fatalf("parity: %v", err)
	}
	if len(ids) == 0 || len(ids) > MaxRows {
		t.Errorf("parity: %d rows for one test; from 1 to %d, or split it into subtests", len(ids), MaxRows)
	}
	for _, id := range ids {
		// Not parsed: that is for the tests of this package, and takes its time.
		if !bytes.Contains(ledger, []byte("\n| `"+id+"` |")) {
			t.Errorf("parity: internal/parity/testdata/parity.md has no row %q", id)
		}
	}
	dir := os.Getenv(Variable)
	if dir == "" {
		return
	}
	t.Cleanup(func() {
		if t.Failed() || t.Skipped() {
			return
		}
		if err := record(dir, rel+"."+t.Name(), ids); err != nil {
			t.Errorf("parity: %v", err)
		}
	})
}

// record appends the rows in one write, so that tests of many processes do not
// cut into each other's lines.
func record(dir, test string, ids []string) error {
	var lines []byte
	for _, id := range ids {
		lines = fmt.Appendf(lines, "%s\t%s\n", id, test)
	}
	f, err := os.OpenFile(filepath.Join(dir, recordsFile), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(lines)
	if closed := f.Close(); err == nil {
		err = closed
	}
	return err
}

// module finds the root of the module and, seen from there, the package whose
// test this is: its directory is where the go command runs a test.
func module() (root, rel string, err error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", "", err
	}
	for root = dir; ; {
		if _, err := os.Stat(path(root)); err == nil {
			break
		}
		up := filepath.Dir(root)
		if up == root {
			return "", "", fmt.Errorf("no internal/parity/testdata/parity.md above %s; call Covers before the test changes its directory", dir)
		}
		root = up
	}
	rel, err = filepath.Rel(root, dir)
	return root, filepath.ToSlash(rel), err
}

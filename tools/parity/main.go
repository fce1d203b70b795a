// Parity checks internal/parity/testdata/parity.md against the rows that the tests of a run
// covered: those that ran with TROUPE_PARITY set to the directory.
//
//	parity [-write] directory
//
// With -write it first names, in each row that was covered, a test that did.
// It is run at the root of the module, and ends in 1 if something does not fit.
package main

import (
	"flag"
	"fmt"
	"os"

	"github.com/agent-troupe/troupe/internal/parity"
)

func main() {
	write := flag.Bool("write", false, "name the tests that covered the rows in internal/parity/testdata/parity.md")
	flag.Parse()
	problems, err := run(flag.Arg(0), *write)
	if err != nil {
		fmt.Fprintln(os.Stderr, "parity:", err)
		os.Exit(2)
	}
	for _, p := range problems {
		fmt.Println(p)
	}
	if len(problems) > 0 {
		os.Exit(1)
	}
}

func run(dir string, write bool) ([]string, error) {
	ledger, err := parity.Read(".")
	if err != nil {
		return nil, err
	}
	covered, err := parity.ReadCovered(dir)
	if err != nil {
		return nil, err
	}
	if write {
		parity.Update(ledger, covered)
		if err := ledger.Write("."); err != nil {
			return nil, err
		}
	}
	fmt.Print(parity.Summary(ledger))
	return parity.Check(ledger, covered), nil
}

// Command gen writes the types of package acp from the published schema.
//
//	gen -schema schema/v1.json -out .
package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

func main() {
	schema := flag.String("schema", "schema/v1.json", "the schema `file`")
	out := flag.String("out", ".", "the `directory` for the Go files")
	flag.Parse()
	if err := run(*schema, *out); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(schema, out string) error {
	data, err := os.ReadFile(schema)
	if err != nil {
		return err
	}
	files, err := Generate(data)
	if err != nil {
		return err
	}
	old, err := filepath.Glob(filepath.Join(out, prefix+"*.go"))
	if err != nil {
		return err
	}
	for _, name := range old {
		if err := os.Remove(name); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if err := os.WriteFile(filepath.Join(out, name), files[name], 0o600); err != nil {
			return err
		}
	}
	return nil
}

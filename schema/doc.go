// Package schema has JSON schemas of files that people write for Troupe and that Troupe writes, for
// editors, for other programs, and for the commands that read them. Tests make them from the Go types:
// go test ./docs ./fleet -update writes them anew.
package schema

import (
	"embed"
	"strings"
)

//go:embed *.schema.json
var files embed.FS

const ending = ".schema.json"

// Names lists the schemas, in alphabetic order:
//
//	control  what the control server of a job answers: fleet.Snapshot, or a list of fleet.Approval
//	events   a line of troupe batch --events: fleet.Event
//	journal  a line of a job's journal.jsonl
//	options  a file of options of a session, for sdk.LoadOptions and --config: sdk.Options
//	results  a line of a job's results.jsonl: fleet.TaskResult
//	summary  a job's summary.json: fleet.Summary
//	tasks    a task for troupe batch, a line of JSONL or an item of a list: fleet.Task
//
// Those of what people write refuse other keys. The others do not: later releases add keys.
func Names() []string {
	entries, _ := files.ReadDir(".") // they are in the program
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ending))
	}
	return names
}

// JSON returns a schema (draft 2020-12) by its name, or nil for another name. The caller may change it.
func JSON(name string) []byte {
	text, err := files.ReadFile(name + ending)
	if err != nil {
		return nil
	}
	return text
}

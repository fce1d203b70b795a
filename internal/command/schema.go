package command

import (
	"context"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/schema"
)

func schemaPage() page {
	return page{text: `Usage: troupe schema [NAME]

Prints a JSON schema (draft 2020-12), or without a name the names of all. For editors, tasks describes
one task, and options a file for --config:

  # yaml-language-server: $schema=./options.schema.json

  control  what the control server of a job answers
  events   a line of troupe batch --events
  journal  a line of journal.jsonl
  options  a file of options
  results  a line of results.jsonl
  summary  summary.json
  tasks    a task for troupe batch
`, groups: []flagGroup{{"Flags", []flagSpec{helpFlag()}}}}
}

// schemaCommand is troupe schema.
func schemaCommand(_ context.Context, _ process, c *console, s *settings) int {
	names := schema.Names()
	switch {
	case len(s.words) == 0:
		return c.print(strings.Join(names, "\n") + "\n")
	case len(s.words) > 1:
		return c.usage(&usageError{"troupe schema takes one name", "write one of " + strings.Join(names, ", ")})
	case !slices.Contains(names, s.words[0]):
		fix := "write one of " + strings.Join(names, ", ")
		if near := nearest(s.words[0], names); near != "" {
			fix = "did you mean " + near + "?"
		}
		return c.usage(&usageError{"there is no schema " + s.words[0], fix})
	}
	return c.print(string(schema.JSON(s.words[0])))
}

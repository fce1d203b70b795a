// Package schema has JSON schemas of the files that people write for Troupe, for editors and
// for the commands that read them.
package schema

import _ "embed"

//go:embed tasks.schema.json
var tasks []byte

// Tasks is the schema of one task in a file of troupe batch: a line of JSONL, or an item of
// a list in YAML or JSON. Test TestSchemaOfTasks of package fleet makes it from fleet.Task.
func Tasks() []byte { return append([]byte(nil), tasks...) }

package jsonshape

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// Schema is the schema of an object. It is safe for concurrent use.
type Schema struct {
	Listed   json.RawMessage // as the model reads it
	root     *jsonschema.Schema
	resolved *jsonschema.Resolved
	defsOnly bool // see checkRefs
}

// New is a schema that this program has made, whose references are to its definitions.
func New(listed json.RawMessage, root *jsonschema.Schema) (*Schema, error) {
	return newSchema(listed, root, true)
}

// drafts are the values of $schema that can be checked.
var drafts = []string{ //nolint:gochecknoglobals // only read
	"", "https://json-schema.org/draft/2020-12/schema",
	"http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft-07/schema#",
}

// Parse reads a schema that a person has written: draft 2020-12 or draft-07, with type object, and
// with references that stay within it and end.
func Parse(raw json.RawMessage) (*Schema, error) {
	var root jsonschema.Schema
	if err := json.Unmarshal(raw, &root); err != nil {
		return nil, fmt.Errorf("not a JSON schema: %w", err)
	}
	if root.Type != "object" {
		return nil, errors.New(`its "type" is not "object"`)
	}
	if !slices.Contains(drafts, root.Schema) {
		return nil, fmt.Errorf("JSON Schema %s is not supported; use draft 2020-12 or draft-07", root.Schema)
	}
	understood, err := json.Marshal(&root) // what the library read; it is lenient about keys
	if err != nil {
		return nil, err
	}
	defsOnly, err := checkRefs(understood)
	if err != nil {
		return nil, err
	}
	var listed bytes.Buffer
	if err := json.Compact(&listed, raw); err != nil {
		return nil, err
	}
	return newSchema(listed.Bytes(), &root, defsOnly)
}

func newSchema(listed json.RawMessage, root *jsonschema.Schema, defsOnly bool) (*Schema, error) {
	resolved, err := root.Resolve(nil)
	if err != nil {
		return nil, err
	}
	return &Schema{Listed: listed, root: root, resolved: resolved, defsOnly: defsOnly}, nil
}

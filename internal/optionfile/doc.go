// Package optionfile reads an option file, in YAML or JSON, as a JSON schema
// describes it. It reports every mistake with its line and column, and returns
// the document in one form: as JSON without aliases of keys, without variables
// of the environment, and with durations in nanoseconds.
//
// It knows the forms of the file. Package sdk knows the meaning of the options, and
// which go together.
package optionfile

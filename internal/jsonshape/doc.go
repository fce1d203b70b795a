// Package jsonshape checks values that a model has written against a JSON schema, and says in words
// for the model what is wrong: always the same of the same value.
//
// The schemas of Go types must not live here: package sdk makes them.
package jsonshape

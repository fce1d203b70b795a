package tools

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
)

// Input is the input of a tool call. The concrete types are the pointers to
// this package's …Input structs; a type switch needs a default.
type Input interface {
	// Tool is the tool's canonical name.
	Tool() string
	isInput()
	extra() *Extra
}

// Output is the structured output of a tool. The concrete types are the
// pointers to this package's …Output structs, and *[Text].
type Output interface {
	isOutput()
}

// Extra holds the members of an object that its type has no field for, as they came, or
// nil. It is embedded in every input, so that an input that was decoded, changed and
// encoded again loses nothing.
type Extra map[string]json.RawMessage

func (e *Extra) extra() *Extra { return e }
func (*Extra) isInput()        {}

// UnknownInput is the input of a tool that this package does not know, or one
// of a shape that does not decode.
type UnknownInput struct {
	Name string          // the tool
	Raw  json.RawMessage // the whole input
}

// Tool implements [Input].
func (u *UnknownInput) Tool() string  { return u.Name }
func (u *UnknownInput) isInput()      {}
func (u *UnknownInput) extra() *Extra { return nil }

// MarshalJSON returns the input unchanged.
func (u *UnknownInput) MarshalJSON() ([]byte, error) { return orNull(u.Raw), nil }

// UnknownOutput is the output of a tool that this package does not know, or
// one of a shape that does not decode.
type UnknownOutput struct {
	Name string          // the tool
	Raw  json.RawMessage // the whole output
}

func (*UnknownOutput) isOutput() {}

// MarshalJSON returns the output unchanged.
func (u *UnknownOutput) MarshalJSON() ([]byte, error) { return orNull(u.Raw), nil }

// Text is an output that is a plain string: an error, a rejection by the user, or the
// tool's whole output.
type Text string

func (*Text) isOutput() {}

// Failed reports whether the string says that the tool did not do its work:
// "Error: …", or "User rejected tool use" after an interrupt (both observed on
// Claude Code 2.1.329).
func (t *Text) Failed() bool {
	return strings.HasPrefix(string(*t), "Error: ") || *t == "User rejected tool use"
}

func (t *Text) String() string { return strings.TrimPrefix(string(*t), "Error: ") }

// ShapeError says that an input or an output does not have the shape of its tool.
type ShapeError struct {
	Tool   string // the tool's name
	Output bool   // true: an output; false: an input
	// Path is where in the value, such as questions[1].options; "" for the
	// value itself.
	Path string
	Err  error // what encoding/json says
}

func (e *ShapeError) Error() string {
	what := "input"
	if e.Output {
		what = "output"
	}
	at := ""
	if e.Path != "" {
		at = " at " + e.Path
	}
	return fmt.Sprintf("tools: %s of %s has another shape%s: %v", what, e.Tool, at, e.Err)
}

func (e *ShapeError) Unwrap() error { return e.Err }

// DecodeInput turns the name and the input of a tool call into a typed value,
// which is never nil. Members are taken by their exact names, as the agents do. A tool that is not known is an *[UnknownInput] without an
// error; one that is known and has another shape is an *[UnknownInput] with a
// *[ShapeError]. An absent or null input is an empty object.
func DecodeInput(name string, raw json.RawMessage) (Input, error) {
	in := newInput(name)
	if in == nil {
		return &UnknownInput{Name: name, Raw: raw}, nil
	}
	if isNull(raw) {
		raw = json.RawMessage("{}")
	}
	if err := decode(raw, in, in.extra()); err != nil {
		return &UnknownInput{Name: name, Raw: raw}, shapeError(name, false, raw, err)
	}
	return in, nil
}

// DecodeOutput turns the structured output of the tool name into a typed value.
// A bare string is a *[Text], whatever the tool. A tool that is not known is an
// *[UnknownOutput] without an error; one that is known and has another shape is
// an *[UnknownOutput] with a *[ShapeError]. An absent or null output is nil.
func DecodeOutput(name string, raw json.RawMessage) (Output, error) {
	if isNull(raw) {
		return nil, nil
	}
	var s Text
	if protocol.Unmarshal(raw, &s) == nil {
		return &s, nil
	}
	out := newOutput(name)
	if out == nil {
		return &UnknownOutput{Name: name, Raw: raw}, nil
	}
	if err := protocol.Unmarshal(raw, out); err != nil {
		return &UnknownOutput{Name: name, Raw: raw}, shapeError(name, true, raw, err)
	}
	return out, nil
}

// EncodeInput encodes an input with its Extra members, for the updated input
// of a callback.
func EncodeInput(in Input) (json.RawMessage, error) {
	b, err := protocol.Marshal(in)
	if err != nil {
		return nil, fmt.Errorf("tools: encode input of %s: %w", in.Tool(), err)
	}
	if e := in.extra(); e != nil {
		b, err = withExtra(b, *e)
		if err != nil {
			return nil, fmt.Errorf("tools: encode input of %s: %w", in.Tool(), err)
		}
	}
	return b, nil
}

var errNotObject = errors.New("it is not an object")

// shapeError says where in raw err occurred.
func shapeError(name string, output bool, raw json.RawMessage, err error) error {
	e := &ShapeError{Tool: name, Output: output, Err: err}
	var prefix string
	if m := (*memberError)(nil); errors.As(err, &m) {
		e.Path, e.Err, prefix, raw = m.name, m.err, m.name, m.raw
	}
	var typ *json.UnmarshalTypeError
	if errors.As(err, &typ) {
		e.Path = joined(prefix, pathAt(raw, typ.Offset))
		e.Err = fmt.Errorf("got %s, want %s", found(typ.Value), wanted(typ.Type))
	}
	return e
}

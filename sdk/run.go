package sdk

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"github.com/agent-troupe/troupe/protocol"
)

// Run asks one prompt and returns the session's last result, once nothing is
// left to do: no turn and no background task. When that result is an error of
// any kind it comes with a *[ResultError], or an *[AuthError] around one. With
// any other error, the result is the last there was, or nil. opts may be nil.
func Run(ctx context.Context, prompt string, opts *Options) (*ResultMessage, error) {
	return run(ctx, prompt, copied(opts), func(*ResultMessage) bool { return true })
}

// RunAs is [Run] with an answer of the shape of T, which is a struct or a map
// with strings as keys. The JSON schema that the agent holds the model to comes
// from T: names and omitempty from json tags, descriptions from jsonschema
// tags, choices from enum tags; fields without omitempty are required.
//
// An answer that is missing or does not fit is a *[StructuredOutputError]; the
// model is not asked again. opts may be nil; it must not set OutputFormat.
func RunAs[T any](ctx context.Context, prompt string, opts *Options) (T, *ResultMessage, error) {
	var none T
	o := copied(opts)
	if o.OutputFormat != nil {
		return none, nil, &ConfigError{Option: "OutputFormat", Problem: fmt.Sprintf("is given, and RunAs takes it from %T", none), Fix: "leave it out, or use Run"}
	}
	schema, err := schemaOf(reflect.TypeFor[T]())
	if err != nil {
		return none, nil, &ConfigError{Option: "OutputFormat", Problem: fmt.Sprintf("%v has no JSON schema: %v", reflect.TypeFor[T](), err), Fix: "use a struct"}
	}
	o.OutputFormat = JSONSchema(schema.listed)
	// A turn that the agent starts by itself afterwards has no such answer.
	r, err := run(ctx, prompt, o, func(last *ResultMessage) bool { return last.StructuredOutput == nil })
	if r != nil && r.Subtype == protocol.ResultErrorMaxStructuredRetry {
		return none, r, &StructuredOutputError{Result: r, Err: err}
	}
	if err != nil {
		return none, r, err
	}
	v, err := decodeAs[T](schema, r.StructuredOutput)
	if err != nil {
		return none, r, &StructuredOutputError{Result: r, Err: err}
	}
	return v, r, nil
}

func decodeAs[T any](schema *inputSchema, output json.RawMessage) (v T, err error) {
	if output == nil {
		return v, errNoStructuredOutput
	}
	fit, err := schema.check(output)
	if err != nil {
		return v, err
	}
	err = json.Unmarshal(fit.plain, &v)
	return v, err
}

func copied(o *Options) *Options {
	if o == nil {
		return &Options{}
	}
	c := *o
	return &c
}

// run returns the last result, or an earlier one that later ones do not replace.
func run(ctx context.Context, prompt string, o *Options, replaces func(last *ResultMessage) bool) (*ResultMessage, error) {
	o.Discard = false // the results are among the messages
	var last *ResultMessage
	var limited *RateLimitMessage
	c := NewClient(o)
	for m, err := range converse(ctx, Input(prompt), c) {
		if err != nil {
			return last, err
		}
		if l, ok := m.(*RateLimitMessage); ok {
			limited = l
		}
		if r := resultOf(m); r != nil && (last == nil || replaces(last) || r.StructuredOutput != nil) {
			last = r
		}
	}
	switch {
	case last == nil:
		return nil, ErrNotRun
	case !last.Failed():
		return last, nil
	}
	failed := &ResultError{Result: last, RetryAfter: o.untilReset(limited)}
	if last.APIErrorStatus == 401 || last.APIErrorType == "authentication_error" {
		return last, &AuthError{Backend: c.dialing.dialect.Name(), Err: failed}
	}
	return last, failed
}

// untilReset is how long a limit that was reached still holds; 0 if none was.
func (o *Options) untilReset(m *RateLimitMessage) time.Duration {
	home, err := o.home()
	if m == nil || m.Info.Status != "rejected" || m.Info.ResetsAt <= 0 || err != nil {
		return 0
	}
	return max(time.Unix(int64(m.Info.ResetsAt), 0).Sub(home.Clock().Now()), 0)
}

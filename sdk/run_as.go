package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
)

// RunAs is [Run] with an answer of the shape of T, which is a struct or a map
// with strings as keys. The JSON schema that the agent holds the model to comes
// from T: names and omitempty from json tags, descriptions from jsonschema
// tags, choices from enum tags; fields without omitempty are required.
//
// The answer is checked here, too. When it is missing or does not fit, the model
// is told what is wrong and asked again in the same session, as often as
// Options.OutputRepairs says; what does not fit then is a
// *[StructuredOutputError]. An agent that itself gave up on the model is not
// asked again. opts may be nil; it must not set OutputFormat. The end of ctx is that
// of [Run].
func RunAs[T any](ctx context.Context, prompt string, opts *Options) (T, *ResultMessage, error) {
	var none T
	o := copied(opts)
	if o.OutputFormat != nil {
		return none, nil, &ConfigError{Option: "OutputFormat", Problem: fmt.Sprintf("is given, and RunAs takes it from %T", none), Fix: "leave it out, or use Run"}
	}
	schema, err := schemaOf(reflect.TypeFor[T]())
	if err != nil {
		return none, nil, &ConfigError{Option: "OutputFormat", Problem: fmt.Sprintf("%v has no JSON schema: %v", reflect.TypeFor[T](), err), Fix: "use a struct, or a map with string keys, that does not contain itself; or Run with an OutputFormat of your own"}
	}
	o.OutputFormat = JSONSchema(schema.listed)
	o.Discard = false
	var v T
	r, err := runUntilFit(ctx, prompt, o, func(output json.RawMessage) (err error) {
		v, err = decodeAs[T](schema, output)
		return err
	})
	if err != nil {
		return none, r, err
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
	err = protocol.Unmarshal(fit.plain, &v)
	return v, err
}

// defaultRepairs is how often the model is asked again.
const defaultRepairs = 1

func repairs(o *Options) int {
	if o.OutputRepairs == 0 {
		return defaultRepairs
	}
	return max(o.OutputRepairs, 0)
}

// runUntilFit asks, and asks again, in one session.
func runUntilFit(ctx context.Context, prompt string, o *Options, fits func(json.RawMessage) error) (*ResultMessage, error) {
	c := NewClient(o)
	if err := c.Connect(ctx); err != nil {
		return nil, err
	}
	closed := false
	end := func() error {
		closed = true
		return c.end(context.WithoutCancel(ctx))
	}
	defer func() {
		if !closed {
			_ = end()
		}
	}()
	r, err := c.dialing.session.Read() // before the first message: nothing is missed
	if err != nil {
		return nil, err
	}
	defer r.Close()
	far := progress{doing: "run", clock: c.dialing.home.Clock()}
	for again := 0; ; again++ {
		// A turn that the agent starts by itself afterwards has no such answer.
		out := outcome{replaces: func(last *ResultMessage) bool { return last.StructuredOutput == nil }}
		note := func(m Message) {
			far.note(m)
			out.note(m)
		}
		switch err := c.ask(ctx, r, prompt, note); {
		case stoppedBy(ctx, err):
			return out.last, errors.Join(far.stopped(c.dialing.session, ended(ctx, err)), end())
		case err != nil:
			return out.last, err
		}
		err := out.err(c)
		if out.last != nil && out.last.Subtype == protocol.ResultErrorMaxStructuredRetry {
			return out.last, &StructuredOutputError{Result: out.last, Err: err}
		}
		if err != nil {
			return out.last, err
		}
		misfit := fits(out.last.StructuredOutput)
		if misfit == nil {
			return out.last, nil
		}
		if again >= repairs(o) {
			return out.last, &StructuredOutputError{Result: out.last, Err: misfit}
		}
		prompt = fmt.Sprintf("Your answer cannot be used: %v. Give the whole answer again, as structured output that follows its schema.", misfit)
	}
}

// ask sends one message and hands over what comes until nothing is left to do.
func (c *Client) ask(ctx context.Context, r *runtime.Reader, prompt string, note func(Message)) error {
	session := c.dialing.session
	m := UserText(prompt)
	if _, err := session.Send(ctx, &m); err != nil {
		return err
	}
	// What was written before the agent fell idle is there by then: it is read
	// although the context has ended.
	reading, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c.dialing.home.Executor().Go(func() {
		err := c.awaitDone(reading, session)
		if err == nil {
			err = errIdle
		}
		stop(err)
	})
	var rest rest
	for {
		m, err := r.Next(reading)
		switch {
		case err == nil:
			note(m)
			if !rest.more(ctx, session) {
				return context.Cause(ctx)
			}
		case errors.Is(err, errIdle):
			return nil
		case errors.Is(err, io.EOF):
			return ErrClosed // by somebody else
		default:
			return err
		}
	}
}

var errIdle = errors.New("nothing is left to do")

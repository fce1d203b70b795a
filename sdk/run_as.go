package sdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"

	"github.com/agent-troupe/troupe/internal/jsonshape"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// RunAs is like [Run] and decodes the answer into a T, which must be a struct or a map
// with string keys. The agent makes the model follow a JSON schema that is derived from
// T: names and omitempty from json tags, descriptions from jsonschema tags, allowed
// values from enum tags. Fields without omitempty are required.
//
// Troupe checks the answer, too. If it is missing or does not fit, Troupe tells the
// model what is wrong and asks again in the same session, up to Options.OutputRepairs
// times. If the last answer does not fit, the error is a *[session.StructuredOutputError]. If
// the agent itself has given up after several attempts, RunAs does not ask again. opts
// may be nil; it must not set OutputFormat. The end of ctx has the same effect as in
// [Run]. In a conversation use [AskAs].
func RunAs[T any](ctx context.Context, prompt string, opts *Options) (T, *ResultMessage, error) {
	var none T
	o := copied(opts)
	if o.OutputFormat != nil {
		return none, nil, &ConfigError{Option: "OutputFormat", Problem: fmt.Sprintf("is set, but RunAs derives it from %T", none), Fix: "leave it out, or use Run"}
	}
	schema, err := outputSchema[T]()
	if err != nil {
		return none, nil, err
	}
	o.OutputFormat = JSONSchema(schema.Listed)
	o.Discard = false
	var v T
	r, err := runUntilFit(ctx, prompt, o, decodeInto(&v, schema))
	if err != nil {
		return none, r, err
	}
	return v, r, nil
}

// OutputFormatOf returns the Options.OutputFormat for answers that decode into a T, as
// in [RunAs]. A client needs it for [AskAs]. If T has no JSON schema, the error is a
// *[ConfigError].
func OutputFormatOf[T any]() (*session.OutputFormat, error) {
	schema, err := outputSchema[T]()
	if err != nil {
		return nil, err
	}
	return JSONSchema(schema.Listed), nil
}

// AskAs is [RunAs] for a connected client: it sends prompt as the next message of the
// conversation, and returns the answer as a T together with the turn's result. The
// agent needs the schema when it starts, so the client must have an
// Options.OutputFormat, usually from [OutputFormatOf] the same T. Without one the error
// is a *[ConfigError].
//
// If the answer is missing or does not fit, AskAs asks again in another turn, up to
// Options.OutputRepairs times; then the error is a *[session.StructuredOutputError]. If the
// result is a failure, the error is a *[ResultError]. If no other goroutine reads the
// messages, AskAs reads and drops the messages of its turns. If ctx ends, the session
// and the turn continue; [Client.Interrupt] ends the turn.
func AskAs[T any](ctx context.Context, c *Client, prompt string) (T, *ResultMessage, error) {
	var v, none T
	schema, err := outputSchema[T]()
	if err != nil {
		return none, nil, err
	}
	if !c.structured {
		return none, nil, &ConfigError{Option: "OutputFormat", Problem: "is not set, so the agent does not know the shape of its answers", Fix: fmt.Sprintf("set it to sdk.OutputFormatOf[%T]() when the client is made", none)}
	}
	r, err := untilFit(prompt, c.repairs, decodeInto(&v, schema), func(prompt string) (*ResultMessage, error) {
		t, err := c.Send(ctx, UserText(prompt))
		if err != nil {
			return nil, err
		}
		r, err := t.Result(ctx)
		if err == nil && r.Failed() {
			err = c.resultError(&ResultError{Result: r}, false)
		}
		return r, err
	})
	if err != nil {
		return none, r, err
	}
	return v, r, nil
}

// outputSchema is the JSON schema of T.
func outputSchema[T any]() (*jsonshape.Schema, error) {
	schema, err := schemaOf(reflect.TypeFor[T]())
	if err != nil {
		return nil, &ConfigError{Option: "OutputFormat", Problem: fmt.Sprintf("%v has no JSON schema: %v", reflect.TypeFor[T](), err), Fix: "use a struct, or a map with string keys, that does not contain itself; or Run with an OutputFormat of your own"}
	}
	return schema, nil
}

// decodeInto returns a function that checks an answer and decodes it into v.
func decodeInto[T any](v *T, schema *jsonshape.Schema) func(json.RawMessage) error {
	return func(output json.RawMessage) (err error) {
		*v, err = decodeAs[T](schema, output)
		return err
	}
}

func decodeAs[T any](schema *jsonshape.Schema, output json.RawMessage) (v T, err error) {
	if output == nil {
		return v, errNoStructuredOutput
	}
	fit, err := schema.Check(output)
	if err != nil {
		return v, err
	}
	err = protocol.Unmarshal(fit.Plain, &v)
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
	return untilFit(prompt, repairs(o), fits, func(prompt string) (*ResultMessage, error) {
		// A turn that the agent starts by itself afterwards has no such answer.
		out := outcome{replaces: func(last *ResultMessage) bool { return last.StructuredOutput == nil }}
		err := c.ask(ctx, r, prompt, func(m Message) {
			far.note(m)
			out.note(m)
			if o.OnMessage != nil {
				o.OnMessage(m)
			}
		})
		switch {
		case kernel.StoppedBy(ctx, err):
			err = errors.Join(far.stopped(c.dialing.session, kernel.Ended(ctx, err)), end())
		case err == nil:
			err = out.err(c)
		}
		return out.last, err
	})
}

// untilFit asks until the answer fits, at most again times more than once.
func untilFit(prompt string, again int, fits func(json.RawMessage) error, ask func(prompt string) (*ResultMessage, error)) (*ResultMessage, error) {
	for ; ; again-- {
		r, err := ask(prompt)
		if failed, ok := errors.AsType[*ResultError](err); ok && failed.Result.Subtype == protocol.ResultErrorMaxStructuredRetry {
			return r, &session.StructuredOutputError{Result: r, Err: err}
		}
		if err != nil {
			return r, err
		}
		misfit := fits(r.StructuredOutput)
		if misfit == nil {
			return r, nil
		}
		if again <= 0 {
			return r, &session.StructuredOutputError{Result: r, Err: misfit}
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
	// Messages from before the agent became idle have arrived by then: they are read
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
			return ErrClosed // not by this call
		default:
			return err
		}
	}
}

var errIdle = errors.New("nothing is left to do")

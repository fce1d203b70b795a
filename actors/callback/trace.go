package callback

import (
	"context"
	"encoding/json"

	"github.com/agent-troupe/troupe/session"
)

// begin shows the callback to those who follow the session, and returns its context.
func (a *Actor) begin(ctx context.Context, r *run) context.Context {
	if a.Trace == nil {
		return ctx
	}
	ctx, r.trace = a.Trace.Callback(ctx, session.TracedCallback{Kind: r.Kind, Name: r.Name, ID: r.ID(), At: r.Opened, Request: *r.Frame})
	return ctx
}

// traced shows the end of the request, the first time: the answer, the deadline and the
// end of the request compete.
func (r *run) traced(response json.RawMessage, err error) {
	if r.trace == nil || !r.shown.CompareAndSwap(false, true) {
		return
	}
	r.trace(session.TracedAnswer{At: r.clock.Now(), Response: response, Err: err})
}

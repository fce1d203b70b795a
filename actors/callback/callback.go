package callback

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Prepare turns a request into a job. An error fails the request at once.
type Prepare func(r *Request) (Job, error)

// Request is a control request of the agent.
type Request struct {
	Seq    uint64 // the request's number, unique in the session
	Kind   session.Kind
	Frame  *protocol.Frame // it does not change
	Opened time.Time       // when it was read
	Owner  Owner           // nil: the request cannot be dropped
}

// Owner is the part of the session that waits for the answer to a request.
type Owner interface {
	// Drop drops the request with this number. It may be called from any goroutine.
	Drop(seq uint64)
}

// ID returns the request's id for events. The answer has the id as the agent wrote it.
func (r *Request) ID() string { return r.Frame.ID.Text() }

// Drop drops a request that the agent has given up without a control_cancel_request: the
// callback's context ends, and no answer is sent. It may be called from any goroutine.
func (r *Request) Drop() {
	if r.Owner != nil {
		r.Owner.Drop(r.Seq)
	}
}

// Job is one callback to run.
type Job struct {
	// Name is the tool or event, for events of the session.
	Name string
	// Limit is how long the callback may take; zero: no limit. SetBy is the option that
	// sets it.
	Limit time.Duration
	SetBy string
	// Expired, if set, returns the error of a callback that exceeded its limit.
	Expired func() error
	// Deadline, if set, is called when Limit is over, and after Begin. It returns the
	// limit that applies then.
	Deadline func() Deadline
	// Begin, if set, runs before Run on the same task. Its error fails the
	// request.
	Begin func(ctx context.Context) error
	// Run calls the user's callback and returns the response of a success. If it returns
	// an error, the response is ignored: gates deny, other requests are answered with an
	// error. Only with a *[ReportedError] the response is sent.
	Run func(ctx context.Context) (json.RawMessage, error)
	// Over, if set, is called when the request is answered or cancelled; Begin or Run may
	// still run. It must return quickly, and may be called again.
	Over func()
	// Done, if set, is called once: after Run, or instead of Run if the request was
	// cancelled before.
	Done func()
}

// Deadline is a time limit that changes while a callback runs.
type Deadline struct {
	Limit time.Duration // counted from Since; zero or negative: no limit
	Since time.Time
	SetBy string // the option that sets Limit
}

// ReportedError is an error that the response already describes. It is reported as an
// event, and the response is sent.
type ReportedError struct{ Err error }

func (r *ReportedError) Error() string { return r.Err.Error() }
func (r *ReportedError) Unwrap() error { return r.Err }

// PublicError is an error whose Reason the agent, and so the model, may see. The text of
// any other error is only in events.
type PublicError struct {
	Reason string
	Err    error
}

func (p *PublicError) Error() string { return p.Err.Error() }
func (p *PublicError) Unwrap() error { return p.Err }

// RefusalError is an error that is answered with this text and code.
type RefusalError struct {
	Text string
	Code string // may be empty
	Err  error
}

func (r *RefusalError) Error() string { return r.Err.Error() }
func (r *RefusalError) Unwrap() error { return r.Err }

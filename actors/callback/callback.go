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
	Seq    uint64 // its number in the session, never used again
	Kind   session.Kind
	Frame  protocol.Frame
	Opened time.Time // when it was read
	Owner  Owner     // nil: nobody can drop it
}

// Owner is whoever waits for the answer of a request.
type Owner interface {
	// Drop forgets the request with this number. It may be called from anywhere.
	Drop(seq uint64)
}

// ID is the request's id for reports; the answer carries it as the agent wrote it.
func (r *Request) ID() string { return r.Frame.ID.Text() }

// Drop says that the agent has given the request up by other means than a
// control_cancel_request: the callback's context ends, and no answer is sent. It may
// be called from anywhere.
func (r *Request) Drop() {
	if r.Owner != nil {
		r.Owner.Drop(r.Seq)
	}
}

// Job is one callback to run.
type Job struct {
	// Name is the tool or event, for reports.
	Name string
	// Limit ends the callback; zero means none. SetBy names its option.
	Limit time.Duration
	SetBy string
	// Expired, if set, is the error of a callback that ran out of time.
	Expired func() error
	// Deadline, if set, takes the place of Limit once it is over, and after
	// Begin: it says how long the callback may take by now.
	Deadline func() Deadline
	// Begin, if set, runs before Run on the same task. Its error fails the
	// request.
	Begin func(ctx context.Context) error
	// Run calls the user. It returns the response of a success. An error
	// answers the request in its place, whatever stands beside it: gates deny,
	// the rest answers an error. Only a *[ReportedError] lets the response stand.
	Run func(ctx context.Context) (json.RawMessage, error)
	// Over, if set, is called when the request is answered or cancelled, though
	// Begin or Run may go on. It is quick, and may be called again.
	Over func()
	// Done, if set, is called once, after Run or in its place when the request
	// was cancelled before.
	Done func()
}

// Deadline is a limit that is not known beforehand, or moves.
type Deadline struct {
	Limit time.Duration // counted from Since; zero and less mean none
	Since time.Time
}

// ReportedError is an error that the response already describes: it goes to the
// events, and the response stands.
type ReportedError struct{ Err error }

func (r *ReportedError) Error() string { return r.Err.Error() }
func (r *ReportedError) Unwrap() error { return r.Err }

// PublicError is an error whose Reason the agent, and so the model, may see. The text
// of any other error goes to events alone.
type PublicError struct {
	Reason string
	Err    error
}

func (p *PublicError) Error() string { return p.Err.Error() }
func (p *PublicError) Unwrap() error { return p.Err }

// RefusalError is answered with an error of this text and code.
type RefusalError struct {
	Text string
	Code string // may be empty
	Err  error
}

func (r *RefusalError) Error() string { return r.Err.Error() }
func (r *RefusalError) Unwrap() error { return r.Err }

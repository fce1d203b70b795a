package session

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/protocol"
)

// Tracer follows sessions from the inside, for telemetry. The module contrib/otel has one
// for OpenTelemetry. Troupe calls it once for each session, when the session is opened,
// with the context of the call that opens it (sdk.Run, sdk.Query, Client.Connect). It
// returns what Troupe calls from then on; nil: the session is not followed.
//
// The Tracer and the functions of a [Trace] must be safe for concurrent use and must
// return at once: the session waits for them, some are called with its locks held. They
// must not call the session, its client or its runtime. If one of them panics, the session
// continues without its trace, and a [CallbackFailed] event of kind "trace" says so.
type Tracer func(ctx context.Context, s TracedSession) *Trace

// TracedSession is a session that is opened.
type TracedSession struct {
	ID      string    // the runtime's id of the session
	Backend string    // the name of the dialect: claude, qoder
	At      time.Time // by the runtime's clock
	// Options are those of the session, for the time of the call. Do not modify them, and
	// do not keep them. They have secrets.
	Options *Options
}

// Trace is how a [Tracer] follows one session. A function that is nil is not called. All
// times are by the runtime's clock.
type Trace struct {
	// Environ returns variables ("NAME=value") for the environment of the agent's next
	// process. It is called for each process. Variables that Options.Env or UnsetEnv name
	// are left as the options say.
	Environ func() []string
	// Event gets each event of the session, in order, until [Ended], which is the last one.
	// None is lost.
	Event func(EventRecord)
	// Sent is called when a user message was accepted, before anything else happens to it,
	// with the context of the call that sent it. The message has a UUID. Do not modify it.
	Sent func(ctx context.Context, at time.Time, m *protocol.UserMessage)
	// Written is called when the message goes to the agent's process. It may be called
	// again, for the same process or another one (Options.MaxRestarts).
	Written func(at time.Time, uuid string)
	// Message gets each message of the agent, in order, before anybody can read it. The
	// frame's bytes must not be modified.
	Message func(at time.Time, f protocol.Frame)
	// Over is called once for each message that Sent was called with, after Message was
	// called with its result. [Ended] also ends all messages that are still open.
	Over func(at time.Time, t TracedTurn)
	// Callback is called when the agent asks for one of the host's callbacks. It returns
	// the context that the callback gets, which must be ctx or derived from it, and a
	// function that is called once when the request is over, or nil.
	Callback func(ctx context.Context, c TracedCallback) (context.Context, func(TracedAnswer))
}

// TracedTurn is the end of a turn.
type TracedTurn struct {
	UUID   string                  // of the user message
	Result *protocol.ResultMessage // or nil; several turns may have the same one
	Err    error                   // why there is no result, or why it does not count
	// Recovered says that another process finished the turn.
	Recovered bool
}

// TracedCallback is a request of the agent for a callback of the host.
type TracedCallback struct {
	Kind    Kind           // what the callback is for
	Name    string         // the tool, the hook event, or the option
	ID      string         // of the request
	At      time.Time      // when the request was read
	Request protocol.Frame // protocol.DecodeAgentRequest decodes it
}

// TracedAnswer is the end of a request for a callback.
type TracedAnswer struct {
	At time.Time // when the request was over
	// Response is the answer as JSON; nil if the callback gave none. Do not modify it.
	Response json.RawMessage
	// Err is why the callback failed, or why its answer is no longer wanted: a
	// *[PanicError], a *[TimeoutError], what it returned, or an error that matches
	// context.Canceled if the agent has withdrawn the request. nil if it has answered.
	Err error
}

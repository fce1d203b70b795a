package session

import "errors"

// Errors of a session's methods, to be matched with errors.Is.
var (
	// ErrBusy is returned to a second reader of a session's messages. End the
	// first one, or read the messages in one place.
	ErrBusy = errors.New("another consumer is reading this session's messages; end it first")
	// ErrConsumerStalled says that nobody reads the messages: an answer is
	// behind more of them than [Limits.HardBytes] allows, or [Limits.Consumer] has
	// passed. In the first case the call fails, in the second the session. Read
	// the messages, or discard them.
	ErrConsumerStalled = errors.New("no one reads the messages, and the buffer for them is full; read them, or set Discard")
	// ErrTransportClosed says that the agent cannot be written to any more: its
	// stdin is closed, or it has ended. The session's own error says why.
	ErrTransportClosed = errors.New("the agent's transport is closed")
	// ErrClosed is returned by calls of a session that the host has closed.
	ErrClosed = errors.New("the session is closed")
	// ErrDraining is returned to whoever sends a message to a session that is being
	// drained. Nothing was sent; the messages before it are still answered.
	ErrDraining = errors.New("the session is draining and takes no new messages; send it in another session")
	// ErrNoRoom says that the agent does not read its stdin and that the write
	// queue is full.
	ErrNoRoom = errors.New("the agent does not read its stdin and the write queue is full")
	// ErrTooLarge says that a message does not fit into one line for the
	// agent. Nothing was written.
	ErrTooLarge = errors.New("the message is longer than one line to the agent may be; send less, or pass it in a file")
	// ErrNotRun says that a user message ended without a result: it was
	// cancelled while it was queued, or the agent had seen its uuid before.
	ErrNotRun = errors.New("the message was not run and has no result")
	// ErrShutdown is returned to whoever opens a session in a runtime that is
	// shutting down.
	ErrShutdown = errors.New("the runtime is shutting down")
)

// Errors of answers that could not be read, to be matched with errors.Is. The
// session goes on.
var (
	// ErrResultSkipped says that a turn's result was a line longer than MaxLine.
	ErrResultSkipped = errors.New("the turn's result was longer than MaxLine and was skipped; raise MaxLine")
	// ErrAnswerSkipped says that the answer to a call was a line longer than
	// MaxLine.
	ErrAnswerSkipped = errors.New("the answer was longer than MaxLine and was skipped; raise MaxLine")
	// ErrResultBroken says that a turn's result was a line that is no JSON.
	ErrResultBroken = errors.New("the turn's result was not valid JSON, and its text is lost")
	// ErrAnswerBroken says that the answer to a call was a line that is no JSON.
	ErrAnswerBroken = errors.New("the answer was not valid JSON")
)

// Errors of requests of the agent that no callback is configured for. They are in
// [CallbackFailed] events; the request was denied.
var (
	// ErrNoCanUseTool says that the agent asked for a permission.
	ErrNoCanUseTool = errors.New("the agent asked for permission, and no CanUseTool callback is configured")
	// ErrNoResolveModel says that the agent asked for a model.
	ErrNoResolveModel = errors.New("the agent asked for a model, and no ResolveModel callback is configured")
)

// Errors in a [LeftoverError], to be matched with errors.Is: the sweep found no
// process, but an output of the agent has not ended.
var (
	// ErrStdoutHeld says that the agent's stdout is still open.
	ErrStdoutHeld = errors.New("a process that the sweep did not end still holds the agent's stdout")
	// ErrStderrHeld says that the agent's stderr is still open.
	ErrStderrHeld = errors.New("a process that the sweep did not end still holds the agent's stderr")
)

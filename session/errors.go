package session

import "errors"

// Errors of a session's methods, to be matched with errors.Is.
var (
	// ErrBusy is returned to the second of two concurrent readers of a session's
	// messages. End the first reader, or read the messages in one place.
	ErrBusy = errors.New("another consumer is reading this session's messages; end it first")
	// ErrConsumerStalled says that the messages have no reader. A control call fails
	// with it when more unread messages than [Limits].HardBytes allows are in front of
	// its answer. The session fails with it after [Limits].Consumer. Read the messages,
	// or set Options.Discard.
	ErrConsumerStalled = errors.New("no one reads the messages, and the buffer for them is full; read them, or set Discard")
	// ErrTransportClosed says that nothing more can be written to the agent: its stdin
	// is closed, or it has ended. The error of the session says why.
	ErrTransportClosed = errors.New("the agent's transport is closed")
	// ErrClosed is returned by calls of a session that the host has closed.
	ErrClosed = errors.New("the session is closed")
	// ErrDraining is returned when a message is sent in a session that is draining. The
	// message was not sent; the messages before it are still answered.
	ErrDraining = errors.New("the session is draining and takes no new messages; send it in another session")
	// ErrNoRoom says that the agent does not read its stdin, and that the queue of
	// messages to it is full.
	ErrNoRoom = errors.New("the agent does not read its stdin and the write queue is full")
	// ErrTooLarge says that a message is longer than one line to the agent may be.
	// Nothing was written.
	ErrTooLarge = errors.New("the message is longer than one line to the agent may be; send less, or pass it in a file")
	// ErrNotRun says that a user message has no result, because the agent did not run
	// it: it was cancelled while it was queued, or the agent knew its uuid already.
	ErrNotRun = errors.New("the message was not run and has no result")
	// ErrShutdown is returned when a session is opened in a runtime that is shutting
	// down.
	ErrShutdown = errors.New("the runtime is shutting down")
)

// PassivateError says why the process of a session was not ended. The session is as
// before.
type PassivateError struct{ Problem string }

func (e *PassivateError) Error() string { return "the session keeps its process: " + e.Problem }

// Errors of answers that could not be read, to be matched with errors.Is. The
// session continues.
var (
	// ErrResultSkipped says that the line with a turn's result was longer than
	// Options.MaxLine.
	ErrResultSkipped = errors.New("the turn's result was longer than MaxLine and was skipped; raise MaxLine")
	// ErrAnswerSkipped says that the line with the answer to a call was longer than
	// Options.MaxLine.
	ErrAnswerSkipped = errors.New("the answer was longer than MaxLine and was skipped; raise MaxLine")
	// ErrResultBroken says that the line with a turn's result was not valid JSON.
	ErrResultBroken = errors.New("the turn's result was not valid JSON, and its text is lost")
	// ErrAnswerBroken says that the line with the answer to a call was not valid JSON.
	ErrAnswerBroken = errors.New("the answer was not valid JSON")
)

// Errors of requests of the agent for which the callback is missing. They are in
// [CallbackFailed] events; the requests were denied.
var (
	// ErrNoCanUseTool says that the agent asked for permission without a CanUseTool.
	ErrNoCanUseTool = errors.New("the agent asked for permission, and no CanUseTool callback is configured")
	// ErrNoResolveModel says that the agent asked for a model without a ResolveModel.
	ErrNoResolveModel = errors.New("the agent asked for a model, and no ResolveModel callback is configured")
)

// Errors in a [LeftoverError], to be matched with errors.Is: the sweep found no
// process, but an output of the agent is still open.
var (
	// ErrStdoutHeld says that the agent's stdout is still open.
	ErrStdoutHeld = errors.New("a process that the sweep did not end still holds the agent's stdout")
	// ErrStderrHeld says that the agent's stderr is still open.
	ErrStderrHeld = errors.New("a process that the sweep did not end still holds the agent's stderr")
)

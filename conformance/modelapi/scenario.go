package modelapi

import (
	"regexp"
	"slices"
	"time"
)

// Scenario is what the model does after one marker: the step at index i answers
// the i-th model call. Calls past the end get a plain text answer.
type Scenario []Step

// Step decides the reply to one model call. It runs on the goroutine of the
// request, so it must be safe for concurrent use.
type Step func(Call) Reply

// Call is what a step can look at.
type Call struct {
	Marker
	// WorkDir is [Config].WorkDir.
	WorkDir string
	Request Request
}

// Tool returns the first of the names that the request offers as a tool, and
// the first name when it offers none of them. Agents rename tools between
// releases.
func (c Call) Tool(names ...string) string {
	for _, offered := range c.Request.Tools {
		if slices.Contains(names, offered) {
			return offered
		}
	}
	return names[0]
}

// ToolLike returns the first offered tool that matches the regular expression,
// and otherwise the fallback. It panics when the expression does not compile.
func (c Call) ToolLike(expr, fallback string) string {
	if i := slices.IndexFunc(c.Request.Tools, regexp.MustCompile(expr).MatchString); i >= 0 {
		return c.Request.Tools[i]
	}
	return fallback
}

// Reply is one answer of the model. The zero value is an empty message that
// ends the turn.
type Reply struct {
	Blocks []Block
	// Stop is the stop reason. Empty means "tool_use" when a block calls a
	// tool, and "end_turn" otherwise.
	Stop string
	// Check is what the endpoint's safety check has found about the tool calls
	// of a streamed answer; nil for an endpoint that checks nothing. Claude Code
	// asks for it in auto mode (observed on 2.1.329).
	Check *Check

	// Delay is waited before the first byte.
	Delay time.Duration
	// Chunks is how many pieces a streamed text block is cut into; zero means 2.
	Chunks int
	// ChunkDelay is waited after each of them.
	ChunkDelay time.Duration

	// Fault, when set, is served instead for the first Fault.Times calls.
	Fault *Fault
	// Cut, when set, breaks off the next Cut.Times answers.
	Cut *Cut
	// Hang never answers: the call ends when the client leaves or the server
	// closes.
	Hang bool
	// Raw, when set, is the whole answer, whatever the API says about answers.
	Raw *Raw

	// ID is the id of the message; empty: one of the server's own.
	ID string
	// Usage are members of the answer's usage, which replace the server's.
	Usage Args
	// Delta are members of message_delta, which replace the server's: a stop reason of null.
	Delta Args
	// Broken, when set, ends a streamed answer after its blocks: with an error event.
	Broken *Fault
}

// Raw is an answer that need not be one of the API's. Its status is 200.
type Raw struct {
	// ContentType is the answer's Content-Type; empty: text/event-stream.
	ContentType string
	Body        string
}

// Check is the verdict of a safety check. The zero value finds no danger.
type Check struct {
	// Flagged says that the calls are dangerous, Explanation why.
	Flagged     bool
	Explanation string
}

// Fault is an HTTP error of the endpoint, counted per scenario, argument and
// step.
type Fault struct {
	// Status is the HTTP status. Zero drops the connection without an answer.
	Status int
	// Type is the API's error type, such as "rate_limit_error".
	Type string
	// Message is the error's text; empty: one of the server's own.
	Message string
	// Header is added to the answer's.
	Header map[string]string
	// Times is how many calls fail before the reply is served.
	Times int
	// RetryAfter is sent as the retry-after header, rounded down to seconds.
	// Zero sends none.
	RetryAfter time.Duration
}

// Cut drops the connection in the middle of a streamed answer, counted like a
// [Fault]. An answer that is not streamed comes whole.
type Cut struct {
	// After is how many deltas are sent before.
	After int
	// Events, when above zero, counts all events in place of the deltas.
	Events int
	// Stall is how long the stream is silent before it ends.
	Stall time.Duration
	// Clean ends the stream without dropping the connection.
	Clean bool
	// Times is how many answers are cut.
	Times int
}

// Block is one content block of a reply, made by [Text], [Thinking] or
// [ToolUse].
type Block struct {
	kind  string
	text  string
	name  string
	input any
	id    string
	raw   *string
	pause time.Duration
}

// WithID returns the call with this id, which is otherwise the server's own.
func (b Block) WithID(id string) Block {
	b.id = id
	return b
}

// After returns the block, before which a stream waits.
func (b Block) After(d time.Duration) Block {
	b.pause = d
	return b
}

const (
	kindText       = "text"
	kindThinking   = "thinking"
	kindToolUse    = "tool_use"
	kindToolResult = "tool_result"
)

// Args is the input of a tool call.
type Args map[string]any

// Text is a block of plain text.
func Text(s string) Block { return Block{kind: kindText, text: s} }

// Thinking is a block of extended thinking, with a made-up signature.
func Thinking(s string) Block { return Block{kind: kindThinking, text: s} }

// ToolUse is a call of the named tool. The input must be marshalable as JSON.
func ToolUse(name string, input any) Block {
	return Block{kind: kindToolUse, name: name, input: input}
}

// RawToolUse is a call whose input is streamed as this text, in two pieces; it need not be
// JSON.
func RawToolUse(name, input string) Block {
	return Block{kind: kindToolUse, name: name, input: Args{}, raw: &input}
}

// Say is the step that always replies with these blocks.
func Say(blocks ...Block) Step { return Always(Reply{Blocks: blocks}) }

// Always is the step that always gives this reply.
func Always(r Reply) Step { return func(Call) Reply { return r } }

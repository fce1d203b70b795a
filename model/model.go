package model

import (
	"context"
	"encoding/json"
	"time"
)

// Model makes requests to one endpoint. It is safe for concurrent use. [Client] is one;
// package modeltest has one without a network.
type Model interface {
	// Codec encodes conversations as the endpoint takes them.
	Codec() Codec
	// Stream makes one request and gives its events to emit, in their order, on the calling
	// goroutine. When it returns nil, the last event was Stop. If emit returns false, it ends
	// the request and returns [ErrStopped]. When ctx ends first it returns ctx's cause.
	// Any other error is an [*Error].
	Stream(ctx context.Context, r *Request, emit func(*Event) bool) error
}

// Codec is one API: neutral values in, bytes of the API out. It is safe for concurrent use.
// One that has a method Takes(BlockKind) bool says which blocks the endpoint takes. It
// encodes another one, such as an image, as a text that says that it was left out.
type Codec interface {
	// Name is the API: "anthropic" or "openai".
	Name() string
	// Tools encodes a list of tools, once for any number of requests.
	Tools(list []Tool) []byte
	// Message encodes a message, once for all requests that contain it.
	Message(m *Message) []byte
	// Results returns an encoded message in which the results for which put has a text are that
	// text alone. All else stays the same, byte by byte.
	Results(message []byte, put func(id string) (text string, ok bool)) []byte
}

// Request is one request. Of a session's requests, all but Messages should stay the same:
// a provider's cache of prompts ends at the first difference.
type Request struct {
	Model    string
	System   []string // blocks of the system prompt
	Tools    []byte   // of [Codec.Tools]; nil: none
	Messages [][]byte // of [Codec.Message]; the last is the user's
	// MaxTokens limits the answer. The Messages API demands it: 0 is 4,096 there. For chat
	// completions, 0 leaves it to the server.
	MaxTokens int
	// Effort is how much the model thinks: "low", "medium", "high", or another word that the
	// model knows; "": its default.
	Effort string
	// ThinkingTokens is the budget of thinking; 0: the model's default, below 0: no thinking.
	// Only the Messages API has it; chat completions have Effort.
	ThinkingTokens int
	// ToolChoice is the name of the tool that must be called; "": the model decides.
	ToolChoice string
	// Cache marks the prefix for the provider's cache of prompts.
	Cache bool
	// User is an opaque identifier of who asks: for the provider's checks of abuse, and for
	// the routing of its cache.
	User string
	// Raw asks for Delta events, and for Event.Raw in all of them. Without it, text crosses
	// only as whole blocks, which costs a fraction.
	Raw bool
	// Whole asks for the answer in one piece, which may take ten minutes, and not as a stream: for
	// an endpoint whose streams break off. There are no Delta events then.
	Whole bool
}

// Tool is a tool that the model may call.
type Tool struct {
	Name        string
	Description string
	Schema      json.RawMessage // JSON schema of the input; nil: an object without properties
}

// Role is who says a message.
type Role string

// The roles. Results of tools are blocks of a user's message.
const (
	User      Role = "user"
	Assistant Role = "assistant"
)

// Message is one message of a conversation.
type Message struct {
	Role   Role
	Blocks []Block
}

// BlockKind is the kind of a block, in the words of the Messages API.
type BlockKind string

// The kinds of blocks.
const (
	Text       BlockKind = "text"
	Thinking   BlockKind = "thinking"
	ToolUse    BlockKind = "tool_use"
	ToolResult BlockKind = "tool_result"
	Image      BlockKind = "image"
	Document   BlockKind = "document"
	// Opaque is a block that only its own API understands, such as thinking that the
	// provider has encrypted, or a tool that ran on its server. It is kept as it is, given
	// back to the API it came from, and left out elsewhere.
	Opaque BlockKind = "opaque"
)

// Block is one block of a message.
type Block struct {
	Kind BlockKind
	// Text is the text of a text or a thinking block, and of a tool's result.
	Text string
	// ID and Name are those of a call. A result has the ID of its call.
	ID, Name string
	// Input is what a tool is called with: always a JSON object, in the order and with the
	// numbers that the model wrote.
	Input json.RawMessage
	// BadInput is what the model wrote in place of an object. Input is {} then.
	BadInput string
	// Content replaces Text: the blocks of a result, or the source of an image or a document, in
	// the form of the Messages API.
	Content json.RawMessage
	IsError bool // of a tool's result
	// Origin says which API and endpoint made Signature and Raw; only that one gets them back.
	Origin    string
	Signature string // of thinking
	// Raw has what the fields above do not: for the Messages API the whole block, for chat
	// completions an object of the other members. nil if the fields say all.
	Raw json.RawMessage
}

// Kind is the kind of an event.
type Kind int

// The kinds of events, in their order within an answer: Start, then Delta and Done for
// each block, then Stop.
const (
	Start Kind = iota + 1 // the answer begins: ID, RequestID, Model, Usage
	Delta                 // only with Request.Raw: Raw
	Done                  // a block is whole: Index, Block
	Stop                  // the answer is whole: StopReason, Usage, Extra
	Cut                   // the answer breaks off within a block: Index, Block as far as it has come. An error follows
	Waits                 // before Start, any number of times: the request waits for a batch. Batch, Within
)

// String is the kind's name.
func (k Kind) String() string {
	switch k {
	case Start:
		return "start"
	case Delta:
		return "delta"
	case Done:
		return "done"
	case Stop:
		return "stop"
	case Cut:
		return "cut"
	case Waits:
		return "waits"
	}
	return "unknown"
}

// Event is one event of an answer. It and what it points to belong to the receiver.
type Event struct {
	Kind Kind
	// Index is the block's, from 0.
	Index int
	Block *Block
	ID    string // of the answer
	// RequestID is the provider's, from the headers; "": it sent none.
	RequestID string
	Model     string // the one that answers
	// Batch is the batch that the request is in; "": it was not submitted yet.
	Batch string
	// Within is the time in which the next event comes; 0: it does not say.
	Within time.Duration
	// StopReason is in the words of the Messages API: end_turn, tool_use, max_tokens,
	// stop_sequence, refusal, pause_turn, or one that is new.
	StopReason string
	// Usage is what is known so far.
	Usage Usage
	// Extra is an object of the members of the answer that have no field here; nil without any.
	Extra json.RawMessage
	// Raw is the event in the form of the Messages API, from each codec. Only with
	// Request.Raw. For that API itself, they are the bytes that came.
	Raw json.RawMessage
}

// Usage counts tokens. The zero value: the server has said nothing.
type Usage struct {
	Input      int // without those of the cache
	Output     int
	CacheRead  int
	CacheWrite int
	CacheHour  int             // part of CacheWrite: what is kept for an hour
	Reasoning  int             // part of Output
	Batched    bool            // the answer came by an API of batches, which has other prices
	Raw        json.RawMessage // as the API sent it
}

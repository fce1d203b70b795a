package scripted

import (
	"time"

	"github.com/agent-troupe/troupe/agent"
)

// Steps are played in order.
type Steps []Step

// Step is something an agent does. In YAML it is a mapping with one key, which
// names the kind. In the texts of steps ${prompt} stands for the turn's
// prompt, ${turn} for its number (from 0), ${session} for the session's id,
// ${answer} for the last answer to a request, hook or elicitation, as JSON, and
// ${history} for all prompts of the session so far, joined by " | ".
type Step interface {
	play(p *player) error
}

// The kinds of steps, by their keys in YAML.
type (
	// Text (text) is a block of text.
	Text string
	// Thinking (thinking) is a block of thinking.
	Thinking string
	// Delay (delay) waits.
	Delay time.Duration
	// Raw (raw) writes a line as it is; the newline is added.
	Raw string
	// Stderr (stderr) writes a line of diagnostics.
	Stderr string
	// Parallel (parallel) makes several calls at once: tool_use, mcp_call, agent
	// and shell steps.
	Parallel Steps
)

// Partial (partial) is text that comes in pieces.
type Partial struct {
	Text   string        `yaml:"text"`
	Chunks []string      `yaml:"chunks"` // the pieces themselves, instead of Text
	Chunk  int           `yaml:"chunk"`  // runes of Text in a piece; 0 is 16
	Pause  time.Duration `yaml:"pause"`  // between pieces
}

// ToolUse (tool_use) is a call of a built-in tool. It goes through the gates
// of the host and, if they let it, takes effect.
type ToolUse struct {
	ID         string         `yaml:"id"`
	Name       string         `yaml:"name"`
	Input      map[string]any `yaml:"input"`
	Gate       agent.Gate     `yaml:"gate"`   // "", ask, allow
	Result     string         `yaml:"result"` // ${input} is the input the gates left, as JSON
	Error      string         `yaml:"error"`  // a failure with this text
	Structured map[string]any `yaml:"structured"`
	Takes      time.Duration  `yaml:"takes"`
	// Steps are played while the tool runs, before Takes: what an MCP server asks
	// the user, say.
	Steps Steps `yaml:"steps"`
	// Effect counts runs: a line with the call's id and input is appended to this
	// file before Takes begins.
	Effect string `yaml:"effect"`
}

// MCPCall (mcp_call) is a call of a tool of one of the host's in-process
// servers.
type MCPCall struct {
	ID        string         `yaml:"id"`
	Server    string         `yaml:"server"`
	Tool      string         `yaml:"tool"`
	Arguments map[string]any `yaml:"arguments"`
	Gate      agent.Gate     `yaml:"gate"`
	Limit     time.Duration  `yaml:"limit"` // then notifications/cancelled; 0: none
}

// SubAgent (agent) starts a sub-agent.
type SubAgent struct {
	Description string `yaml:"description"`
	Prompt      string `yaml:"prompt"`
	Type        string `yaml:"type"`
	Background  bool   `yaml:"background"`
	Steps       Steps  `yaml:"steps"`
	Report      string `yaml:"report"`
	// Then is the turn the agent starts by itself when a background task has
	// ended.
	Then Steps `yaml:"then"`
}

// Shell (shell) starts a shell command in the background.
type Shell struct {
	Command     string        `yaml:"command"`
	Description string        `yaml:"description"`
	Takes       time.Duration `yaml:"takes"`
	ExitCode    int           `yaml:"exit_code"`
	Gate        agent.Gate    `yaml:"gate"`
	Then        Steps         `yaml:"then"`
}

// Hook (hook) calls the callbacks registered for an event, beyond those that
// come by themselves.
type Hook struct {
	Event   string         `yaml:"event"`
	Subject string         `yaml:"subject"` // what matchers are held against
	Input   map[string]any `yaml:"input"`
}

// Request (request) makes a control request of any subtype and waits for the
// answer.
type Request struct {
	Subtype string         `yaml:"subtype"`
	Fields  map[string]any `yaml:"fields"`
	Limit   time.Duration  `yaml:"limit"`   // then control_cancel_request; 0: none
	NoWait  bool           `yaml:"no_wait"` // go on at once; the answer is ignored
	// Type also writes the subtype as type, which qodercli's requests may carry.
	Type bool `yaml:"type"`
	// ID fixes the request id, Copies writes the request that many times more
	// under the same id.
	ID     string `yaml:"id"`
	Copies int    `yaml:"copies"`
	// Cancel takes the request back: in_flight at once, late after its answer.
	Cancel string `yaml:"cancel"`
}

// Elicitation (elicitation) asks the user a question for an MCP server.
type Elicitation struct {
	Server  string         `yaml:"server"`
	Message string         `yaml:"message"`
	Mode    string         `yaml:"mode"` // "" is form
	Schema  map[string]any `yaml:"schema"`
	Limit   time.Duration  `yaml:"limit"`
}

// Dialog (dialog) asks the host to show a dialog.
type Dialog struct {
	Kind    string         `yaml:"kind"`
	Payload map[string]any `yaml:"payload"`
	Limit   time.Duration  `yaml:"limit"`
}

// ModelPolicy (model_policy) asks the host which model to use.
type ModelPolicy struct {
	Purpose string         `yaml:"purpose"` // "" is main
	Fields  map[string]any `yaml:"fields"`
	Limit   time.Duration  `yaml:"limit"`
}

// APIRetry (api_retry) says that the model's API is tried again, and waits.
type APIRetry struct {
	Attempt    int           `yaml:"attempt"`
	MaxRetries int           `yaml:"max_retries"` // 0 is 10
	Delay      time.Duration `yaml:"delay"`
	Status     int           `yaml:"status"` // 0 is 529
	Error      string        `yaml:"error"`  // "" is overloaded
}

// System (system) writes a system message of any subtype.
type System struct {
	Subtype string         `yaml:"subtype"`
	Fields  map[string]any `yaml:"fields"`
}

// Message (message) writes a message of the session: Fields with uuid and
// session id added.
type Message struct {
	Fields map[string]any `yaml:"fields"`
}

// Compact (compact) compacts the conversation: its frames and hooks. In answer
// to the prompt /compact it is the whole turn.
type Compact struct {
	Takes   time.Duration `yaml:"takes"`
	Summary string        `yaml:"summary"`
}

// Answer (answer) writes a control response nobody asked for.
type Answer struct {
	ID    string `yaml:"id"`
	Error string `yaml:"error"` // "" is a success
}

// Cancel (cancel) writes a control_cancel_request.
type Cancel struct {
	ID string `yaml:"id"`
}

// Result (result) ends the turn; without it the turn ends as a success.
type Result struct {
	Subtype        string         `yaml:"subtype"` // "" is success
	IsError        *bool          `yaml:"is_error"`
	Text           *string        `yaml:"text"` // absent: the last text
	Errors         []string       `yaml:"errors"`
	StopReason     string         `yaml:"stop_reason"`
	TerminalReason string         `yaml:"terminal_reason"`
	Structured     any            `yaml:"structured_output"`
	APIErrorStatus int            `yaml:"api_error_status"`
	Cost           float64        `yaml:"cost"`
	Usage          map[string]any `yaml:"usage"`
	Fields         map[string]any `yaml:"fields"` // replace or join all others
}

// Exit (exit) ends the agent at once.
type Exit struct {
	Code   int    `yaml:"code"`
	Signal string `yaml:"signal"` // KILL, TERM, …; the binary raises it
}

// Flood (flood) writes stream events as fast as they go and then says, as
// text, how long that took: "<N> ns".
type Flood struct {
	Count int `yaml:"count"`
	Size  int `yaml:"size"` // bytes of text in each
}

// Huge (huge) writes one assistant message of so many bytes of text.
type Huge struct {
	Bytes Size `yaml:"bytes"`
}

// Spawn (spawn) starts a child process, in the binary; in memory it does
// nothing.
type Spawn Child

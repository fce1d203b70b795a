package scripted

import (
	"time"

	"github.com/agent-troupe/troupe/agent"
)

// Steps are played in order.
type Steps []Step

// Step is one action of an agent. In YAML it is a mapping with one key, which is the
// kind of the step. In the texts of steps these variables are replaced: ${prompt} by the
// turn's prompt, ${turn} by its number (from 0), ${session} by the session's id,
// ${answer} by the last answer to a request, hook or elicitation as JSON, and ${history}
// by all prompts of the session so far, joined by " | ".
type Step interface {
	play(p *player) error
}

// The kinds of steps, by their keys in YAML.
type (
	// Text (text) writes a block of text.
	Text string
	// Thinking (thinking) writes a block of thinking.
	Thinking string
	// Delay (delay) waits.
	Delay time.Duration
	// Raw (raw) writes a line unchanged, and a newline.
	Raw string
	// Stderr (stderr) writes a line of diagnostics.
	Stderr string
	// Parallel (parallel) makes several calls concurrently: tool_use, mcp_call, agent and
	// shell steps.
	Parallel Steps
)

// Partial (partial) writes text in pieces.
type Partial struct {
	Text   string        `yaml:"text"`
	Chunks []string      `yaml:"chunks"` // the pieces, instead of Text
	Chunk  int           `yaml:"chunk"`  // runes of Text in one piece; 0: 16
	Pause  time.Duration `yaml:"pause"`  // time between two pieces
}

// ToolUse (tool_use) calls a tool by the name that the model uses, such as Bash. The call
// goes through the gates of the host, and has its effect if they allow it.
//
// A tool of the host's in-process MCP servers (mcp__server__tool) runs in the host: the
// result is what its handler returns, and Result and Structured are not used. With Error
// the call fails and the handler is not called. A tool that such a server does not have
// is refused, as by the real agent.
type ToolUse struct {
	ID         string         `yaml:"id"`
	Name       string         `yaml:"name"`
	Input      map[string]any `yaml:"input"`
	Gate       agent.Gate     `yaml:"gate"`   // "", ask, allow
	Ask        map[string]any `yaml:"ask"`    // members of the request for permission; they replace those of the same name
	Result     string         `yaml:"result"` // ${input} is the input after the gates, as JSON
	Error      string         `yaml:"error"`  // text of a failure, instead of Result
	Structured map[string]any `yaml:"structured"`
	Takes      time.Duration  `yaml:"takes"`
	// Steps are played while the tool runs, before Takes, for example an elicitation.
	Steps Steps `yaml:"steps"`
	// Effect is a file to which a line with the call's id and input is appended before
	// Takes begins, so that a test can count runs.
	Effect string `yaml:"effect"`
}

// MCPCall (mcp_call) calls a tool of one of the host's in-process servers.
type MCPCall struct {
	ID        string         `yaml:"id"`
	Server    string         `yaml:"server"`
	Tool      string         `yaml:"tool"`
	Arguments map[string]any `yaml:"arguments"`
	Gate      agent.Gate     `yaml:"gate"`
	Limit     time.Duration  `yaml:"limit"` // time until notifications/cancelled; 0: no limit
}

// SubAgent (agent) starts a sub-agent.
type SubAgent struct {
	Description string `yaml:"description"`
	Prompt      string `yaml:"prompt"`
	Type        string `yaml:"type"`
	Background  bool   `yaml:"background"`
	Steps       Steps  `yaml:"steps"`
	Report      string `yaml:"report"`
	// Then is the turn that the agent itself starts when a background task has ended.
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

// Hook (hook) calls the callbacks registered for an event, in addition to the calls that
// the engine makes.
type Hook struct {
	Event   string         `yaml:"event"`
	Subject string         `yaml:"subject"` // text that matchers are compared with
	Input   map[string]any `yaml:"input"`
}

// Request (request) makes a control request of any subtype and waits for the
// answer.
type Request struct {
	Subtype string         `yaml:"subtype"`
	Fields  map[string]any `yaml:"fields"`
	Limit   time.Duration  `yaml:"limit"`   // time until control_cancel_request; 0: no limit
	NoWait  bool           `yaml:"no_wait"` // continue at once; the answer is ignored
	// Type writes the subtype as type, too, as qodercli's requests may have it.
	Type bool `yaml:"type"`
	// ID is the request id; "": a new id. Copies is how many more times the request is
	// written with the same id.
	ID     string `yaml:"id"`
	Copies int    `yaml:"copies"`
	// Cancel cancels the request: in_flight at once, late after its answer.
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

// APIRetry (api_retry) reports a retry of the model's API, and waits.
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

// Message (message) writes a message of the session: Fields, and uuid and session id.
type Message struct {
	Fields map[string]any `yaml:"fields"`
}

// Compact (compact) plays a compaction of the conversation: its frames and hooks. For the
// prompt /compact it is the whole turn.
type Compact struct {
	Takes   time.Duration `yaml:"takes"`
	Summary string        `yaml:"summary"`
}

// Answer (answer) writes a control response to no request.
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
	Fields         map[string]any `yaml:"fields"` // further members; they replace those of the same name
}

// Exit (exit) ends the agent at once.
type Exit struct {
	Code   int    `yaml:"code"`
	Signal string `yaml:"signal"` // KILL, TERM, …; the binary raises it
}

// Flood (flood) writes stream events as fast as possible. Then it writes as text how long
// that took: "<N> ns".
type Flood struct {
	Count int `yaml:"count"`
	Size  int `yaml:"size"` // bytes of text in each
}

// Huge (huge) writes one assistant message with Bytes bytes of text.
type Huge struct {
	Bytes Size `yaml:"bytes"`
}

// Spawn (spawn) starts a child process. It works in the binary only; in memory it does
// nothing.
type Spawn Child

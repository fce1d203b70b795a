package dialect

import (
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Dialect is one agent's way to speak the protocol. Implementations are stateless and safe for concurrent use.
type Dialect interface {
	// Name is the backend's name as used in errors and reports: "claude", "qoder".
	Name() string

	// Validate checks the options before anything starts. err joins one *session.ConfigError for each impossible option.
	Validate(o *Input) (warnings []session.Warning, err error)

	// Launch says how to start the agent. It fails with the same errors as Validate.
	Launch(o *Input) (Launch, error)

	// Initialize returns the inner request object of the initialize control request.
	Initialize(o *Input) (json.RawMessage, error)

	// CheckInitialize finds out from the initialize response whether the agent serves what the options rely on. It
	// fails with a *session.UnsupportedCapabilityError; the session must then end, since the agent runs without it.
	CheckInitialize(o *Input, response json.RawMessage) error

	// Resume returns the input of a next incarnation of the session: the same, but it takes up sessionID where it
	// is, and neither forks nor cuts it again. rerun has the agent run an interrupted turn again by itself, tools
	// included, which an agent may not serve (*session.UnsupportedCapabilityError).
	Resume(o *Input, sessionID string, rerun bool) (*Input, error)

	// AfterInitialize lists the requests to send, in order, between the initialize response and the first user line.
	AfterInitialize(o *Input) []protocol.HostRequest

	// BeforeEOF lists the requests to send, one after the other, before stdin is closed, given the response to
	// initialize: they have the agent write out what would be lost with its end. None are sent if Traits.FlushGrace is 0.
	BeforeEOF(initialize json.RawMessage) []protocol.HostRequest

	// UserLine encodes a user message as one line, newline included, with what the options add to every message.
	UserLine(d UserDefaults, m *protocol.UserMessage) ([]byte, error)

	// Encode returns the inner request object of a control request, with the dialect's discriminators. A request
	// this agent never serves gives a *session.UnsupportedCapabilityError.
	Encode(r protocol.HostRequest) (json.RawMessage, error)

	// Capability is what the agent must announce before r may be sent; empty when nothing is needed.
	Capability(r protocol.HostRequest) string

	// PermissionAnswer encodes the answer to a can_use_tool request. The zero PermissionResult is a deny.
	PermissionAnswer(req *protocol.CanUseToolRequest, res protocol.PermissionResult) (json.RawMessage, error)

	// PermissionFailure is the answer when no decision can be had: an explicit deny, which the model sees as reason.
	PermissionFailure(req *protocol.CanUseToolRequest, reason string) json.RawMessage

	// HookFailure is the answer for a hook that failed. A gate gets a response that denies; any other event gets
	// errText for an error answer and a nil response. A gate never gets an error answer: the Claude CLI takes an
	// error answer to PreToolUse as permission (observed on Claude Code 2.1.329).
	HookFailure(event protocol.HookEvent, reason string) (response json.RawMessage, errText string)

	// ModelPolicyAnswer encodes the answer to a get_model_policy request. Agents without model policies give an
	// *session.UnsupportedCapabilityError.
	ModelPolicyAnswer(reply protocol.ModelPolicyReply) (json.RawMessage, error)

	// Traits are the agent's habits that shape how it is driven.
	Traits() Traits
}

// UserDefaults are what options add to every user message: all that is needed of them once the agent is initialized.
type UserDefaults struct {
	VerbatimPrompts bool            // see Options
	CustomContext   json.RawMessage // see Options
}

// UserDefaults returns what o adds to every user message.
func (o *Input) UserDefaults() UserDefaults {
	return UserDefaults{VerbatimPrompts: o.VerbatimPrompts, CustomContext: o.CustomContext}
}

// Traits are an agent's habits. All durations are defaults that the user may override.
type Traits struct {
	FlushGrace     time.Duration // from the last turn to closing stdin, for BeforeEOF and for what the agent asks meanwhile; 0: none
	QuietBeforeEOF time.Duration // stdin is closed when the agent has written nothing for so long: a gate may follow the result; within FlushGrace
	EOFGrace       time.Duration // from closing stdin to SIGTERM
	TermGrace      time.Duration // from SIGTERM to SIGKILL
	InterruptGrace time.Duration // from an interrupt request to the next step of the close ladder

	ResultAfterCancelled bool // says that a turn which fails is cancelled, and then gives its result
	RepeatsSystemInit    bool // sends system/init again at the start of each turn
	// TermOnHostDeath: when the host dies, Linux sends the agent SIGTERM, on which it ends the commands that it runs and
	// then itself. False: Linux sends SIGKILL, which no agent can trap, and commands in sessions of their own live on.
	TermOnHostDeath      bool
	PromptHookComesFirst bool // calls UserPromptSubmit before it begins a turn that answers a prompt, and then system/init

	ProtocolMajor   string   // required major of system/init's protocol_version; empty when the agent has none
	AuthExpiredExit int      // exit code that means the login expired; 0 when there is none
	ExecutableNames []string // names to look for on PATH, best first
	ExecutableEnv   string   // environment variable that names the executable; empty when there is none

	MCPNotificationReply json.RawMessage // what mcp_response holds in the answer to a JSON-RPC notification
	MCPUnknownServer     string          // the error answer for an in-process server that is not there, before its name
	UnknownHook          string          // the error answer for a hook that was never registered, before its callback id
	ErrorCodeKey         string          // the key under which an error answer names its code
	ElicitationFallback  string          // the action that answers an elicitation when there is no callback
}

// Launch says how to start an agent. References {{file:NAME}} in Args and Env values stand for the path at which
// the caller wrote that entry of Files.
type Launch struct {
	Path        string   // executable; empty: look Names up on PATH
	Names       []string // names to look up when Path is empty, best first
	Interpreter []string // command and arguments that run Path, e.g. node; empty: run Path itself
	Args        []string // arguments of the agent; never holds a secret
	Env         []EnvVar // variables to add or replace, sorted by name
	Unset       []string // variables to remove, sorted
	CleanEnv    bool     // start from an empty environment instead of the parent's
	Dir         string   // working directory; empty: the caller's
	Files       []File   // to be written with mode 0600 in a 0700 directory, and removed when the process is gone

	Warnings []session.Warning // those of Validate
}

// EnvVar is an environment variable for the agent.
type EnvVar struct {
	Name, Value string
	Secret      bool // never show Value in a log line or an error
}

// File is a file the agent reads at start.
type File struct {
	Name    string // base name, unique within one Launch
	Content []byte
	Reason  string // why this is a file and not an argument
}

// FileRef is the reference to a File that stands in Launch.Args and Launch.Env.
func FileRef(name string) string { return "{{file:" + name + "}}" }

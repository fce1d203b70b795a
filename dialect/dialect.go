package dialect

import (
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Dialect is one agent's variant of the protocol. Implementations are stateless and safe for concurrent use.
type Dialect interface {
	// Name returns the backend's name for errors and events: "claude", "qoder".
	Name() string

	// Validate checks the options before anything starts. err joins a *session.ConfigError for each option that cannot
	// work.
	Validate(o *Input) (warnings []session.Warning, err error)

	// Launch returns how to start the agent. It returns the same errors as Validate.
	Launch(o *Input) (Launch, error)

	// Initialize returns the inner request object of the initialize control request.
	Initialize(o *Input) (json.RawMessage, error)

	// CheckInitialize checks by the initialize response whether the agent supports what the options need. If it does
	// not, the error is a *session.UnsupportedCapabilityError, and the session must end, because the agent would run
	// without the option.
	CheckInitialize(o *Input, response json.RawMessage) error

	// Resume returns the input for the next process of the session: the same input, but it resumes sessionID, and does
	// not fork or cut the session again. rerun makes the agent run an interrupted turn again, including its tools; an
	// agent may not support that (*session.UnsupportedCapabilityError).
	Resume(o *Input, sessionID string, rerun bool) (*Input, error)

	// AfterInitialize lists the requests to send, in order, between the initialize response and the first user line.
	AfterInitialize(o *Input) []protocol.HostRequest

	// BeforeEOF lists the requests to send, one after another, before stdin is closed. They make the agent write state
	// that it would lose at its exit. initialize is the response to initialize. If Traits.FlushGrace is 0, no requests
	// are sent.
	BeforeEOF(initialize json.RawMessage) []protocol.HostRequest

	// UserLine encodes a user message as one line, including its newline, with the defaults that the options add.
	UserLine(d UserDefaults, m *protocol.UserMessage) ([]byte, error)

	// Encode returns the inner request object of a control request, with the dialect's discriminators. For a request
	// that no release of this agent supports, the error is a *session.UnsupportedCapabilityError.
	Encode(r protocol.HostRequest) (json.RawMessage, error)

	// Capability returns the capability that the agent must announce before r may be sent; empty if r needs none.
	Capability(r protocol.HostRequest) string

	// PermissionAnswer encodes the answer to a can_use_tool request. The zero PermissionResult denies.
	PermissionAnswer(req *protocol.CanUseToolRequest, res protocol.PermissionResult) (json.RawMessage, error)

	// PermissionFailure returns the answer to a can_use_tool request without a decision: a denial, whose reason the
	// model reads.
	PermissionFailure(req *protocol.CanUseToolRequest, reason string) json.RawMessage

	// HookFailure returns the answer for a hook that failed. For a gate it is a response that denies. For any other
	// event response is nil, and errText is the text of an error answer. A gate never gets an error answer, because
	// Claude Code takes an error answer to PreToolUse as permission (observed on 2.1.329).
	HookFailure(event protocol.HookEvent, reason string) (response json.RawMessage, errText string)

	// ModelPolicyAnswer encodes the answer to a get_model_policy request. For an agent without model policies the error
	// is a *session.UnsupportedCapabilityError.
	ModelPolicyAnswer(reply protocol.ModelPolicyReply) (json.RawMessage, error)

	// Traits returns the properties of the agent's process and protocol.
	Traits() Traits
}

// UserDefaults are the options that change every user message. No other options are needed after initialize.
type UserDefaults struct {
	VerbatimPrompts bool            // Options.VerbatimPrompts
	CustomContext   json.RawMessage // Options.CustomContext
}

// UserDefaults returns the options of o that change every user message.
func (o *Input) UserDefaults() UserDefaults {
	return UserDefaults{VerbatimPrompts: o.VerbatimPrompts, CustomContext: o.CustomContext}
}

// Traits are properties of an agent's process and protocol. All durations are defaults that options can override.
type Traits struct {
	FlushGrace     time.Duration // from the last turn to closing stdin, for BeforeEOF and the agent's last requests; 0: no wait
	QuietBeforeEOF time.Duration // within FlushGrace: how long the agent must write nothing before stdin is closed, because it may still ask a gate
	EOFGrace       time.Duration // from closing stdin to SIGTERM
	TermGrace      time.Duration // from SIGTERM to SIGKILL
	InterruptGrace time.Duration // from an interrupt request to the next step of the close ladder

	ResultAfterCancelled bool // reports a failed turn as cancelled before its result
	RepeatsSystemInit    bool // sends system/init again at the start of each turn
	// TermOnHostDeath says which signal Linux sends the agent when the host dies. True: SIGTERM, after which the agent
	// ends its commands and itself. False: SIGKILL, which no agent can trap; commands in their own sessions keep running.
	TermOnHostDeath      bool
	PromptHookComesFirst bool // calls UserPromptSubmit before system/init of a turn that answers a prompt

	// RemembersMessages says that the agent does not run a user message again whose uuid is in the session that it
	// resumed, and reports it as completed without having started. Only releases that send capabilities in the answer to
	// initialize, or a command_lifecycle, do.
	RemembersMessages bool
	// KeepsTurns says that a turn does not end with the process, and that a message which is given again is followed and
	// not run again. With RemembersMessages. A process then says that the message has started.
	KeepsTurns     bool
	UnknownSession string // text with which the agent ends if it does not find the session to resume; empty: no such text

	ProtocolMajor   string   // required major version in system/init's protocol_version; empty: the agent sends none
	AuthExpiredExit int      // exit code that means that the login has expired; 0: no such code
	ExecutableNames []string // names to look up on PATH, best first
	ExecutableEnv   string   // environment variable with the path of the executable; empty: no variable
	ProviderEnv     []string // environment variables that say which provider of models is used, and by whom; the first has its address

	MCPNotificationReply json.RawMessage // value of mcp_response in the answer to a JSON-RPC notification
	MCPUnknownServer     string          // text of the error answer for an unknown in-process server; the server's name follows it
	UnknownHook          string          // text of the error answer for an unknown hook; the callback id follows it
	ErrorCodeKey         string          // key of the code in an error answer
	ElicitationFallback  string          // action that answers an elicitation without a callback
}

// Launch describes how to start an agent. In Args and in the values of Env, {{file:NAME}} is a placeholder for the path
// to which the caller wrote that entry of Files.
type Launch struct {
	Path        string   // executable; empty: look Names up on PATH
	Names       []string // names to look up if Path is empty, best first
	Interpreter []string // command and arguments that run Path, such as node; empty: Path itself runs
	Args        []string // arguments of the agent; they never have a secret
	Env         []EnvVar // variables to add or replace, sorted by name
	Unset       []string // variables to remove, sorted
	CleanEnv    bool     // start with an empty environment instead of the parent's
	Dir         string   // working directory; empty: the caller's
	Files       []File   // to be written with mode 0600 in a 0700 directory, and removed when the process is gone

	Warnings []session.Warning // the warnings of Validate
}

// EnvVar is an environment variable for the agent.
type EnvVar struct {
	Name, Value string
	Secret      bool // true: Value must not be shown in logs and errors
}

// File is a file the agent reads at start.
type File struct {
	Name    string // base name, unique within one Launch
	Content []byte
	Reason  string // why this is a file and not an argument
}

// FileRef returns the placeholder for the path of a File, as in Launch.Args and Launch.Env.
func FileRef(name string) string { return "{{file:" + name + "}}" }

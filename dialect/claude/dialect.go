package claude

import (
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Name is the backend's name.
const Name = "claude"

// Dialect is the dialect of Claude Code. The zero value is ready to use, and safe for concurrent use.
type Dialect struct{}

// New returns the dialect.
func New() Dialect { return Dialect{} }

var _ dialect.Dialect = Dialect{}

// Name implements dialect.Dialect.
func (Dialect) Name() string { return Name }

// Traits implements dialect.Dialect. An idle Claude Code exits within milliseconds after EOF.
func (Dialect) Traits() dialect.Traits { return traits }

var traits = dialect.Traits{ //nolint:gochecknoglobals // only read
	EOFGrace:       2 * time.Second,
	TermGrace:      5 * time.Second,
	InterruptGrace: 2 * time.Second,

	RepeatsSystemInit:    true,
	TermOnHostDeath:      true, // observed on Claude Code 2.1.329: shells end in 0.5 s, the agent in 1 to 8 s
	PromptHookComesFirst: true,
	RemembersMessages:    true, // observed on Claude Code 2.1.329
	UnknownSession:       "No conversation found with session ID",

	ExecutableNames: []string{"claude"},
	ExecutableEnv:   "CLAUDE_CODE_EXECUTABLE",
	ProviderEnv: []string{
		"ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN",
		"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CONFIG_DIR", "HOME",
	},

	MCPNotificationReply: json.RawMessage(`{"jsonrpc":"2.0","result":{},"id":0}`),
	MCPUnknownServer:     "SDK MCP server not found: ",
	UnknownHook:          "No hook callback found for ID: ",
	ErrorCodeKey:         protocol.ErrorCodeKeyClaude,
	ElicitationFallback:  protocol.ElicitDecline,
}

// Validate implements dialect.Dialect.
func (d Dialect) Validate(o *dialect.Input) ([]session.Warning, error) {
	p, _ := d.compile(o)
	return p.Warnings, p.Err()
}

// Launch implements dialect.Dialect.
func (d Dialect) Launch(o *dialect.Input) (dialect.Launch, error) {
	p, l := d.compile(o)
	if err := p.Err(); err != nil {
		return dialect.Launch{}, err
	}
	l.Warnings = p.Warnings
	return *l, nil
}

// compile makes the launch and finds everything that is wrong on the way, so that Validate and Launch agree.
func (d Dialect) compile(o *dialect.Input) (*build.Problems, *dialect.Launch) {
	p := &build.Problems{Backend: Name}
	build.Check(o, p, modes()...)
	build.CheckShadows(o, p)
	check(o, p)
	l := &dialect.Launch{}
	build.Command(l, o, d.Traits(), p)
	l.Args = arguments(o, l, p)
	environment(o, l, p)
	if _, err := d.Initialize(o); err != nil {
		p.Addf("Options", "the initialize request: %v", err)
	}
	return p, l
}

func modes() []protocol.PermissionMode {
	return []protocol.PermissionMode{protocol.ModeDefault, protocol.ModeAcceptEdits, protocol.ModePlan,
		protocol.ModeDontAsk, protocol.ModeAuto, protocol.ModeBypassPermissions}
}

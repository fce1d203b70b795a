package qoder

import (
	"encoding/json"
	"time"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Name is the backend's name.
const Name = "qoder"

// Dialect is the dialect of qodercli. The zero value is ready to use, and safe for concurrent use.
type Dialect struct{}

// New returns the dialect.
func New() Dialect { return Dialect{} }

var _ dialect.Dialect = Dialect{}

// Name implements dialect.Dialect.
func (Dialect) Name() string { return Name }

// Traits implements dialect.Dialect. qodercli took 7.7 to 8.6 s to exit after EOF, and 8.6 s after SIGTERM. The vendor's
// SDK waits 2 s and 5 s, and then kills it.
func (Dialect) Traits() dialect.Traits { return traits }

var traits = dialect.Traits{ //nolint:gochecknoglobals // only read
	FlushGrace:     10 * time.Second,
	QuietBeforeEOF: 250 * time.Millisecond, // it needs about 8 s to exit
	EOFGrace:       12 * time.Second,
	TermGrace:      12 * time.Second,
	InterruptGrace: 5 * time.Second,

	ResultAfterCancelled: true, // observed on qodercli 1.1.52

	ProtocolMajor:   "1",
	AuthExpiredExit: 41,
	ExecutableNames: []string{"qodercli"},
	ExecutableEnv:   "QODERCLI_PATH",
	ProviderEnv:     []string{"QODER_VPC_ENDPOINT", "QODER_PERSONAL_ACCESS_TOKEN", "QODER_SERVICE_ACCOUNT_KEY", "HOME"},

	MCPNotificationReply: json.RawMessage(`{"jsonrpc":"2.0"}`),
	MCPUnknownServer:     "Unknown in-process MCP server: ",
	UnknownHook:          "Unknown hook callback: ",
	ErrorCodeKey:         protocol.ErrorCodeKeyQoder,
	ElicitationFallback:  protocol.ElicitCancel,
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
	p := &build.Problems{Backend: Name, MCPName: protocol.MCPNameQoder}
	build.Check(o, p, modes()...)
	build.CheckShadows(o, p)
	l := &dialect.Launch{}
	build.Command(l, o, d.Traits(), p)
	check(o, l, p)
	l.Args = arguments(o, l, p)
	environment(o, l, p)
	if _, err := d.Initialize(o); err != nil {
		p.Addf("Options", "the initialize request: %v", err)
	}
	return p, l
}

func modes() []protocol.PermissionMode {
	return []protocol.PermissionMode{protocol.ModeDefault, protocol.ModeAcceptEdits, protocol.ModePlan,
		protocol.ModeDontAsk, protocol.ModeAuto, protocol.ModeBypassPermissions, protocol.ModeYolo}
}

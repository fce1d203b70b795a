package acp

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Name is the backend's name.
const Name = "acp"

// Dialect is the dialect of an agent of the protocol. It is safe for concurrent use.
type Dialect struct {
	// command is the agent's program and its arguments.
	command []string
}

// New returns the dialect of the agent that command starts: its program, by path or by its
// name on PATH, and its arguments.
func New(command ...string) Dialect { return Dialect{slices.Clone(command)} }

var _ dialect.Dialect = Dialect{}

// Name implements dialect.Dialect.
func (Dialect) Name() string { return Name }

// Traits implements dialect.Dialect. An agent need not end when its stdin ends: qodercli
// 1.1.52 does not (observed), so SIGTERM follows soon.
func (Dialect) Traits() dialect.Traits {
	return dialect.Traits{
		EOFGrace: 2 * time.Second, TermGrace: 5 * time.Second, InterruptGrace: 10 * time.Second,
		ErrorCodeKey: protocol.ErrorCodeKeyClaude, ElicitationFallback: protocol.ElicitCancel,
	}
}

// Validate implements dialect.Dialect.
func (d Dialect) Validate(o *dialect.Input) ([]session.Warning, error) {
	p := d.check(o)
	return p.Warnings, p.Err()
}

// Launch implements dialect.Dialect. The file [SetupFile] is for package acp/acpclient, which
// does not pass it on.
func (d Dialect) Launch(o *dialect.Input) (dialect.Launch, error) {
	p := d.check(o)
	if err := p.Err(); err != nil {
		return dialect.Launch{}, err
	}
	setup, err := setupOf(o)
	if err != nil {
		return dialect.Launch{}, err
	}
	env := build.NewEnv(o, p)
	l := dialect.Launch{
		Args: slices.Clone(d.command[1:]), Env: env.Vars(), Unset: env.Removed(), CleanEnv: o.CleanEnv, Dir: o.Cwd, Warnings: p.Warnings,
		Files: []dialect.File{{Name: SetupFile, Content: setup, Reason: "it says which session of the agent to open"}},
	}
	if program := d.command[0]; filepath.Base(program) == program {
		l.Names = []string{program}
	} else {
		l.Path = program
	}
	return l, nil
}

// Initialize implements dialect.Dialect. [SetupFile] has what the agent needs.
func (Dialect) Initialize(*dialect.Input) (json.RawMessage, error) {
	return json.RawMessage(`{"subtype":"initialize"}`), nil
}

// CheckInitialize implements dialect.Dialect: the answer has a [Refusal] if the agent did not
// open the session.
func (d Dialect) CheckInitialize(_ *dialect.Input, response json.RawMessage) error {
	var answer struct {
		Refusal *Refusal `json:"acp_failure"`
	}
	if err := protocol.Unmarshal(response, &answer); err != nil {
		return &session.ControlError{Request: "initialize", Message: "the answer cannot be read: " + err.Error()}
	}
	if answer.Refusal == nil {
		return nil
	}
	return answer.Refusal.err()
}

// AfterInitialize implements dialect.Dialect.
func (Dialect) AfterInitialize(*dialect.Input) []protocol.HostRequest { return nil }

// BeforeEOF implements dialect.Dialect.
func (Dialect) BeforeEOF(json.RawMessage) []protocol.HostRequest { return nil }

// Resume implements dialect.Dialect.
func (Dialect) Resume(o *dialect.Input, sessionID string, rerun bool) (*dialect.Input, error) {
	if rerun {
		return nil, &session.UnsupportedCapabilityError{Backend: Name, Request: "re-run of an interrupted turn"}
	}
	return o.Resumed(sessionID), nil
}

// UserLine implements dialect.Dialect.
func (Dialect) UserLine(_ dialect.UserDefaults, m *protocol.UserMessage) ([]byte, error) {
	return protocol.AppendUserLine(nil, m, protocol.SessionIDIfSet)
}

// Encode implements dialect.Dialect.
func (Dialect) Encode(r protocol.HostRequest) (json.RawMessage, error) {
	switch r.Subtype() {
	case "interrupt", "set_model", "set_permission_mode":
		return protocol.MarshalRequest(r, protocol.SubtypeOnly)
	}
	return nil, &session.UnsupportedCapabilityError{Backend: Name, Request: r.Subtype()}
}

// Capability implements dialect.Dialect.
func (Dialect) Capability(protocol.HostRequest) string { return "" }

// PermissionAnswer implements dialect.Dialect. The protocol has no place for another input and
// for rules: an allow that has one is an error, and so a denial.
func (Dialect) PermissionAnswer(req *protocol.CanUseToolRequest, res protocol.PermissionResult) (json.RawMessage, error) {
	switch {
	case res.Allowed() && res.UpdatedInput != nil && !sameJSON(res.UpdatedInput, req.Input):
		return nil, errChanged(req.ToolName, "another input")
	case res.Allowed() && len(res.UpdatedPermissions) > 0:
		return nil, errChanged(req.ToolName, "new permission rules")
	}
	return build.PermissionAnswer(req, res)
}

// PermissionFailure implements dialect.Dialect.
func (Dialect) PermissionFailure(req *protocol.CanUseToolRequest, reason string) json.RawMessage {
	return build.PermissionFailure(req, reason)
}

// HookFailure implements dialect.Dialect. There are no hooks.
func (Dialect) HookFailure(_ protocol.HookEvent, reason string) (json.RawMessage, string) {
	return nil, reason
}

// ModelPolicyAnswer implements dialect.Dialect.
func (Dialect) ModelPolicyAnswer(protocol.ModelPolicyReply) (json.RawMessage, error) {
	return nil, &session.UnsupportedCapabilityError{Backend: Name, Request: "get_model_policy"}
}

// Place names the agent among those with the same program, such as npx.
func (d Dialect) Place() string { return strings.Join(d.command, " ") }

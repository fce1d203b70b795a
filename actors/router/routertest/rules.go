package routertest

import (
	"bytes"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// Rules are those of a dialect that has nothing to say but how to deny. They know
// some subtypes of each kind.
type Rules struct {
	Deny func(k session.Kind, f protocol.Frame, reason string) (response []byte, errText string)
}

// Initialize implements [machine.Rules].
func (Rules) Initialize(int) ([]byte, error) { return []byte(`{"subtype":"initialize"}`), nil }

// Initialized implements [machine.Rules].
func (Rules) Initialized([]byte) ([]machine.Called, error) { return nil, nil }

// Keep implements [machine.Rules].
func (Rules) Keep(response []byte) (kept []byte, capabilities []string) {
	var in struct {
		Capabilities []string `json:"capabilities"`
	}
	_ = protocol.Unmarshal(response, &in) // a failure leaves it empty
	return bytes.Clone(response), in.Capabilities
}

// Shared implements [machine.Rules].
func (Rules) Shared(list []string) []string { return list }

// BeforeEOF implements [machine.Rules].
func (Rules) BeforeEOF([]byte, []string) ([]machine.Called, error) { return nil, nil }

// CheckVersion implements [machine.Rules].
func (Rules) CheckVersion(string) error { return nil }

// Again implements [machine.Rules].
func (Rules) Again(line []byte, _ []machine.ToolCall) ([]byte, error) { return line, nil }

// Afresh implements [machine.Rules].
func (Rules) Afresh(line []byte, _ string) ([]byte, error) { return line, nil }

// Onward implements [machine.Rules].
func (Rules) Onward(line []byte, _ string, _ []machine.ToolCall, _ bool) ([]byte, error) {
	return line, nil
}

// CheckSession implements [machine.Rules].
func (Rules) CheckSession(string) string { return "" }

// KindOf implements [machine.Rules].
func (Rules) KindOf(subtype string) (kind session.Kind, person bool) {
	switch subtype {
	case "can_use_tool":
		return session.KindPermission, true
	case "hook_callback":
		return session.KindHook, false
	case "mcp_message":
		return session.KindMCP, false
	case "get_model_policy":
		return session.KindModelPolicy, false
	case "elicitation", "elicitation_response", "request_user_dialog":
		return session.KindInquiry, true
	case "fetch_job_token", "fetch_service_account_token",
		"memory_should_generate", "skill_evolution_should_review", "resolve_session_artifacts":
		return session.KindInquiry, false
	}
	return session.KindOther, false
}

// Denial implements [machine.Rules].
func (r Rules) Denial(k session.Kind, f protocol.Frame, reason string) (response []byte, errText string) {
	return r.Deny(k, f, reason)
}

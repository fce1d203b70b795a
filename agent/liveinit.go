package agent

import "github.com/agent-troupe/troupe/protocol"

// liveInit is what system/init of an agent with a real model says besides: that it has
// no services of the vendor's (members observed on Claude Code 2.1.329).
func (e *engine) liveInit() Object {
	if e.cfg.Live == nil {
		return nil
	}
	return Object{
		"served_by_anthropic": false, "analytics_disabled": true, "product_feedback_disabled": true,
		"ultrathink_available": false, "ultrathink_typed_raises": false, "per_turn_effort_active": e.effort() != "",
		"terminal_slash_commands": []any{},
	}
}

// liveInitialize is the same for the response to initialize.
func (e *engine) liveInitialize() Object {
	if e.cfg.Live == nil {
		return nil
	}
	return Object{
		"remote_control_available": false, "remote_control_auto_enable": false,
		"remote_control_auto_on_by_default": false, "remote_control_auto_connect_default": false,
		"ide_rc_auto_enable_gate": false,
	}
}

// applied says what initialize has set up (observed on Claude Code 2.1.329).
func (e *engine) applied(answer Object, in *protocol.InitializeRequest) {
	if len(in.Hooks) > 0 {
		answer["hooks_applied"] = true
	}
	parked := Object{}
	for _, name := range in.SDKMCPServers {
		if len(in.SDKMCPServerManifests[name].ToolsListResult) > 0 {
			parked[name] = "parked"
		}
	}
	if len(parked) > 0 {
		answer["sdk_mcp_manifests_parked"] = parked
	}
}

// effort is how much the model thinks; "": it does not say.
func (e *engine) effort() string {
	if e.cfg.Live == nil || e.cfg.Live.Effort == nil {
		return ""
	}
	return e.cfg.Live.Effort(e.session.model)
}

// beforeModel are the events of hooks that come before the model is asked: they say nothing
// of its effort (observed on Claude Code 2.1.329).
func beforeModel(event string) bool {
	switch event {
	case "UserPromptSubmit", "SessionStart", "SessionEnd", "Setup", "ConfigChange", "InstructionsLoaded", "Notification":
		return true
	}
	return false
}

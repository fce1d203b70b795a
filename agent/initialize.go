package agent

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
)

// Handshake is how the engine gets the tools of the host's in-process MCP servers.
type Handshake string

// Values of [Handshake].
const (
	HandshakeManifest Handshake = "manifest"  // from the manifest in initialize, like Claude Code 2.1.329
	HandshakeMessages Handshake = "handshake" // by initialize, initialized, tools/list, like Claude Code 2.1.197
)

// session is what the conversation is called and where it runs.
type session struct {
	id     string
	cwd    string
	model  string
	prompt string // prompt_id of the turn
}

func newSession(e *engine) session {
	s := session{cwd: e.launch.Dir, model: e.flags.last("model"), id: e.flags.last("session-id")}
	if resumed := e.flags.last("resume"); resumed != "" && s.id == "" && !e.flags.has("fork-session") {
		s.id = resumed
	}
	s.id = cmp.Or(s.id, e.cfg.SessionID)
	if s.id == "" {
		s.id = e.ids.uuid()
	}
	s.model = cmp.Or(s.model, e.cfg.Model, e.tr.model)
	return s
}

// host is what the host told about itself in initialize.
type host struct {
	initialized bool
	hooks       map[protocol.HookEvent][]protocol.HookMatcher
	servers     []*mcpServer           // in-process ones, in the order given, then the agent's own
	subText     bool                   // forwardSubagentText
	prompt      *protocol.SystemPrompt // nil: the agent's own
	addition    string                 // appendSystemPrompt
	planMode    string                 // planModeInstructions
	output      json.RawMessage        // jsonSchema; nil: the host wants text
	memory      Object                 // Qoder's, as the response to initialize has it; nil: off
	evolution   Object                 // of skills, likewise
	cancelled   map[string]bool        // requests of the host that it took back
}

func newHost() host {
	return host{cancelled: map[string]bool{}}
}

func (h *host) cancel(requestID string) { h.cancelled[requestID] = true }

// initialize takes the host's registrations and answers. A second one
// succeeds like the first, as observed.
func (e *engine) initialize(r *Request, in *protocol.InitializeRequest) {
	again := e.host.initialized
	hooks := in.Hooks
	if e.cfg.NoHooks || e.minimal() {
		hooks = nil
	}
	e.host = host{
		initialized: true, hooks: hooks, subText: in.ForwardSubagentText, cancelled: e.host.cancelled,
		prompt: in.SystemPrompt, addition: in.AppendSystemPrompt, planMode: in.PlanModeInstructions, output: in.JSONSchema,
	}
	if e.cfg.Dialect == Qoder {
		var skill struct {
			Skill json.RawMessage `json:"skill"`
		}
		_ = protocol.Unmarshal(in.Evolution, &skill) // as if it were empty
		e.host.memory, e.host.evolution = forSDK(in.Memory), forSDK(skill.Skill)
	}
	for _, name := range in.SDKMCPServers {
		e.host.servers = append(e.host.servers, newMCPServer(name, in.SDKMCPServerManifests[name].ToolsListResult))
	}
	e.host.servers = append(e.host.servers, e.own...)
	answer := e.initializeResponse()
	if in.MCPServers != nil {
		answer["mcp_servers_applied"] = true
	}
	if in.Plugins != nil {
		answer["plugins_applied"] = true
	}
	if e.cfg.Live != nil {
		e.applied(answer, in)
	}
	e.at(BeforeInitResponse, nil)
	if e.tr.initEachTurn {
		r.succeedBeside(answer, Object{
			"pending_permission_requests": []any{}, "pending_user_dialog_requests": []any{},
		})
	} else {
		r.Succeed(answer)
	}
	if again && e.tr.stateFrames {
		e.tasksChanged()
	}
	if !e.tr.initEachTurn {
		e.initFrame(nil)
	}
	e.at(AfterInitResponse, nil)
	e.spawn(nil, func(s *Strand) { e.connectServers(s) })
}

// forSDK is what the response to initialize says of memory, or of the evolution of
// skills, that the SDK has asked for.
func forSDK(asked json.RawMessage) Object {
	var in struct {
		Requester string `json:"requester"`
		Mode      string `json:"mode"`
	}
	if protocol.Unmarshal(asked, &in) != nil || in.Requester != "sdk" {
		return nil
	}
	return Object{"enabled": true, "requester": in.Requester, "mode": in.Mode}
}

// minimal reports whether the agent was started in Claude Code's minimal mode,
// which calls no hooks (observed on 2.1.329).
func (e *engine) minimal() bool {
	if e.cfg.Dialect == Qoder {
		return false
	}
	on := e.flags.has("bare")
	for _, kv := range e.launch.Env {
		if v, ok := strings.CutPrefix(kv, "CLAUDE_CODE_SIMPLE="); ok {
			on = on || slices.Contains([]string{"1", "true", "yes", "on"}, strings.ToLower(strings.TrimSpace(v)))
		}
	}
	return on
}

func (e *engine) initializeResponse() Object {
	o := Object{
		"commands":                []any{Object{"name": "compact", "description": "Compact the conversation", "argumentHint": ""}},
		"agents":                  []any{Object{"name": "general-purpose", "description": "General-purpose agent"}},
		"output_style":            "default",
		"available_output_styles": []any{"default"},
		"models":                  e.models(),
		"capabilities":            e.responseCapabilities(),
	}
	if e.cfg.Dialect == Qoder {
		o["account"] = Object{"userId": "scripted"}
		o["permissionMode"] = e.perms.mode
		if e.host.memory != nil {
			o["memory"] = e.host.memory
		}
		if e.host.evolution != nil {
			o["evolution"] = Object{"skill": e.host.evolution}
		}
		return o.with(e.cfg.Initialize)
	}
	o["account"] = Object{"tokenSource": "none", "apiKeySource": keySource, "apiProvider": "firstParty"}
	if e.launch.Pid != 0 {
		o["pid"] = e.launch.Pid
	}
	o["claude_code_version"] = e.tr.version
	o["current_permission_mode"] = e.perms.mode
	o["hook_on_failure_supported"] = true
	o["hooks_when_unanswered_kept"] = 0
	o["other_hook_ask_outranks_host"] = true
	o["feedback_mode"] = Object{"kind": "disabled"}
	o["analytics_disabled"] = true
	o["fast_mode_state"] = "off"
	o["session_state"] = "idle"
	return o.with(e.liveInitialize()).with(e.cfg.Initialize)
}

const keySource = "ANTHROPIC_API_KEY"

func (e *engine) models() []any {
	if e.cfg.Dialect == Qoder {
		return []any{Object{"value": e.session.model, "displayName": e.session.model}}
	}
	about := "Scripted"
	if e.cfg.Live != nil {
		about = e.session.model
	}
	return []any{Object{
		"value": "default", "resolvedModel": e.session.model, "displayName": "Default (recommended)",
		"description": about, "supportsEffort": true,
	}}
}

// capabilities are those of system/init; the initialize response of Claude Code carries
// its own list.
func (e *engine) capabilities() []string {
	if e.cfg.Capabilities != nil {
		return e.cfg.Capabilities
	}
	if e.cfg.Dialect == Qoder {
		return []string{
			"interrupt_receipt_v1", "interrupt_cancel_queued_v1", "msg_lifecycle_v1",
			"session_rewind_v1", "background_tasks_v1", "side_question_v1", "custom_context_v1",
			"goal_v1", "goal_max_turns_v1", "plan_mode_v1", "commands_changed_v1", "reload_skills_v1",
			"skill_evolution_v1", "session_store_fork_barrier_v1",
		}
	}
	return []string{
		"interrupt_receipt_v1", "interrupt_cancel_queued_v1", "interrupt_send_now_v1",
		"interrupt_requeue_taken_v1", "msg_lifecycle_v1", "request_marker_lists_v1",
		"ask_user_question_unanswered_v1", "lifecycle_wakeup_source_v1",
	}
}

func (e *engine) responseCapabilities() []string {
	if e.cfg.Dialect == Qoder || e.cfg.Capabilities != nil {
		return e.capabilities()
	}
	return []string{
		"ui_surface_v1", "mcp_call_result_not_for_model_v1", "mcp_call_check_permissions_v1",
		"reload_plugins_refuse_if_busy_v1", "get_usage_detached_v1",
	}
}

// initFrame writes system/init: on Claude Code at the start of every turn.
func (e *engine) initFrame(msg *message) {
	servers := []any{}
	for _, s := range e.host.servers {
		servers = append(servers, Object{"name": s.name, "status": s.status(), "source": s.source()})
	}
	o := Object{
		"cwd": e.session.cwd, "tools": e.tools(), "mcp_servers": servers,
		"model": e.session.model, "permissionMode": e.perms.mode,
		"slash_commands": []any{"compact"}, "output_style": "default",
		"skills": []any{}, "plugins": []any{}, "capabilities": e.capabilities(),
	}
	if e.cfg.Dialect == Qoder {
		o["apiKeySource"] = "none"
		o["qodercli_version"] = e.tr.version
		o["protocol_version"] = e.tr.protocolVersion
	} else {
		o["apiKeySource"] = keySource
		o["claude_code_version"] = e.tr.version
		o["agents"] = []any{"general-purpose"}
		o["original_cwd"] = e.session.cwd
		o["additional_directories"] = append([]string{}, e.flags.all("add-dir")...)
		o["fast_mode_state"] = "off"
		o["view_mode"] = "default"
		if msg != nil && msg.uuid != "" && msg.origin == nil {
			o["user_message_uuids"] = []string{msg.uuid}
		}
	}
	e.system("init", o.with(e.liveInit()).with(e.cfg.Init))
}

// tools lists what system/init says the model may call. The tool that runs a
// sub-agent is called Agent in tool_use and Task here, as observed.
func (e *engine) tools() []string {
	names := []string{"Task", "Bash", "Edit", "Read", "Skill", "TaskStop", "WebFetch", "WebSearch", "Write"}
	if e.flags.last("permission-prompt-tool") == "stdio" {
		names = append(names, "AskUserQuestion", "EnterPlanMode", "ExitPlanMode")
	}
	if e.cfg.Live != nil {
		names = slices.Clone(e.cfg.Live.Tools)
	}
	if list := e.flags.last("tools"); e.flags.has("tools") && list != "default" {
		names = splitRules(list)
	}
	if e.cfg.Live != nil && e.flags.last("permission-prompt-tool") != "stdio" { // the host does not answer them
		names = slices.DeleteFunc(names, func(n string) bool { return n == "AskUserQuestion" || n == "EnterPlanMode" || n == "ExitPlanMode" })
	}
	if e.cfg.Live != nil && e.host.output != nil {
		names = append(names, "StructuredOutput")
	}
	names = slices.DeleteFunc(names, func(n string) bool {
		other := map[string]string{"Agent": "Task", "Task": "Agent"}[n]
		return anyCovers(e.perms.disallow, n, nil) || e.cfg.Live != nil && other != "" && anyCovers(e.perms.disallow, other, nil)
	})
	for _, s := range e.host.servers {
		for _, tool := range s.tools {
			names = append(names, e.mcpToolName(s.name, tool))
		}
	}
	if i := slices.Index(names, "Agent"); i >= 0 && e.cfg.Live != nil {
		names[i] = "Task"
	}
	slices.Sort(names)
	if i := slices.Index(names, "Task"); i >= 0 && e.cfg.Live != nil { // it is the first, as observed
		names = slices.Insert(slices.Delete(names, i, i+1), 0, "Task")
	}
	return slices.Compact(names)
}

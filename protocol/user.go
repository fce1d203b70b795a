package protocol

import (
	"cmp"
	"encoding/json"
	"fmt"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// UserMessage is a user line, in both directions: a prompt of the host, or a
// tool result, an echo or a synthetic prompt that the agent reports.
type UserMessage struct {
	Common
	Message UserContent `json:"message"` // the prompt, or one tool result

	// Priority asks when a line that comes in a running turn is taken up:
	// now, next or later. "" leaves it to the agent.
	Priority string `json:"priority,omitempty"`
	// ShouldQuery false adds the line to the history without a call of the
	// model. nil means true.
	ShouldQuery *bool `json:"shouldQuery,omitempty"`
	// ClientComposed keeps the agent from expanding the prompt.
	ClientComposed bool    `json:"client_composed,omitempty"`
	Origin         *Origin `json:"origin,omitempty"`    // nil: not sent
	Timestamp      string  `json:"timestamp,omitempty"` // RFC 3339
	// PastedContent is what the person pasted: a list of strings or lists of
	// content blocks, which Claude Code adds after the text.
	PastedContent json.RawMessage `json:"pasted_content,omitempty"`
	InlinePastes  []string        `json:"inline_pastes,omitempty"` // pasted text that is still in Message, one entry for each paste
	// CustomContext is Qoder's: an object handed to the model's requests.
	CustomContext json.RawMessage `json:"custom_context,omitempty"`

	// IsReplay marks the echo of a line that was already accepted.
	IsReplay bool `json:"isReplay,omitempty"`
	// IsSynthetic marks a line that the agent wrote for itself.
	IsSynthetic bool `json:"isSynthetic,omitempty"`
	// Historical marks replayed history.
	Historical bool `json:"historical,omitempty"`
	// IsCompactSummary marks the summary that a compaction left.
	IsCompactSummary bool `json:"is_compact_summary,omitempty"`
	IsMeta           bool `json:"is_meta,omitempty"` // written by the agent for the model, not for people
	// PlanContent is the plan that was approved.
	PlanContent           string          `json:"plan_content,omitempty"`
	PermissionMode        PermissionMode  `json:"permission_mode,omitempty"`         // the mode when the line was taken up; "": not sent
	InterruptedMessageID  string          `json:"interrupted_message_id,omitempty"`  // on "[Request interrupted by user]": the API message id that was cut
	RetractedMessageUUIDs []string        `json:"retracted_message_uuids,omitempty"` // lines that no longer count
	FileAttachments       json.RawMessage `json:"file_attachments,omitempty"`        // files of a remote client: objects with file_uuid, file_name, …

	// ToolUseResult is the tool's structured output, of a shape of the
	// tool's own, or a string that begins with "Error: ".
	ToolUseResult  json.RawMessage  `json:"tool_use_result,omitempty"`
	ToolResultMeta []ToolResultMeta `json:"tool_result_meta,omitempty"` // one entry for each tool result in Message
	MCPMeta        *MCPResultMeta   `json:"mcp_meta,omitempty"`         // nil: no result of an MCP tool, or nothing to add
	// Where a tool result or what a tool says comes from.
	SourceToolUseID         string `json:"source_tool_use_id,omitempty"`         // the tool call that wrote the line; "": none
	SourceToolAssistantUUID string `json:"source_tool_assistant_uuid,omitempty"` // uuid of the assistant line with the call
	RefusedMessageID        string `json:"refused_message_id,omitempty"`         // API message id of a refused response that this line follows
	SubagentFields
}

func (*UserMessage) wire() (string, string) { return "user", "" }

// UserContent is the message object of a user line. Claude Code exits on a
// Role other than "user" (observed on 2.1.329).
type UserContent struct {
	Role    string  `json:"role"`    // always "user"
	Content Content `json:"content"` // a plain string decodes as one [TextBlock], and is written as a string
}

// ToolResultMeta says how a tool call came to run, or why it did not.
type ToolResultMeta struct {
	ID                 string              `json:"id"`                            // tool use id
	PermissionDecision *PermissionDecision `json:"permission_decision,omitempty"` // nil: not sent
	// NonExecutionKind is permission-rule, user-rejected, …; "" if it ran.
	NonExecutionKind string `json:"non_execution_kind,omitempty"`
	// UserFeedback is what the user said with a no.
	UserFeedback string `json:"user_feedback,omitempty"`
	// BuiltInTool and RunInput are what ran, if that is not what the model
	// called: the tool's name, and its input as JSON.
	BuiltInTool string `json:"built_in_tool,omitempty"`
	RunInput    string `json:"run_input,omitempty"` // "": the input of the call
}

// MCPResultMeta is what the result of an MCP tool carries beside its content.
type MCPResultMeta struct {
	Meta              json.RawMessage   `json:"_meta,omitempty"`              // the result's _meta, an object; nil: none
	StructuredContent json.RawMessage   `json:"structured_content,omitempty"` // an object of the tool's output schema; nil: none
	ResourceLinks     []MCPResourceLink `json:"resource_links,omitempty"`     // files that the tool returned by reference
}

// PermissionDecision is what was decided on a tool call, and by whom.
type PermissionDecision struct {
	Decision   string `json:"decision"`              // accept, reject
	Source     string `json:"source"`                // config, user_temporary, user_reject, hook, …
	ReasonType string `json:"reason_type,omitempty"` // mode, rule, subcommandResults, …; "": not sent
	// AutoModeRule is the rule that decided in permission mode auto.
	AutoModeRule *AutoModeRule `json:"auto_mode_rule,omitempty"`
}

// AutoModeRule is a rule of permission mode auto.
type AutoModeRule struct {
	List string `json:"list"` // allow, soft_deny
	Name string `json:"name"` // of the rule in its list
}

// Origin says where a turn or a user line comes from. Only Kind is always set.
type Origin struct {
	// Kind is human, channel, peer, task-notification, coordinator,
	// observer, auto-continuation, … Qoder's: bridge, with SessionID.
	Kind            string `json:"kind"`
	Subkind         string `json:"subkind,omitempty"`         // scheduled-trigger, peer-send-message, projects-relay, …; "": none
	Producer        string `json:"producer,omitempty"`        // session-task: work that this session started
	RunID           string `json:"runId,omitempty"`           // of the task, with kind task-notification
	FireReason      string `json:"fireReason,omitempty"`      // scheduled, manual, retry, catch_up or api, with subkind scheduled-trigger
	Server          string `json:"server,omitempty"`          // of a channel: the MCP server that brought the message
	From            string `json:"from,omitempty"`            // of a peer: its address
	FromMode        string `json:"fromMode,omitempty"`        // bypass or prompting, as the peer's host says: untrusted
	FromSession     string `json:"fromSession,omitempty"`     // of a peer: its session, as its host says: untrusted
	Name            string `json:"name,omitempty"`            // of a peer: its name for people, at most 64 code points
	SenderTaskID    string `json:"senderTaskId,omitempty"`    // the subagent of this session that sent the message
	Body            string `json:"body,omitempty"`            // the peer's message without its envelope
	VerifiedPeerPID int    `json:"verifiedPeerPid,omitempty"` // the process that connected, as the kernel says; 0: not known
	SessionID       string `json:"sessionId,omitempty"`       // of a bridge; Qoder
}

// UserLineForm says which keys a user line of the host has even if empty.
type UserLineForm uint8

const (
	// SessionIDAlways writes "session_id" even if it is "", as Claude's SDK
	// does (observed on 0.3.329).
	SessionIDAlways UserLineForm = iota
	// SessionIDIfSet leaves an empty "session_id" out, as Qoder's SDK does
	// (observed on 1.0.39).
	SessionIDIfSet
)

// AppendUserLine appends m as a line of the host, ending in a newline, in the key order of
// Claude's SDK: type, session_id, message, parent_tool_use_id, uuid, then the rest. An
// empty role is "user". On error it returns dst as it was.
func AppendUserLine(dst []byte, m *UserMessage, form UserLineForm) ([]byte, error) {
	body := m.Message
	body.Role = cmp.Or(body.Role, "user")
	message, err := Marshal(body)
	if err != nil {
		return dst, fmt.Errorf("protocol: encode user line: message: %w", err)
	}
	rest := *m
	rest.Common = Common{}
	rest.Message = UserContent{}
	tail, err := Marshal(rest)
	if err != nil {
		return dst, fmt.Errorf("protocol: encode user line: %w", err)
	}

	out := append(dst, `{"type":"user"`...)
	if m.SessionID != "" || form == SessionIDAlways {
		out = append(out, `,"session_id":`...)
		out = appendString(out, m.SessionID)
	}
	out = append(out, `,"message":`...)
	out = append(out, message...)
	out = append(out, `,"parent_tool_use_id":`...)
	if m.ParentToolUseID == "" {
		out = append(out, "null"...)
	} else {
		out = appendString(out, m.ParentToolUseID)
	}
	if m.UUID != "" {
		out = append(out, `,"uuid":`...)
		out = appendString(out, m.UUID)
	}
	c := jsonscan.Object(tail, 0)
	for key, val := range c.Members() {
		if string(key.Of(tail)) == `"message"` {
			continue
		}
		out = append(out, ',')
		out = append(out, key.Of(tail)...)
		out = append(out, ':')
		out = append(out, val.Of(tail)...)
	}
	return append(out, "}\n"...), nil
}

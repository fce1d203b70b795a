package protocol

import (
	"encoding/json"
	"fmt"

	"github.com/agent-troupe/troupe/base/wire"
)

// Message is one content line of the stream: whatever is not a control frame.
// The concrete types are the pointers to this package's …Message structs; a
// type switch with a default stays correct as agents grow.
type Message interface {
	// Raw is the original line; nil if the message was
	// made by the program. It must not be changed.
	Raw() json.RawMessage
	// Meta is what most lines have in common.
	Meta() Common

	isMessage()
	setRaw(json.RawMessage)
	// wire is the "type" and "subtype" of the line.
	wire() (typ, subtype string)
}

// Common is embedded in every message.
type Common struct {
	// UUID identifies the line. The host chooses the uuid of a user message; results,
	// echoes and receipts refer to it.
	UUID string `json:"uuid,omitempty"`
	// SessionID is the agent's session, which is also its transcript's name.
	SessionID string `json:"session_id,omitempty"`
	// ParentToolUseID is the tool call that started the subagent the line
	// belongs to; "" for the main agent.
	ParentToolUseID string `json:"parent_tool_use_id,omitempty"`

	raw json.RawMessage
}

// Raw implements [Message].
func (c *Common) Raw() json.RawMessage { return c.raw }

// Meta implements [Message].
func (c *Common) Meta() Common { return *c }

func (c *Common) isMessage() {}

func (c *Common) setRaw(raw json.RawMessage) { c.raw = raw }

func (c *Common) setFrame(f *Frame) {
	c.UUID, c.SessionID, c.ParentToolUseID = f.UUID(), f.SessionID(), f.ParentToolUseID()
	c.raw = f.Raw
}

// UnknownMessage is a line of a type or subtype that this package does not
// know, or of one it knows whose fields do not decode.
type UnknownMessage struct {
	Common
	// Type and Subtype are the line's own; "" if absent.
	Type    string `json:"-"`
	Subtype string `json:"-"` // "" for a type without subtypes
	// Err says why a known type did not decode; nil for an unknown type.
	Err error `json:"-"`
	// Partial is the known type as far as it decoded, with Err; nil for an
	// unknown type. So the end of a turn is not lost over one odd field.
	Partial Message `json:"-"`
}

func (m *UnknownMessage) wire() (string, string) { return m.Type, m.Subtype }

// DecodeMessage turns a frame into a typed message. It never fails: a frame that it does
// not know or cannot decode becomes an *[UnknownMessage]. So does a control frame, which
// is not a message.
//
// The message of a malicious line can need some tens of times the memory of the line. A
// program that limits memory must take that into account for lines above 1 MiB.
func DecodeMessage(f Frame) Message {
	if f.oversize != nil {
		return f.oversize.message(&f)
	}
	if f.Type == "stream_event" {
		if m := decodeDeltaLine(&f); m != nil {
			return m
		}
	}
	m := newMessage(f.Type, f.Subtype)
	if m == nil {
		u := &UnknownMessage{Type: f.Type, Subtype: f.Subtype}
		u.setFrame(&f)
		return u
	}
	err := Unmarshal(f.Raw, m)
	m.setRaw(f.Raw)
	if err != nil {
		if r, ok := m.(*ResultMessage); ok {
			r.salvage(f.Raw)
		}
		u := &UnknownMessage{Type: f.Type, Subtype: f.Subtype, Partial: m}
		u.Err = fmt.Errorf("protocol: decode %s line: %w", wireName(f.Type, f.Subtype), err)
		u.setFrame(&f)
		return u
	}
	return m
}

func newMessage(typ, subtype string) Message {
	if typ == "result" {
		return &ResultMessage{Subtype: subtype}
	}
	if typ != "system" {
		subtype = ""
	}
	return messages.New(wireNames{typ, subtype})
}

type wireNames struct{ typ, subtype string }

func namesOf(m Message) wireNames {
	typ, subtype := m.wire()
	return wireNames{typ, subtype}
}

var messages = wire.TypesBy[Message](namesOf, //nolint:gochecknoglobals // only read
	new(PartialAssistantMessage), new(AssistantMessage), new(UserMessage), new(ToolProgressMessage),
	new(ToolUseSummaryMessage), new(AuthStatusMessage), new(RateLimitMessage), new(ConversationResetMessage),
	new(PromptSuggestionMessage), new(CommandLifecycleMessage), new(ActiveGoalMessage),
	new(CloudAgentEventMessage), new(TranscriptMirrorMessage), new(StreamlinedTextMessage),
	new(StreamlinedToolUseSummaryMessage), &PostTurnSummaryMessage{topLevel: true}, new(KeepAliveMessage),
	&KeepAliveMessage{alias: true},
	new(InitMessage), new(StatusMessage), new(SessionStateChangedMessage), new(BackgroundTasksChangedMessage),
	new(TaskStartedMessage), new(TaskProgressMessage), new(TaskUpdatedMessage), new(TaskNotificationMessage),
	new(HookStartedMessage), new(HookProgressMessage), new(HookResponseMessage), new(ThinkingTokensMessage),
	new(APIRetryMessage), new(CompactBoundaryMessage), new(PermissionDeniedMessage), new(InformationalMessage),
	new(NotificationMessage), new(FilesPersistedMessage), new(VCSStateChangedMessage),
	new(ElicitationCompleteMessage), new(LocalCommandOutputMessage), new(ControlRequestProgressMessage),
	new(CommandsChangedMessage), new(MemoryRecallMessage), new(MirrorErrorMessage),
	new(ModelRefusalFallbackMessage), new(ModelRefusalNoFallbackMessage), new(ModelFallbackMessage),
	new(PluginInstallMessage), new(SessionWritesLostMessage), new(WorkerShuttingDownMessage),
	new(UIInvalidateMessage),
	// Messages that only Qoder sends.
	new(PlanModeChangedMessage), new(GoalUpdatedMessage), new(GoalClearedMessage),
	new(AvailableModelsUpdateMessage), new(MCPStatusChangeMessage), new(SessionTitleChangedMessage),
	new(BridgeStateMessage), new(PostTurnSummaryMessage), new(ModelQueueStatusMessage),
	new(MemoryGenerationMessage), new(MemoryConsumptionMessage), new(SkillEvolutionMessage),
	new(ArtifactsUpdateMessage),
)

func wireName(typ, subtype string) string {
	if subtype == "" {
		return typ
	}
	return typ + "/" + subtype
}

// MarshalMessage encodes m as a line of the agent, ending in a newline: "type"
// and "subtype", then the typed fields. It is for programs that implement an agent. It
// ignores Raw, except for an *[UnknownMessage].
func MarshalMessage(m Message) ([]byte, error) {
	typ, subtype := m.wire()
	if u, ok := m.(*UnknownMessage); ok && u.raw != nil {
		line, err := appendCompact(nil, u.raw)
		if err != nil {
			return nil, fmt.Errorf("protocol: encode %s line: %w", wireName(typ, subtype), err)
		}
		return append(line, '\n'), nil
	}
	body, err := Marshal(m)
	if err == nil {
		body, err = prefixed(body, "type", typ, "subtype", subtype)
	}
	if err != nil {
		return nil, fmt.Errorf("protocol: encode %s line: %w", wireName(typ, subtype), err)
	}
	return append(body, '\n'), nil
}

// TextOf returns the text of a message: the text blocks of an assistant or
// user line, the text that a stream event adds, the text of a result; "" for
// any other message.
func TextOf(m Message) string {
	switch m := m.(type) {
	case *AssistantMessage:
		return m.Message.Content.Text()
	case *UserMessage:
		return m.Message.Content.Text()
	case *PartialAssistantMessage:
		return m.Text()
	case *ResultMessage:
		return m.Text()
	case *StreamlinedTextMessage:
		return m.Text
	}
	return ""
}

// ToolUses returns the tool calls of an assistant message, or nil.
func ToolUses(m Message) []*ToolUseBlock {
	if a, ok := m.(*AssistantMessage); ok {
		return blocksOf[*ToolUseBlock](a.Message.Content)
	}
	return nil
}

// ToolResults returns the tool results of a user message, or nil.
func ToolResults(m Message) []*ToolResultBlock {
	if u, ok := m.(*UserMessage); ok {
		return blocksOf[*ToolResultBlock](u.Message.Content)
	}
	return nil
}

func blocksOf[B ContentBlock](c Content) []B {
	var out []B
	for _, block := range c {
		if b, ok := block.(B); ok {
			out = append(out, b)
		}
	}
	return out
}

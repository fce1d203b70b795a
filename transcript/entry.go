package transcript

import (
	"encoding/json"
	"fmt"

	"github.com/agent-troupe/troupe/protocol"
)

// The types of lines that were observed, or that the vendors' readers know.
const (
	TypeUser                = "user"
	TypeAssistant           = "assistant"
	TypeAttachment          = "attachment"
	TypeSystem              = "system"
	TypeQueueOperation      = "queue-operation"
	TypeLastPrompt          = "last-prompt"
	TypeActiveLeaf          = "active-leaf" // Qoder
	TypeCustomTitle         = "custom-title"
	TypeAITitle             = "ai-title"
	TypeAgentName           = "agent-name"
	TypeTag                 = "tag"
	TypeSummary             = "summary"
	TypeMode                = "mode"
	TypeRelocated           = "relocated"
	TypeContinuedIn         = "continued-in"
	TypeCostState           = "cost-state"
	TypeToolsUsed           = "tools-used"
	TypeATISLatch           = "atis-latch"
	TypeFileHistorySnapshot = "file-history-snapshot"
	TypeFileHistoryDelta    = "file-history-delta"
	TypeContentReplacement  = "content-replacement"
	TypeAPIRequest          = "api-request"
	TypeAPIRequestShape     = "api-request-shape"
	TypeAPIRequestBlob      = "api-request-blob"
	TypeAgentMetadata       = "agent_metadata" // only in session stores
)

// Entry is the content of a line. The concrete types are the pointers to the structs of
// this package whose names end in Entry. Each has the line's bytes in Raw, also the
// members that the struct lacks.
type Entry interface {
	// Bytes returns the line without its end.
	Bytes() json.RawMessage
	isEntry()
}

// Raw is the bytes of an entry.
type Raw struct {
	Raw json.RawMessage `json:"-"` // the line without its end
}

// Bytes returns the line without its end.
func (r *Raw) Bytes() json.RawMessage { return r.Raw }
func (*Raw) isEntry()                 {}

// Common is what the entries in the chain of messages have in common.
type Common struct {
	Raw
	UUID        string  `json:"uuid"`
	ParentUUID  *string `json:"parentUuid"` // nil: the first of a chain
	Sidechain   bool    `json:"isSidechain"`
	SessionID   string  `json:"sessionId"`
	AgentID     string  `json:"agentId,omitempty"` // "": the main conversation
	Timestamp   string  `json:"timestamp"`         // RFC 3339
	Cwd         string  `json:"cwd"`
	GitBranch   string  `json:"gitBranch"` // HEAD outside a repository
	Version     string  `json:"version"`   // of the agent
	Entrypoint  string  `json:"entrypoint"`
	UserType    string  `json:"userType"`
	Slug        string  `json:"slug,omitempty"`
	TeamName    string  `json:"teamName,omitempty"`
	SessionKind string  `json:"sessionKind,omitempty"`
	// ForkedFrom is set on the lines that a fork copied; nil: the line is original.
	ForkedFrom *ForkedFrom `json:"forkedFrom,omitempty"`
}

// ForkedFrom names the line that a fork copied.
type ForkedFrom struct {
	SessionID   string `json:"sessionId"`
	MessageUUID string `json:"messageUuid"`
}

// UserEntry is a prompt, tool results, or text that the agent added.
type UserEntry struct {
	Common
	Message struct {
		Role    string           `json:"role"`
		Content protocol.Content `json:"content"`
	} `json:"message"`
	PromptID        string          `json:"promptId,omitempty"`
	PermissionMode  string          `json:"permissionMode,omitempty"`
	Origin          json.RawMessage `json:"origin,omitempty"` // of a task's notification and similar; nil: the user
	ToolUseResult   json.RawMessage `json:"toolUseResult,omitempty"`
	SourceAssistant string          `json:"sourceToolAssistantUUID,omitempty"` // the line with the call that Message answers
	ToolDenialKind  string          `json:"toolDenialKind,omitempty"`
	Meta            bool            `json:"isMeta,omitempty"`           // the agent added the text
	CompactSummary  bool            `json:"isCompactSummary,omitempty"` // the summary after a compaction
}

// AssistantEntry is one finished block of the model's answer. Lines of one answer share
// Message.ID.
type AssistantEntry struct {
	Common
	Message struct {
		ID         string           `json:"id"`
		Model      string           `json:"model"`
		Role       string           `json:"role"`
		Content    protocol.Content `json:"content"`
		StopReason string           `json:"stop_reason"`
		Usage      json.RawMessage  `json:"usage"`
	} `json:"message"`
	RequestID string `json:"requestId,omitempty"`
	APIError  bool   `json:"isApiErrorMessage,omitempty"`
}

// AttachmentEntry is context that the agent added: its environment, the list of skills, a
// command that waited. It is in the chain of messages.
type AttachmentEntry struct {
	Common
	Kind       string          `json:"-"` // the type of the attachment: environment, queued_command, …
	Attachment json.RawMessage `json:"attachment"`
}

// SystemEntry is a note of the agent's program: a compaction, the output of a local
// command.
type SystemEntry struct {
	Common
	Subtype           string           `json:"subtype"`
	Content           string           `json:"content"`
	Level             string           `json:"level"`
	LogicalParentUUID string           `json:"logicalParentUuid,omitempty"` // of a compact_boundary: the last line before it
	Compact           *CompactMetadata `json:"compactMetadata,omitempty"`   // of a compact_boundary
	CommandRun        *CommandRun      `json:"commandRun,omitempty"`        // of a local_command
}

// CommandRun is a slash command that the agent's program ran without the model.
type CommandRun struct {
	Command string `json:"command"` // without the slash
	Args    string `json:"args"`
}

// CompactMetadata describes a compaction. The preserved messages are older lines that
// follow the summary in the conversation; they are not written again.
type CompactMetadata struct {
	Trigger   string `json:"trigger"` // manual or auto
	PreTokens int64  `json:"preTokens"`
	// PostTokens is 0 if the agent did not say.
	PostTokens       int64             `json:"postTokens"`
	DurationMS       float64           `json:"durationMs"`
	PreservedSegment *PreservedSegment `json:"preservedSegment,omitempty"`
	Preserved        *Preserved        `json:"preservedMessages,omitempty"`
}

// PreservedSegment is the older form of [Preserved].
type PreservedSegment struct {
	HeadUUID   string `json:"headUuid"`
	AnchorUUID string `json:"anchorUuid"`
	TailUUID   string `json:"tailUuid"`
}

// Preserved names the messages that survived a compaction, and the line that they follow.
type Preserved struct {
	AnchorUUID string   `json:"anchorUuid"`
	UUIDs      []string `json:"uuids"`
}

// QueueEntry is a change of the queue of messages to the agent.
type QueueEntry struct {
	Raw
	Operation string `json:"operation"` // enqueue, dequeue, …
	SessionID string `json:"sessionId"`
	Timestamp string `json:"timestamp"`
	Content   string `json:"content,omitempty"`
}

// LastPromptEntry points at the end of the conversation that Claude Code resumes.
type LastPromptEntry struct {
	Raw
	LastPrompt string `json:"lastPrompt"`
	LeafUUID   string `json:"leafUuid"`
	SessionID  string `json:"sessionId"`
}

// ActiveLeafEntry points at the end of the conversation that qodercli resumes.
type ActiveLeafEntry struct {
	Raw
	SessionID string  `json:"-"`
	LeafUUID  *string `json:"-"` // nil: the conversation is empty
}

// TitleEntry is a title: of the user (custom-title), of the model (ai-title), or the
// agent's name (agent-name).
type TitleEntry struct {
	Raw
	Type      string `json:"type"`
	Title     string `json:"-"` // "": removes the title
	SessionID string `json:"sessionId"`
}

// TagEntry sets the session's tag.
type TagEntry struct {
	Raw
	Tag       string `json:"tag"` // "": removes the tag
	SessionID string `json:"sessionId"`
}

// SummaryEntry is a summary of the conversation up to a leaf.
type SummaryEntry struct {
	Raw
	Summary  string `json:"summary"`
	LeafUUID string `json:"leafUuid"`
}

// RelocatedEntry says that the session now belongs to another directory.
type RelocatedEntry struct {
	Raw
	Cwd       string `json:"relocatedCwd"`
	SessionID string `json:"sessionId"`
}

// SnapshotEntry is a checkpoint of files, made at a user message. [Transcript.Checkpoints]
// reads all of them.
type SnapshotEntry struct {
	Raw
	MessageID string   `json:"messageId"` // the UUID of the user line
	Snapshot  Snapshot `json:"snapshot"`
	IsUpdate  bool     `json:"isSnapshotUpdate"`
}

// Snapshot says which backup has the content of each tracked file.
type Snapshot struct {
	MessageID string            `json:"messageId"`
	Backups   map[string]Backup `json:"trackedFileBackups"` // by path, relative to the session's directory where possible
	Timestamp string            `json:"timestamp"`
}

// SnapshotDeltaEntry adds a file to a checkpoint, at the first change of the file.
type SnapshotDeltaEntry struct {
	Raw
	MessageID         string `json:"messageId"`         // the assistant line that changed the file
	SnapshotMessageID string `json:"snapshotMessageId"` // the checkpoint
	Path              string `json:"trackingPath"`
	Backup            Backup `json:"backup"`
	Timestamp         string `json:"timestamp"`
}

// Backup is a copy of a file.
type Backup struct {
	FileName   *string `json:"backupFileName"` // in file-history/<session>/; nil: the file did not exist
	Version    int     `json:"version"`
	BackupTime string  `json:"backupTime"`
	ParentDir  string  `json:"realParentDir"`
}

// OtherEntry is a line of a type that has no struct here: mode, cost-state, tools-used,
// atis-latch, api-request, … and types that this release does not know.
type OtherEntry struct {
	Raw
	Type string `json:"type"`
}

// DamagedEntry is a line that is not a JSON object.
type DamagedEntry struct {
	Raw
	Damage Damage
}

// Entry decodes the line. The entry has its own copy of the bytes. A line whose members
// have other JSON types than the struct becomes an [OtherEntry], and the error says why.
func (l *Line) Entry() (Entry, error) {
	raw := Raw{Raw: append(json.RawMessage(nil), l.Raw...)}
	if l.Damage != "" {
		return &DamagedEntry{raw, l.Damage}, nil
	}
	c := parseLine(raw.Raw)
	c.Number = l.Number
	e, err := c.decode(raw)
	if err != nil {
		return &OtherEntry{raw, c.Type()}, fmt.Errorf("transcript: line %d is a %s that cannot be decoded: %w", c.Number, c.Type(), err)
	}
	return e, nil
}

func (l *Line) decode(raw Raw) (Entry, error) {
	switch typ := l.Type(); typ {
	case TypeUser:
		e := &UserEntry{Common: Common{Raw: raw}}
		return e, json.Unmarshal(raw.Raw, e)
	case TypeAssistant:
		e := &AssistantEntry{Common: Common{Raw: raw}}
		return e, json.Unmarshal(raw.Raw, e)
	case TypeAttachment:
		e := &AttachmentEntry{Common: Common{Raw: raw}, Kind: attachmentKind(l.head.attachment)}
		return e, json.Unmarshal(raw.Raw, e)
	case TypeSystem:
		e := &SystemEntry{Common: Common{Raw: raw}}
		return e, json.Unmarshal(raw.Raw, e)
	case TypeQueueOperation:
		e := &QueueEntry{Raw: raw}
		return e, json.Unmarshal(raw.Raw, e)
	case TypeLastPrompt:
		e := &LastPromptEntry{Raw: raw}
		return e, json.Unmarshal(raw.Raw, e)
	case TypeActiveLeaf:
		e := &ActiveLeafEntry{Raw: raw, SessionID: l.SessionID()}
		if id, ok := unquote(l.leaf()); ok {
			e.LeafUUID = &id
		}
		return e, nil
	case TypeCustomTitle, TypeAITitle, TypeAgentName:
		e := &TitleEntry{Raw: raw, Title: text(get(raw.Raw, titleMember(typ)))}
		return e, json.Unmarshal(raw.Raw, e)
	case TypeTag:
		e := &TagEntry{Raw: raw}
		return e, json.Unmarshal(raw.Raw, e)
	case TypeSummary:
		e := &SummaryEntry{Raw: raw}
		return e, json.Unmarshal(raw.Raw, e)
	case TypeRelocated:
		e := &RelocatedEntry{Raw: raw}
		return e, json.Unmarshal(raw.Raw, e)
	case TypeFileHistorySnapshot:
		e := &SnapshotEntry{Raw: raw}
		return e, json.Unmarshal(raw.Raw, e)
	case TypeFileHistoryDelta:
		e := &SnapshotDeltaEntry{Raw: raw}
		return e, json.Unmarshal(raw.Raw, e)
	default:
		return &OtherEntry{raw, typ}, nil
	}
}

// leaf returns the member that names a leaf, under either name.
func (l *Line) leaf() []byte {
	if l.head.leaf != nil {
		return l.head.leaf
	}
	return l.head.leafOld
}

// titleMember is the member of a title line that has the title.
func titleMember(typ string) string {
	switch typ {
	case TypeAITitle:
		return "aiTitle"
	case TypeAgentName:
		return "agentName"
	}
	return "customTitle"
}

// attachmentKind returns the type of an attachment.
func attachmentKind(attachment []byte) string {
	if !isObject(attachment) {
		return ""
	}
	return text(get(attachment, "type"))
}

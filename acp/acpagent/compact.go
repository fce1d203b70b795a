package acpagent

import (
	"cmp"
	"encoding/json"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/protocol"
)

// compactTool is the call that shows a compaction to an editor that does not take
// compaction_update.
func compactTool() *tool { return &tool{name: "compact"} }

// status takes a change of the mode, and the beginning and the end of a compaction.
func (s *session) status(m *protocol.StatusMessage) {
	if m.PermissionMode != "" && s.reported(m.PermissionMode) {
		s.modeIs(m.PermissionMode)
	}
	switch {
	case m.CompactResult == "success":
		s.compacting(acp.CompactionStatusCompleted, "")
	case m.CompactResult != "":
		s.compacting(acp.CompactionStatusFailed, m.CompactError)
	case m.Status == "compacting" && s.shown.compact == "":
		s.shown.compact = newID()
		if s.takesCompactions() {
			s.compacting(acp.CompactionStatusInProgress, "")
			return
		}
		s.send(acp.SessionUpdate{ToolCall: &acp.ToolCall{
			ToolCallID: acp.ToolCallID(s.shown.compact), Title: "Compact conversation", Kind: acp.ToolKindThink, Status: acp.ToolCallStatusInProgress, Meta: compactTool().meta(),
		}})
	}
}

// takesCompactions: the editor has updates for compactions.
func (s *session) takesCompactions() bool {
	client := s.server.capabilities().Session
	return client != nil && client.Compaction != nil
}

// compacting shows how far the compaction that runs is. It does nothing if none runs.
func (s *session) compacting(status acp.CompactionStatus, problem string) {
	id := s.shown.compact
	if id == "" {
		return
	}
	if status != acp.CompactionStatusInProgress {
		s.shown.compact = ""
	}
	if s.takesCompactions() {
		s.send(acp.SessionUpdate{CompactionUpdate: &acp.CompactionUpdate{CompactionID: acp.CompactionID(id), Status: status, Error: problem}})
		return
	}
	u := &acp.ToolCallUpdate{ToolCallID: acp.ToolCallID(id), Status: acp.ToolCallStatusCompleted, Meta: compactTool().meta()}
	if status == acp.CompactionStatusFailed {
		u.Status, u.Content = acp.ToolCallStatusFailed, []acp.ToolCallContent{inText(cmp.Or(problem, "The conversation was not compacted."))}
	}
	s.send(acp.SessionUpdate{ToolCallUpdate: u})
	if status == acp.CompactionStatusCompleted {
		s.shown.compacted = id
	}
}

// compacted takes what a compaction has done, which the agent says after its end.
func (s *session) compacted(m *protocol.CompactBoundaryMessage) {
	s.shown.used, s.shown.output = m.Metadata.PostTokens, 0
	if s.shown.compacted == "" {
		return
	}
	facts := map[string]any{"trigger": m.Metadata.Trigger, "preTokens": m.Metadata.PreTokens, "postTokens": m.Metadata.PostTokens, "durationMs": m.Metadata.DurationMS}
	raw, _ := json.Marshal(facts) // a text and numbers
	s.send(acp.SessionUpdate{ToolCallUpdate: &acp.ToolCallUpdate{ToolCallID: acp.ToolCallID(s.shown.compacted), RawOutput: raw, Meta: compactTool().meta()}})
	s.shown.compacted = ""
}

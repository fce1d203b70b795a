package view

import "github.com/agent-troupe/troupe/protocol"

// Status is the status of a session, as far as its agent reports it. Do not change the
// fields.
type Status struct {
	SessionID      string                  // the agent's session; "" before its first message
	Model          string                  // full id; "" before the first turn
	PermissionMode protocol.PermissionMode // the mode now; "" before the agent says
	// State is idle, running or requires_action; "" if the agent does not say.
	State protocol.SessionState
	// Activity is requesting or compacting, or "".
	Activity string
	PlanMode bool   // Qoder's; on Claude plan is a PermissionMode
	Title    string // "": none yet, or not said

	// Retry is the retry of a call of the model that is under way, nil if none.
	Retry *protocol.APIRetryMessage
	// Auth is the login that is under way or has failed, nil if none.
	Auth *protocol.AuthStatusMessage
	// Limits is the last report of the subscription's limits, or nil.
	Limits *protocol.RateLimitInfo

	// Compactions counts; Compaction is the last one, CompactError why the last
	// try failed.
	Compactions  int
	Compaction   *protocol.CompactMetadata // nil before the first compaction
	CompactError string                    // "": it did not fail

	// Files is the last file checkpoint, or nil.
	Files *protocol.FilesPersistedMessage
	// Goal is Qoder's goal, or nil.
	Goal *protocol.Goal
	// Suggestion is a guess at the next prompt; "" while a turn runs.
	Suggestion string
	// Hooks are the command hooks that run, by id, in the order of their start.
	Hooks []*protocol.HookStartedMessage
}

// Add takes a message and reports whether it was about one of the fields.
func (s *Status) Add(m protocol.Message) bool {
	switch m := known(m).(type) {
	case *protocol.InitMessage:
		set(&s.SessionID, m.SessionID)
		set(&s.Model, m.Model)
		set((*string)(&s.PermissionMode), string(m.PermissionMode))
		s.Suggestion = ""
	case *protocol.StatusMessage:
		s.status(m)
	case *protocol.SessionStateChangedMessage:
		s.State = m.State
	case *protocol.PlanModeChangedMessage:
		s.PlanMode = m.PlanMode.Active
	case *protocol.SessionTitleChangedMessage:
		s.Title = m.Title
	case *protocol.APIRetryMessage:
		s.Retry = m
	case *protocol.AssistantMessage, *protocol.PartialAssistantMessage:
		if s.Retry == nil {
			return false
		}
		s.Retry = nil
	case *protocol.ResultMessage:
		s.Retry, s.Activity = nil, ""
		s.Hooks = nil // those that were interrupted tell nothing more
	case *protocol.AuthStatusMessage:
		s.Auth = m
		if !m.IsAuthenticating && m.Error == "" {
			s.Auth = nil
		}
	case *protocol.RateLimitMessage:
		s.Limits = &m.Info
	case *protocol.CompactBoundaryMessage:
		if m.Historical {
			return false
		}
		s.Compactions++
		s.Compaction, s.CompactError = &m.Metadata, ""
	case *protocol.ConversationResetMessage:
		s.Compaction, s.CompactError = nil, ""
	case *protocol.FilesPersistedMessage:
		s.Files = m
	case *protocol.GoalUpdatedMessage:
		s.Goal = &m.Goal
	case *protocol.GoalClearedMessage:
		s.Goal = nil
	case *protocol.PromptSuggestionMessage:
		s.Suggestion = m.Suggestion
	case *protocol.AvailableModelsUpdateMessage:
		set(&s.Model, m.CurrentModel)
	case *protocol.HookStartedMessage:
		s.Hooks = append(s.Hooks, m)
	case *protocol.HookResponseMessage:
		s.hookEnded(m.HookID)
	default:
		return false
	}
	return true
}

func (s *Status) status(m *protocol.StatusMessage) {
	s.Activity = m.Status
	set((*string)(&s.PermissionMode), string(m.PermissionMode))
	if m.CompactResult != "" {
		s.CompactError = m.CompactError
	}
}

func (s *Status) hookEnded(id string) {
	for i, h := range s.Hooks {
		if h.HookID == id {
			s.Hooks = append(s.Hooks[:i:i], s.Hooks[i+1:]...)
			return
		}
	}
}

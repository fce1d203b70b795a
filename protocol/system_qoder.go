package protocol

// PlanModeChangedMessage is Qoder's system/plan_mode_changed.
type PlanModeChangedMessage struct {
	Common
	PlanMode PlanMode `json:"plan_mode"` // the state from now on
}

func (*PlanModeChangedMessage) wire() (string, string) { return "system", "plan_mode_changed" }

// PlanMode is the state of plan mode.
type PlanMode struct {
	Active bool `json:"active"` // the agent plans and does not change files
}

// Goal is Qoder's goal: an objective that the agent pursues over many turns.
type Goal struct {
	ID        string `json:"id"`                  // made by the agent
	Objective string `json:"objective"`           // in the words of [SetGoalRequest]
	Status    string `json:"status"`              // active, paused, …
	TurnsUsed int    `json:"turns_used"`          // turns spent on the goal
	MaxTurns  int    `json:"max_turns,omitempty"` // the limit of TurnsUsed; 0: none
	// CreatedAt and UpdatedAt are milliseconds since the Unix epoch.
	CreatedAt       float64  `json:"created_at"`
	UpdatedAt       float64  `json:"updated_at"`               // of the last change
	TimeUsedSeconds float64  `json:"time_used_seconds"`        // seconds spent on the goal
	CreditsUsed     float64  `json:"credits_used"`             // Qoder credits
	CreditsBudget   *float64 `json:"credits_budget,omitempty"` // nil: none
}

// GoalUpdatedMessage is Qoder's system/goal_updated.
type GoalUpdatedMessage struct {
	Common
	Goal   Goal   `json:"goal"`             // the whole goal
	Reason string `json:"reason,omitempty"` // safety-limit, blocked, …
}

func (*GoalUpdatedMessage) wire() (string, string) { return "system", "goal_updated" }

// GoalClearedMessage is Qoder's system/goal_cleared.
type GoalClearedMessage struct {
	Common
	GoalID string `json:"goal_id"` // the Goal.ID that is gone
	Reason string `json:"reason"`  // why; the set of values is not documented
}

func (*GoalClearedMessage) wire() (string, string) { return "system", "goal_cleared" }

// AvailableModelsUpdateMessage is Qoder's system/available_models_update.
type AvailableModelsUpdateMessage struct {
	Common
	Models       []ModelInfo `json:"models"`                 // they replace those known before
	CurrentModel string      `json:"currentModel,omitempty"` // one of Models by value; "": not sent
}

func (*AvailableModelsUpdateMessage) wire() (string, string) {
	return "system", "available_models_update"
}

// MCPStatusChangeMessage is Qoder's system/mcp_status_change.
type MCPStatusChangeMessage struct {
	Common
	Servers []MCPServerStatus `json:"servers"` // all servers now
}

func (*MCPStatusChangeMessage) wire() (string, string) { return "system", "mcp_status_change" }

// SessionTitleChangedMessage is Qoder's system/session_title_changed.
type SessionTitleChangedMessage struct {
	Common
	Title    string `json:"title"`    // from now on
	Source   string `json:"source"`   // ai, custom
	Revision int64  `json:"revision"` // grows with each change
}

func (*SessionTitleChangedMessage) wire() (string, string) {
	return "system", "session_title_changed"
}

// BridgeStateMessage is Qoder's system/bridge_state.
type BridgeStateMessage struct {
	Common
	State  string `json:"state"`            // connected, …; the set is not documented
	Detail string `json:"detail,omitempty"` // for people; "": none
}

func (*BridgeStateMessage) wire() (string, string) { return "system", "bridge_state" }

// PostTurnSummaryMessage is post_turn_summary, top-level or under system. The
// vendors' SDKs keep it from their users.
type PostTurnSummaryMessage struct {
	Common
	SummarizesUUID string `json:"summarizes_uuid,omitempty"` // uuid of the line that the summary is about
	StatusCategory string `json:"status_category,omitempty"` // the set of values is not documented
	StatusDetail   string `json:"status_detail,omitempty"`   // for people
	NeedsAction    string `json:"needs_action,omitempty"`    // what the person has to do; "": nothing

	topLevel bool
}

func (m *PostTurnSummaryMessage) wire() (string, string) {
	if m.topLevel {
		return "post_turn_summary", ""
	}
	return "system", "post_turn_summary"
}

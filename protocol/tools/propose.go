package tools

// SendFeedbackInput drafts feedback to the vendor.
type SendFeedbackInput struct {
	Type         string `json:"type"` // idea, missing_capability, …
	Title        string `json:"title"`
	Details      string `json:"details"`
	Area         string `json:"area,omitempty"`
	FailureMode  string `json:"failure_mode,omitempty"`
	TaskCategory string `json:"task_category,omitempty"`
	Extra        `json:"-"`
}

// Tool implements [Input].
func (*SendFeedbackInput) Tool() string { return SendFeedback }

// SendFeedbackOutput says whether there is a draft now.
type SendFeedbackOutput struct {
	Success bool   `json:"success"`
	Message string `json:"message"`
}

func (*SendFeedbackOutput) isOutput() {}

// PushNotificationInput tells the user something while they are away.
type PushNotificationInput struct {
	Message string `json:"message"`
	Status  string `json:"status,omitempty"` // proactive
	Extra   `json:"-"`
}

// Tool implements [Input].
func (*PushNotificationInput) Tool() string { return PushNotification }

// PushNotificationOutput says where it went.
type PushNotificationOutput struct {
	Message        string `json:"message"`
	PushSent       bool   `json:"pushSent,omitempty"`
	LocalSent      bool   `json:"localSent,omitempty"`
	DisabledReason string `json:"disabledReason,omitempty"` // config_off, user_present, no_transport
	SentAt         string `json:"sentAt,omitempty"`         // RFC 3339
}

func (*PushNotificationOutput) isOutput() {}

// ProposeGoalInput proposes a condition to work towards.
type ProposeGoalInput struct {
	Condition string `json:"condition"`
	AskUser   *bool  `json:"ask_user,omitempty"`
	Extra     `json:"-"`
}

// Tool implements [Input].
func (*ProposeGoalInput) Tool() string { return ProposeGoal }

// ProposeGoalOutput is what was proposed.
type ProposeGoalOutput struct {
	Condition string `json:"condition"`
	AskUser   bool   `json:"askUser"`
}

func (*ProposeGoalOutput) isOutput() {}

// ProposeSkillsInput proposes one to three skills to keep.
type ProposeSkillsInput struct {
	Proposals []SkillProposal `json:"proposals"`
	Extra     `json:"-"`
}

// Tool implements [Input].
func (*ProposeSkillsInput) Tool() string { return ProposeSkills }

// SkillProposal is a skill, or a change of one.
type SkillProposal struct {
	Name        string      `json:"name"`
	Kind        string      `json:"kind"`             // new, improvement
	Target      string      `json:"target,omitempty"` // of an improvement
	Description string      `json:"description"`
	Evidence    []string    `json:"evidence,omitempty"`
	Edits       []SkillEdit `json:"edits,omitempty"`
	SkillMD     string      `json:"skillMd,omitempty"`
}

// SkillEdit replaces a string in a skill.
type SkillEdit struct {
	OldString string `json:"old_string"`
	NewString string `json:"new_string"`
}

// ProposeSkillsOutput says how many were proposed.
type ProposeSkillsOutput struct {
	ProposalCount int `json:"proposalCount"`
}

func (*ProposeSkillsOutput) isOutput() {}

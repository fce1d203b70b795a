package tools

// SendFeedbackInput drafts feedback to the vendor.
type SendFeedbackInput struct {
	Type         string `json:"type"`                    // idea, missing_capability, …
	Title        string `json:"title"`                   // one line
	Details      string `json:"details"`                 // Markdown
	Area         string `json:"area,omitempty"`          // part of the product; "": not clear
	FailureMode  string `json:"failure_mode,omitempty"`  // what kind of failure; the set is not documented
	TaskCategory string `json:"task_category,omitempty"` // code_edit, debug, explain, plan, shell, …, other; "": not clear
	Extra        `json:"-"`
}

// Tool implements [Input].
func (*SendFeedbackInput) Tool() string { return "SendFeedback" }

// SendFeedbackOutput says whether there is a draft now.
type SendFeedbackOutput struct {
	Success bool   `json:"success"` // a draft was stored; nothing was sent
	Message string `json:"message"` // for the model
}

func (*SendFeedbackOutput) isOutput() {}

// PushNotificationInput sends the user a message while they are away.
type PushNotificationInput struct {
	Message string `json:"message"`          // under 200 characters
	Status  string `json:"status,omitempty"` // proactive
	Extra   `json:"-"`
}

// Tool implements [Input].
func (*PushNotificationInput) Tool() string { return "PushNotification" }

// PushNotificationOutput says where it went.
type PushNotificationOutput struct {
	Message        string `json:"message"`                  // for the model
	PushSent       bool   `json:"pushSent,omitempty"`       // to the person's phone
	LocalSent      bool   `json:"localSent,omitempty"`      // on the agent's machine
	DisabledReason string `json:"disabledReason,omitempty"` // config_off, user_present, no_transport
	SentAt         string `json:"sentAt,omitempty"`         // RFC 3339
}

func (*PushNotificationOutput) isOutput() {}

// ProposeGoalInput proposes a condition to work towards.
type ProposeGoalInput struct {
	Condition string `json:"condition"`          // what an evaluator can check, at most 500 characters
	AskUser   *bool  `json:"ask_user,omitempty"` // nil is true
	Extra     `json:"-"`
}

// Tool implements [Input].
func (*ProposeGoalInput) Tool() string { return "ProposeGoal" }

// ProposeGoalOutput is what was proposed.
type ProposeGoalOutput struct {
	Condition string `json:"condition"` // of the input
	AskUser   bool   `json:"askUser"`   // false: set without asking
}

func (*ProposeGoalOutput) isOutput() {}

// ProposeSkillsInput proposes one to three skills to keep.
type ProposeSkillsInput struct {
	Proposals []SkillProposal `json:"proposals"` // one to three
	Extra     `json:"-"`
}

// Tool implements [Input].
func (*ProposeSkillsInput) Tool() string { return "ProposeSkills" }

// SkillProposal is a skill, or a change of one.
type SkillProposal struct {
	Name        string      `json:"name"`               // what SkillInput.Skill will take
	Kind        string      `json:"kind"`               // new, improvement
	Target      string      `json:"target,omitempty"`   // of an improvement; name of the skill to improve
	Description string      `json:"description"`        // what the skill is for
	Evidence    []string    `json:"evidence,omitempty"` // memory files that show the procedure
	Edits       []SkillEdit `json:"edits,omitempty"`    // of an improvement, in order; nil: SkillMD is set
	SkillMD     string      `json:"skillMd,omitempty"`  // the whole SKILL.md; "": Edits are set
}

// SkillEdit replaces a string in a skill.
type SkillEdit struct {
	OldString string `json:"old_string"` // occurs exactly once in SKILL.md
	NewString string `json:"new_string"` // in its place
}

// ProposeSkillsOutput says how many were proposed.
type ProposeSkillsOutput struct {
	ProposalCount int `json:"proposalCount"` // shown to the person
}

func (*ProposeSkillsOutput) isOutput() {}

package protocol

// AssistantMessage is a message of the model. Claude Code writes one line per
// content block, all with the same Message.ID, StopReason null and usage not
// final (observed on 2.1.329).
type AssistantMessage struct {
	Common
	Message APIMessage `json:"message"`
	// Error is set on a synthetic message that stands for a failed call:
	// authentication_failed, rate_limit, server_error, invalid_request, …
	Error string `json:"error,omitempty"`
}

// APIMessage is the message object of the model's API.
type APIMessage struct {
	ID      string  `json:"id,omitempty"`
	Role    string  `json:"role"`
	Model   string  `json:"model,omitempty"`
	Content Content `json:"content"`
}

func (*AssistantMessage) wire() (string, string) { return "assistant", "" }

// UserMessage is a user line, in both directions: a prompt of the host, or a
// tool result, an echo or a synthetic prompt that the agent reports.
type UserMessage struct {
	Common
	Message UserContent `json:"message"`
	// IsReplay marks the echo of a line that was already accepted.
	IsReplay bool `json:"isReplay,omitempty"`
}

// UserContent is the message object of a user line.
type UserContent struct {
	Role    string  `json:"role"`
	Content Content `json:"content"`
}

func (*UserMessage) wire() (string, string) { return "user", "" }

// ResultMessage ends a turn.
type ResultMessage struct {
	Common
	Subtype string   `json:"-"`
	IsError bool     `json:"is_error"`
	Result  string   `json:"result,omitempty"`
	Errors  []string `json:"errors,omitempty"`
}

func (m *ResultMessage) wire() (string, string) { return "result", m.Subtype }

// InitMessage is system/init.
type InitMessage struct {
	Common
	Cwd            string   `json:"cwd,omitempty"`
	Model          string   `json:"model,omitempty"`
	PermissionMode string   `json:"permissionMode,omitempty"`
	Tools          []string `json:"tools,omitempty"`
	Capabilities   []string `json:"capabilities,omitempty"`
}

func (*InitMessage) wire() (string, string) { return "system", "init" }

// PartialAssistantMessage is a stream_event line.
type PartialAssistantMessage struct {
	Common
}

func (*PartialAssistantMessage) wire() (string, string) { return "stream_event", "" }

func (m *PartialAssistantMessage) decodeFast(*Frame) bool { return false }

func newSystemMessage(subtype string) Message {
	switch subtype {
	case "init":
		return new(InitMessage)
	}
	return nil
}

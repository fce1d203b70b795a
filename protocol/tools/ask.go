package tools

import (
	"encoding/json"
	"fmt"

	"github.com/agent-troupe/troupe/protocol"
)

// AskUserQuestionInput asks the user one to four questions. It arrives at the permission
// callback, which answers by allowing the call with [Answers] filled in;
// see [AskUserQuestionInput.Answer].
//
// Qoder's document has one question with a list of strings. Its CLI declares
// this shape to the model, as Claude's does; the one of the document decodes
// to Question, Choices and Default.
//
// [Answers]: #AskUserQuestionInput.Answers
type AskUserQuestionInput struct {
	Questions []Question `json:"questions,omitempty"` // one to four
	// Answers are by the text of the question. Several choices of one question
	// are joined by ", ", as qodercli does.
	Answers     map[string]string         `json:"answers,omitempty"`
	Annotations map[string]QuestionRemark `json:"annotations,omitempty"` // by the text of the question; nil: none
	Metadata    *QuestionMetadata         `json:"metadata,omitempty"`    // nil: none

	Question string   `json:"question,omitempty"` // Qoder's document: the one question
	Choices  []string `json:"options,omitempty"`  // Qoder's document: its answers
	Default  string   `json:"default,omitempty"`  // Qoder's document: the answer that is chosen beforehand
	Extra    `json:"-"`
}

// Tool implements [Input].
func (*AskUserQuestionInput) Tool() string { return "AskUserQuestion" }

// Answer notes the answer to a question, which is one of those asked.
func (in *AskUserQuestionInput) Answer(question, answer string) error {
	for _, q := range in.Questions {
		if q.Question == question {
			if in.Answers == nil {
				in.Answers = map[string]string{}
			}
			in.Answers[question] = answer
			return nil
		}
	}
	return fmt.Errorf("tools: %s does not ask %q; use the text of one of its Questions", "AskUserQuestion", question)
}

// Question is one question, with two to four options.
type Question struct {
	Question string `json:"question"` // the whole text, and the key of Answers
	// Header is a label of a word or two.
	Header      string           `json:"header,omitempty"`
	Options     []QuestionOption `json:"options,omitempty"`     // two to four
	MultiSelect bool             `json:"multiSelect,omitempty"` // several options may be chosen
}

// QuestionOption is one answer to choose. The user may also give another.
type QuestionOption struct {
	Label       string `json:"label"`                 // the answer, and the value in Answers
	Description string `json:"description,omitempty"` // what the answer means
	// Preview is Markdown or HTML, as Options.ToolConfig has it.
	Preview string `json:"preview,omitempty"`
}

// QuestionRemark is what the user said or did besides choosing.
type QuestionRemark struct {
	Preview    string `json:"preview,omitempty"`    // QuestionOption.Preview of the chosen option
	Notes      string `json:"notes,omitempty"`      // free text; "": none
	Unanswered string `json:"unanswered,omitempty"` // skipped, replied_in_chat, dismissed
}

// QuestionMetadata says where the questions come from.
type QuestionMetadata struct {
	Source string `json:"source,omitempty"` // for the vendor's statistics
}

// AskUserQuestionOutput is the questions with their answers.
type AskUserQuestionOutput struct {
	Questions   []Question                `json:"questions,omitempty"`   // of the input
	Answers     map[string]string         `json:"answers,omitempty"`     // as in [AskUserQuestionInput]
	Annotations map[string]QuestionRemark `json:"annotations,omitempty"` // as in [AskUserQuestionInput]
	// Response is what the user wrote in place of answers.
	Response     string          `json:"response,omitempty"`
	AFKTimeoutMS protocol.Millis `json:"afkTimeoutMs,omitempty"` // the dialog closed by itself after so many milliseconds; 0: a person closed it
	Answer       string          `json:"answer,omitempty"`       // Qoder's document
}

func (*AskUserQuestionOutput) isOutput() {}

// SendMessageInput sends a message to another agent.
type SendMessageInput struct {
	To      string `json:"to,omitempty"`      // name, task id or address of an agent
	Summary string `json:"summary,omitempty"` // one line for people
	// Message is a text on Claude Code 2.1.329; earlier releases also took an
	// object, such as a request to shut down.
	Message        json.RawMessage `json:"message,omitempty"`
	NotifyWhenIdle bool            `json:"notify_when_idle,omitempty"` // the sender wants to know when the receiver has nothing to do
	// Claude Code 2.1.329 adds these fields to the call before it runs it (observed).
	Type          string `json:"type,omitempty"`           // message; the only type that was observed
	Recipient     string `json:"recipient,omitempty"`      // repeats To
	RecipientKind string `json:"recipient_kind,omitempty"` // name
	Content       string `json:"content,omitempty"`        // the text of Message
	Extra         `json:"-"`
}

// Tool implements [Input].
func (*SendMessageInput) Tool() string { return "SendMessage" }

// SendMessageOutput says whether the message was sent.
type SendMessageOutput struct {
	Success bool   `json:"success"`           // false: Message says why
	Message string `json:"message,omitempty"` // for the model
	// Display is Message for the user.
	Display string `json:"display,omitempty"`
}

func (*SendMessageOutput) isOutput() {}

// SkillInput runs a skill or a slash command.
type SkillInput struct {
	Skill string `json:"skill"`          // name, without the slash; PLUGIN:NAME for a plugin's
	Args  string `json:"args,omitempty"` // the text after the name; "": none
	Extra `json:"-"`
}

// Tool implements [Input].
func (*SkillInput) Tool() string { return "Skill" }

// SkillOutput is a skill that was loaded (inline) or has run (forked).
type SkillOutput struct {
	Success      bool     `json:"success"`                // the skill was found
	CommandName  string   `json:"commandName"`            // without the slash
	Status       string   `json:"status,omitempty"`       // inline, forked
	AllowedTools []string `json:"allowedTools,omitempty"` // tools that need no permission while the skill is used
	Model        string   `json:"model,omitempty"`        // the skill's own; "": the session's
	AgentID      string   `json:"agentId,omitempty"`      // the subagent that ran it, with status forked
	Result       string   `json:"result,omitempty"`       // what it said, with status forked
}

func (*SkillOutput) isOutput() {}

// ToolSearchInput looks for tools whose schemas are not loaded yet.
type ToolSearchInput struct {
	Query      string `json:"query"`                 // words, or select:NAME,NAME
	MaxResults int    `json:"max_results,omitempty"` // 0: the agent's default
	Extra      `json:"-"`
}

// Tool implements [Input].
func (*ToolSearchInput) Tool() string { return "ToolSearch" }

// ToolSearchOutput is the tools that were found, by name.
type ToolSearchOutput struct {
	Query              string   `json:"query"`                // of the input
	Matches            []string `json:"matches"`              // names
	TotalDeferredTools int      `json:"total_deferred_tools"` // all tools that can be found this way
}

func (*ToolSearchOutput) isOutput() {}

// StructuredOutputInput is the value that the model gives for the session's
// JSON schema.
type StructuredOutputInput struct {
	Value json.RawMessage // the whole input; checked against the schema by the agent
}

// Tool implements [Input].
func (*StructuredOutputInput) Tool() string { return "StructuredOutput" }

func (*StructuredOutputInput) isInput()      {}
func (*StructuredOutputInput) extra() *Extra { return nil }

// UnmarshalJSON keeps the whole value.
func (in *StructuredOutputInput) UnmarshalJSON(b []byte) error {
	in.Value = append(json.RawMessage(nil), b...)
	return nil
}

// MarshalJSON returns the value unchanged.
func (in *StructuredOutputInput) MarshalJSON() ([]byte, error) { return orNull(in.Value), nil }

// ConfigInput reads or changes a setting: Setting and Value are Claude's, the
// rest is of Qoder's document.
type ConfigInput struct {
	Setting string          `json:"setting,omitempty"` // such as model or theme
	Value   json.RawMessage `json:"value,omitempty"`   // absent reads
	Action  string          `json:"action,omitempty"`  // get, set, list
	Key     string          `json:"key,omitempty"`     // as Setting
	Scope   string          `json:"scope,omitempty"`   // user, project, local
	Extra   `json:"-"`
}

// Tool implements [Input].
func (*ConfigInput) Tool() string { return "Config" }

// ConfigOutput is a setting that was read or changed; each value is the
// setting's own. Values is of Qoder's document.
type ConfigOutput struct {
	Success       bool                       `json:"success"`                 // false: Error says why
	Operation     string                     `json:"operation,omitempty"`     // get, set
	Setting       string                     `json:"setting,omitempty"`       // of the input
	Value         json.RawMessage            `json:"value,omitempty"`         // with operation get
	PreviousValue json.RawMessage            `json:"previousValue,omitempty"` // with operation set
	NewValue      json.RawMessage            `json:"newValue,omitempty"`      // with operation set
	Values        map[string]json.RawMessage `json:"values,omitempty"`        // by key, with action list
	Error         string                     `json:"error,omitempty"`         // "": none
}

func (*ConfigOutput) isOutput() {}

package sdk

import "github.com/agent-troupe/troupe/protocol"

// The messages that most programs use. Package protocol has the others, such as
// [protocol.RateLimitMessage] and [protocol.TaskStartedMessage]. A type switch over a
// [Message] needs a default case: agents send messages that this release does not know
// ([UnknownMessage]).
type (
	// Message is one message of the session. It is [protocol.Message].
	Message = protocol.Message
	// InitMessage is system/init: the session, its model and its tools. It is
	// [protocol.InitMessage].
	InitMessage = protocol.InitMessage
	// UserMessage is a user message: one that you send, or one that the agent writes,
	// such as tool results. It is [protocol.UserMessage].
	UserMessage = protocol.UserMessage
	// AssistantMessage is a message of the model. It is [protocol.AssistantMessage].
	AssistantMessage = protocol.AssistantMessage
	// PartialAssistantMessage is one event of a message that the model is writing
	// (stream_event). It is [protocol.PartialAssistantMessage].
	PartialAssistantMessage = protocol.PartialAssistantMessage
	// ResultMessage is the result of a turn. It is [protocol.ResultMessage].
	ResultMessage = protocol.ResultMessage
	// UnknownMessage is a line whose type or subtype this release does not know, or
	// whose fields do not decode. It is [protocol.UnknownMessage].
	UnknownMessage = protocol.UnknownMessage
)

// The content of messages. Package protocol has the other blocks, such as
// [protocol.ImageBlock].
type (
	// TextBlock is text of the model or of the user. It is [protocol.TextBlock].
	TextBlock = protocol.TextBlock
	// ToolUseBlock is a tool call of the model. It is [protocol.ToolUseBlock].
	ToolUseBlock = protocol.ToolUseBlock
)

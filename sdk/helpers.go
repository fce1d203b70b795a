package sdk

import (
	"bytes"
	"iter"
	"strconv"

	"github.com/agent-troupe/troupe/protocol"
)

// TextOf returns the text of a message: of the text blocks of an assistant or user
// message, the text that a partial message adds, or the text of a result. It returns ""
// for any other message.
func TextOf(m Message) string { return protocol.TextOf(m) }

// ToolUses returns the tool calls of an assistant message, nil if it has no tool calls.
func ToolUses(m Message) []*ToolUseBlock { return protocol.ToolUses(m) }

// ToolResults returns the tool results of a user message, nil if it has no tool results.
func ToolResults(m Message) []*protocol.ToolResultBlock { return protocol.ToolResults(m) }

// UserText returns a user message of one text, for [Client.Send] and [Inputs].
func UserText(text string) UserMessage {
	return UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.TextContent(text)}}
}

// UserBlocks returns a user message of several blocks: text, images, documents.
func UserBlocks(blocks ...protocol.ContentBlock) UserMessage {
	return UserMessage{Message: protocol.UserContent{Role: "user", Content: blocks}}
}

// Collect reads all messages. If there is an error, it returns the messages before it,
// too.
func Collect(messages iter.Seq2[Message, error]) ([]Message, error) {
	var all []Message
	for m, err := range messages {
		if err != nil {
			return all, err
		}
		all = append(all, m)
	}
	return all, nil
}

// Texts yields the text of the main agent when it arrives: the whole text of each message, or,
// with Options.IncludePartialMessages, the pieces in which the model writes it. A message of
// the model whose line was above Options.MaxLine is yielded in its place as an empty text with
// an error that matches [protocol.OversizeError]; the loop may continue after it. Any other
// error is yielded last. If the loop ends early, the loop over messages ends, too.
func Texts(messages iter.Seq2[Message, error]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var streamed string // id of the message whose text came in pieces
		for m, err := range messages {
			if err != nil {
				yield("", err)
				return
			}
			var text string
			switch m := m.(type) {
			case *PartialAssistantMessage:
				if start, ok := m.Event.(*protocol.MessageStart); ok {
					streamed = start.Message.ID
				}
				text = m.Text()
			case *protocol.OversizeMessage:
				if lacksText(m, streamed) && !yield("", m.Err) {
					return
				}
			case *AssistantMessage:
				if m.Message.ID == "" || m.Message.ID != streamed {
					text = TextOf(m)
				}
			}
			if text != "" && m.Meta().ParentToolUseID == "" && !yield(text, nil) {
				return
			}
		}
	}
}

// lacksText reports whether the text of a skipped message may be missing: it is one of the
// model, as far as its first bytes say, and its text has not come in pieces.
func lacksText(m *protocol.OversizeMessage, streamed string) bool {
	switch m.Type {
	case "assistant":
		return streamed == "" || !bytes.Contains(m.Head, []byte(strconv.Quote(streamed)))
	case "stream_event", "":
		return true
	}
	return false
}

// resultOf returns m as a result, also one with a field that did not decode; nil for
// any other message.
func resultOf(m Message) *ResultMessage {
	if u, ok := m.(*UnknownMessage); ok && u.Partial != nil {
		m = u.Partial
	}
	r, _ := m.(*ResultMessage)
	return r
}

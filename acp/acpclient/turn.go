package acpclient

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/protocol"
)

// turn is a user message of the host, until its result.
type turn struct {
	uuid      string
	message   *protocol.UserMessage
	problem   string // why the message cannot be sent; "": it can
	begun     time.Time
	cancelled bool
	text      string // the last text of the agent
	denials   []denial
}

// denial is a call in a result's list of those that were denied.
type denial struct {
	ToolName  string          `json:"tool_name"`
	ToolUseID string          `json:"tool_use_id"`
	Input     json.RawMessage `json:"tool_input"`
}

// user queues a user message. Prompts follow one another.
func (c *conn) user(line []byte) {
	t := &turn{message: &protocol.UserMessage{}}
	if err := protocol.Unmarshal(line, t.message); err != nil {
		t.problem = fmt.Sprintf("the message cannot be read: %v", err)
	}
	t.uuid = t.message.UUID
	if c.turns = append(c.turns, t); len(c.turns) == 1 {
		c.begin()
	}
}

// begin sends the first message that waits.
func (c *conn) begin() {
	for len(c.turns) > 0 {
		t := c.turns[0]
		t.begun = c.seams.Clock.Now()
		prompt, problem := c.prompt(t.message)
		t.problem = cmp.Or(t.problem, problem)
		if t.problem == "" {
			c.call(acp.MethodSessionPrompt, acp.PromptRequest{SessionID: c.id, Prompt: prompt}, func(m acp.Message) { c.over(t, m) })
			return
		}
		c.turns = c.turns[1:]
		r := c.result(t)
		c.write(r.fail(t.problem))
	}
}

// prompt is a user message as blocks of the protocol. problem says why it cannot be one.
func (c *conn) prompt(m *protocol.UserMessage) (prompt []acp.ContentBlock, problem string) {
	_, _, _, takes := c.capabilities()
	if m.ShouldQuery != nil && !*m.ShouldQuery {
		return nil, "the Agent Client Protocol has no messages that are only added to the history"
	}
	for _, block := range m.Message.Content {
		switch b := block.(type) {
		case *protocol.TextBlock:
			prompt = append(prompt, acp.ContentBlock{Text: &acp.TextContent{Text: b.Text}})
			continue
		case *protocol.ImageBlock:
			if takes.Image && b.Source.Type == "base64" {
				prompt = append(prompt, acp.ContentBlock{Image: &acp.ImageContent{Data: b.Source.Data, MimeType: b.Source.MediaType}})
				continue
			}
		}
		return nil, fmt.Sprintf("the agent does not take blocks of type %s in a prompt", block.BlockType())
	}
	return prompt, ""
}

// result is a result as it is written.
type result struct {
	Type              string        `json:"type"`
	Subtype           string        `json:"subtype"`
	IsError           bool          `json:"is_error"`
	DurationMS        int64         `json:"duration_ms"`
	DurationAPIMS     int64         `json:"duration_api_ms"`
	NumTurns          int           `json:"num_turns"`
	Result            *string       `json:"result,omitempty"`
	Errors            []string      `json:"errors,omitempty"`
	StopReason        *string       `json:"stop_reason"`
	TerminalReason    string        `json:"terminal_reason,omitempty"`
	TotalCostUSD      float64       `json:"total_cost_usd"`
	Usage             usage         `json:"usage"`
	PermissionDenials []denial      `json:"permission_denials"`
	SessionID         acp.SessionID `json:"session_id"`
	UUID              string        `json:"uuid"`
	UserMessageUUID   string        `json:"user_message_uuid,omitempty"`
}

// usage is what a turn has used, as far as the agent says.
type usage struct {
	InputTokens              int64 `json:"input_tokens"`
	OutputTokens             int64 `json:"output_tokens"`
	CacheReadInputTokens     int64 `json:"cache_read_input_tokens"`
	CacheCreationInputTokens int64 `json:"cache_creation_input_tokens"`
}

// result is what is known of a turn's result without the agent's answer.
func (c *conn) result(t *turn) *result {
	took := c.seams.Clock.Now().Sub(t.begun).Milliseconds()
	return &result{
		Type: "result", Subtype: protocol.ResultSuccess, DurationMS: took, DurationAPIMS: took, NumTurns: 1, TotalCostUSD: c.shown.cost,
		PermissionDenials: append([]denial{}, t.denials...), SessionID: c.id, UUID: c.uuid(), UserMessageUUID: t.uuid,
	}
}

// fail makes the result one of a failure.
func (r *result) fail(why string) *result {
	r.Subtype, r.IsError, r.Errors, r.Result = protocol.ResultErrorDuringExecution, true, []string{why}, nil
	return r
}

// over ends the turn that runs: the agent has answered its prompt.
func (c *conn) over(t *turn, m acp.Message) {
	c.flush()
	c.closeTools()
	for len(c.asks) > 0 { // they belong to this turn, and can no longer be decided
		c.endAsk(c.asks[0], true)
	}
	var answer struct {
		StopReason acp.StopReason `json:"stopReason"`
		Usage      struct {
			Input  int64 `json:"inputTokens"`
			Output int64 `json:"outputTokens"`
			Read   int64 `json:"cachedReadTokens"`
			Write  int64 `json:"cachedWriteTokens"`
		} `json:"usage"`
	}
	failed := read(acp.MethodSessionPrompt, m, &answer)
	r := c.result(t)
	r.Usage = usage{answer.Usage.Input, answer.Usage.Output, answer.Usage.Read, answer.Usage.Write}
	stop := string(answer.StopReason)
	switch {
	case failed != nil && t.cancelled, answer.StopReason == acp.StopReasonCancelled:
		r.fail("the turn was cancelled").TerminalReason = "aborted_streaming"
	case failed != nil:
		r.fail(failed.Error())
	case stop == "":
		r.fail("the agent answered the prompt without a stopReason")
	case answer.StopReason == acp.StopReasonMaxTurnRequests:
		r.fail("the agent reached its limit of model calls in a turn").Subtype = protocol.ResultErrorMaxTurns
	default: // end_turn, max_tokens, refusal, and what this release does not know
		r.StopReason, r.Result = &stop, &t.text
	}
	c.turns = c.turns[1:]
	c.write(r)
	c.begin()
}

package acpagent

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/protocol/tools"
	"github.com/agent-troupe/troupe/sdk"
)

// questions shows the questions of an AskUserQuestion call as a form. Next to each choice
// there is a field for the person's own answer.
func (s *session) questions(ctx context.Context, r *sdk.ToolPermissionRequest, questions []tools.Question) sdk.PermissionResult {
	can := s.server.capabilities().Elicitation
	if can == nil || can.Form == nil {
		return sdk.Deny("The editor cannot show questions. Ask in the conversation.")
	}
	form := acp.ElicitationSchema{Type: acp.ElicitationSchemaTypeObject, Properties: map[string]acp.ElicitationPropertySchema{}}
	for i, q := range questions {
		choices := make([]acp.EnumOption, len(q.Options))
		for n, o := range q.Options {
			choices[n] = acp.EnumOption{Const: o.Label, Title: o.Label, Description: o.Description}
		}
		p := acp.ElicitationPropertySchema{Type: "string", Title: cmp.Or(q.Header, q.Question), Description: q.Question, OneOf: choices}
		if q.MultiSelect {
			p.Type, p.OneOf, p.Items = "array", nil, acp.MultiSelectItems{AnyOf: choices}
		}
		form.Properties[field(i)] = p
		form.Properties[field(i)+"_custom"] = acp.ElicitationPropertySchema{Type: "string", Title: "Other", Description: "Your own answer instead (optional)."}
	}
	var answer acp.CreateElicitationResponse
	err := s.server.conn.Call(ctx, acp.MethodElicitationCreate, acp.CreateElicitationRequest{
		Mode: "form", SessionID: s.id, ToolCallID: acp.ToolCallID(r.ToolUseID), Message: asked(questions), RequestedSchema: form,
	}, &answer)
	switch {
	case err != nil:
		return sdk.Deny(unasked)
	case answer.Action != "accept":
		return sdk.Deny("The user did not answer the questions.")
	}
	answers := map[string][]string{}
	for i, q := range questions {
		if own := texts(answer.Content[field(i)+"_custom"]); len(own) > 0 && own[0] != "" {
			answers[q.Question] = own
		} else if chosen := texts(answer.Content[field(i)]); len(chosen) > 0 {
			answers[q.Question] = chosen
		}
	}
	result, err := sdk.AnswerQuestions(r, answers)
	if err != nil {
		return sdk.Deny(unasked)
	}
	return result
}

func field(i int) string { return fmt.Sprintf("question_%d", i) }

// texts reads a text or a list of texts.
func texts(raw json.RawMessage) []string {
	var one string
	if len(raw) == 0 {
		return nil
	}
	if json.Unmarshal(raw, &one) == nil {
		return []string{one}
	}
	var many []string
	_ = json.Unmarshal(raw, &many) // anything else is not an answer
	return many
}

// elicit passes on the question of an MCP server, if the editor has that kind of form.
func (s *session) elicit(a *sdk.Ask[protocol.ElicitationRequest, protocol.ElicitationResult]) {
	r := a.Request
	q := acp.CreateElicitationRequest{Mode: cmp.Or(r.Mode, "form"), SessionID: s.id, Message: r.MCPServerName + ": " + r.Message}
	can := s.server.capabilities().Elicitation
	able := can != nil && (q.Mode == "form" && can.Form != nil || q.Mode == "url" && can.URL != nil)
	if q.Mode == "url" {
		q.URL, q.ElicitationID = r.URL, acp.ElicitationID(r.ElicitationID)
	} else if len(r.RequestedSchema) > 0 {
		able = able && json.Unmarshal(r.RequestedSchema, &q.RequestedSchema) == nil
	}
	if !able {
		a.Answer(protocol.ElicitationResult{Action: protocol.ElicitDecline})
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	start(func() {
		<-a.Done()
		cancel()
	})
	start(func() {
		var answer acp.CreateElicitationResponse
		result := protocol.ElicitationResult{Action: protocol.ElicitDecline}
		if err := s.server.conn.Call(ctx, acp.MethodElicitationCreate, q, &answer); err == nil && slices.Contains([]string{"accept", "cancel"}, answer.Action) {
			result.Action = answer.Action
			if answer.Action == "accept" && answer.Content != nil { // a page has no content
				result.Content, _ = json.Marshal(answer.Content) // was JSON before
			}
		}
		a.Answer(result)
	})
}

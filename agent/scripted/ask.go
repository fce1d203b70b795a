package scripted

import (
	"cmp"
	"errors"
	"maps"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/agent"
)

// ask makes a request and keeps the answer; running into the limit is not an error of
// the script.
func (p *player) ask(request agent.Object, limit time.Duration) error {
	answer, err := p.Strand().Ask(request, limit)
	if errors.Is(err, agent.ErrTimeout) {
		p.answer = nil
		return nil
	}
	if err != nil {
		return err
	}
	p.answer = answer.Body
	if !answer.OK {
		p.answer = []byte(`{"error":` + quote(answer.Error) + `}`)
	}
	return nil
}

func (s *Request) play(p *player) error {
	request := p.object(s.Fields)
	request["subtype"] = s.Subtype
	if s.Type {
		request["type"] = s.Subtype
	}
	if s.ID == "" && s.Copies == 0 && s.Cancel == "" && !s.NoWait {
		return p.ask(request, s.Limit)
	}
	st := p.Strand()
	sent := st.Send(request, s.ID)
	for range s.Copies {
		sent.Repeat()
	}
	if s.Cancel == "in_flight" {
		sent.Cancel()
		return nil
	}
	if s.NoWait {
		return nil
	}
	answer, err := sent.Wait(s.Limit)
	if err != nil && !errors.Is(err, agent.ErrTimeout) {
		return err
	}
	p.answer = answer.Body
	if s.Cancel == "late" {
		sent.Cancel()
	}
	return nil
}

func (s *Elicitation) play(p *player) error {
	mode := cmp.Or(s.Mode, "form")
	schema := s.Schema
	if schema == nil {
		schema = map[string]any{"type": "object", "properties": map[string]any{}}
	}
	return p.WaitForHost(func() error {
		return p.ask(agent.Object{
			"subtype": "elicitation", "mcp_server_name": s.Server, "message": p.fill(s.Message),
			"mode": mode, "requested_schema": schema,
		}, s.Limit)
	})
}

func (s *Dialog) play(p *player) error {
	return p.WaitForHost(func() error {
		return p.ask(agent.Object{
			"subtype": "request_user_dialog", "dialog_kind": s.Kind, "payload": p.object(s.Payload),
		}, s.Limit)
	})
}

func (s *ModelPolicy) play(p *player) error {
	purpose := cmp.Or(s.Purpose, "main")
	request := agent.Object{
		"type": "get_model_policy", "subtype": "get_model_policy", "sessionId": p.SessionID(),
		"resolvedModel": "auto", "contextUsage": 0.1, "purpose": purpose,
		"models": []any{agent.Object{"value": "auto", "displayName": "Auto"}},
	}
	maps.Copy(request, p.object(s.Fields))
	return p.ask(request, s.Limit)
}

func (s *Answer) play(p *player) error {
	body := agent.Object{"subtype": "success", "request_id": s.ID, "response": agent.Object{}}
	if s.Error != "" {
		body = agent.Object{"subtype": "error", "request_id": s.ID, "error": s.Error}
	}
	return p.Send(agent.Object{"type": "control_response", "response": body})
}

func (s *Cancel) play(p *player) error {
	return p.Send(agent.Object{"type": "control_cancel_request", "request_id": s.ID})
}

func (s *Compact) play(p *player) error {
	manual := p.turn != nil && strings.HasPrefix(p.prompt, "/compact")
	trigger := "auto"
	if manual {
		trigger = "manual"
	}
	p.Lane.System("status", agent.Object{"status": "compacting"})
	if _, err := p.Lane.Hook("PreCompact", trigger, agent.Object{"trigger": trigger, "custom_instructions": nil}); err != nil {
		return err
	}
	if err := p.Sleep(s.Takes); err != nil {
		return err
	}
	if _, err := p.Lane.Hook("SessionStart", "compact", agent.Object{"source": "compact"}); err != nil {
		return err
	}
	summary := p.fill(s.Summary)
	if _, err := p.Lane.Hook("PostCompact", trigger, agent.Object{"trigger": trigger, "compact_summary": summary}); err != nil {
		return err
	}
	p.Lane.System("status", agent.Object{"status": nil, "compact_result": "success"})
	if manual {
		p.turn.Open()
	}
	p.Lane.System("compact_boundary", agent.Object{"compact_metadata": agent.Object{
		"trigger": trigger, "pre_tokens": 1000, "post_tokens": 100, "duration_ms": s.Takes.Milliseconds(),
	}})
	p.Emit(agent.Object{
		"type": "user", "parent_tool_use_id": nil, "isReplay": false, "isSynthetic": true,
		"message": agent.Object{"role": "user", "content": "This session is being continued from a previous conversation. " + summary},
	})
	if !manual {
		return p.Err()
	}
	p.Emit(agent.Object{
		"type": "user", "parent_tool_use_id": nil, "isReplay": true,
		"message": agent.Object{"role": "user", "content": "<local-command-stdout>Compacted</local-command-stdout>"},
	})
	return p.turn.Finish(agent.Result{
		Text: agent.Say(""), Local: true, More: agent.Object{"local_command": "compact"},
	})
}

// quote is s as a JSON string, good enough for what goes into ${answer}.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}

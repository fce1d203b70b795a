package acpagent_test

import (
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
)

// steps are the steps of the turn.
func (p *played) steps() (out scripted.Steps) {
	problem, _ := p.answerError()
	if status := statusOf(problem); status != 0 {
		return apiErrorSteps(p.events[0].chunks[0], status)
	}
	for i := 0; i < len(p.events); i++ {
		e := p.events[i]
		switch {
		case e.step != nil:
			out = append(out, e.step)
		case e.chunks != nil && !strings.HasPrefix(e.id, "msg_"): // a command wrote it
			out = append(out, syntheticText(e.chunks[0]), &scripted.Result{Text: &e.chunks[0]})
		case e.chunks != nil:
			out = append(out, &scripted.Partial{Chunks: e.chunks})
		case e.call.name == "":
			out = append(out, compactionSteps(e.call)...)
		case strings.Contains(problem, "exited unexpectedly"):
			out = append(out, begunSteps(e.call)...)
		default:
			together := scripted.Parallel{p.step(e.call)}
			for i+1 < len(p.events) && p.events[i+1].call != nil && p.events[i+1].call.begun == e.call.begun {
				i++
				together = append(together, p.step(p.events[i].call))
			}
			if len(together) == 1 {
				out = append(out, together[0])
			} else {
				out = append(out, together)
			}
		}
	}
	switch {
	case p.answer == nil || text(p.answer.Result, "stopReason") == "cancelled":
		out = append(out, scripted.Delay(never)) // until it is cancelled, or the end
	case strings.Contains(problem, "exited unexpectedly"):
		out = append(out, &scripted.Exit{Signal: "KILL"})
	case len(out) == 0:
		out = append(out, &scripted.Result{Text: new(string)})
	}
	return out
}

// answerError is the message of the error that the prompt was answered with.
func (p *played) answerError() (message string, failed bool) {
	if p.answer == nil || p.answer.Error == nil {
		return "", false
	}
	return text(p.answer.Error, "message"), true
}

// statusOf is the HTTP status of the model's API that an error is about, 0 if it is about
// something else.
func statusOf(message string) int {
	if m := regexp.MustCompile(`API Error: (\d+)`).FindStringSubmatch(message); m != nil {
		n, _ := strconv.Atoi(m[1]) // digits
		return n
	}
	if message == "Authentication required" {
		return 401
	}
	return 0
}

// apiError is the status of the first API error of a recording.
func apiError(recording []*recorded) int {
	for _, r := range recording {
		if status := statusOf(text(r.Error, "message")); status != 0 && !r.fromClient() {
			return status
		}
	}
	return 0
}

// apiErrorSteps end a turn as the CLI does when the model's API refuses.
func apiErrorSteps(words string, status int) scripted.Steps {
	yes := true
	return scripted.Steps{
		&scripted.Message{Fields: map[string]any{"type": "assistant", "isApiErrorMessage": true, "message": map[string]any{
			"id": "api-error", "role": "assistant", "model": "<synthetic>", "content": []any{map[string]any{"type": "text", "text": words}},
		}}},
		&scripted.Result{IsError: &yes, Text: &words, APIErrorStatus: status},
	}
}

// step is a call with its result.
func (p *played) step(c *call) scripted.Step {
	input := c.input
	if later, _ := input["run_in_background"].(bool); later && c.name == "Bash" {
		return &scripted.Shell{
			Command: text(input, "command"), Description: text(input, "description"), Takes: background, Gate: agent.GateAllow, Then: p.then(),
		}
	}
	if c.name == "Agent" {
		s := &scripted.SubAgent{Description: text(input, "description"), Prompt: text(input, "prompt"), Type: text(input, "subagent_type"), Report: c.shown}
		s.Background, _ = input["run_in_background"].(bool)
		for _, in := range c.inner {
			step := p.step(in).(*scripted.ToolUse)
			if s.Background {
				step.Takes = background
			}
			s.Steps = append(s.Steps, step)
		}
		if s.Background {
			s.Then = p.then()
		}
		return s
	}
	s := &scripted.ToolUse{ID: c.id, Name: c.name, Input: input, Gate: agent.GateAllow, Structured: c.structured}
	if request := p.asked[c.id]; request != nil {
		s.Gate, s.Ask = agent.GateAsk, askOf(request)
	}
	if p.form && c.name == "AskUserQuestion" {
		s.Gate = agent.GateAsk
	}
	words, ok := c.output.(string)
	if !ok {
		words = c.shown
	}
	s.Result = words
	if c.failed {
		s.Result, s.Error = "", words
	}
	s.Takes = time.Duration(c.end-c.begun) * 100 * time.Millisecond
	if !c.ended || p.answer != nil && text(p.answer.Result, "stopReason") == "cancelled" {
		s.Takes, s.Error = never, ""
	}
	return s
}

// syntheticText is a message of the CLI's own.
func syntheticText(words string) scripted.Step {
	return &scripted.Message{Fields: map[string]any{"type": "assistant", "message": map[string]any{
		"id": "synthetic", "role": "assistant", "model": "<synthetic>", "content": []any{map[string]any{"type": "text", "text": words}},
	}}}
}

// compactionSteps are a compaction with the figures of the recording.
func compactionSteps(c *call) scripted.Steps {
	facts, _ := c.output.(object)
	return scripted.Steps{
		&scripted.System{Subtype: "status", Fields: map[string]any{"status": "compacting"}},
		&scripted.System{Subtype: "status", Fields: map[string]any{"status": nil, "compact_result": "success"}},
		&scripted.System{Subtype: "compact_boundary", Fields: map[string]any{"compact_metadata": map[string]any{
			"trigger": facts["trigger"], "pre_tokens": facts["preTokens"], "post_tokens": facts["postTokens"], "duration_ms": facts["durationMs"],
		}}},
		&scripted.Result{Text: new(string)},
	}
}

// begunSteps are a call that has begun when the agent dies.
func begunSteps(c *call) scripted.Steps {
	block := func(input map[string]any) map[string]any {
		return map[string]any{"type": "tool_use", "id": c.id, "name": c.name, "input": input}
	}
	return scripted.Steps{
		&scripted.Message{Fields: map[string]any{"type": "stream_event", "parent_tool_use_id": nil, "event": map[string]any{
			"type": "content_block_start", "index": 1, "content_block": block(map[string]any{}),
		}}},
		&scripted.Message{Fields: map[string]any{"type": "assistant", "parent_tool_use_id": nil, "message": map[string]any{
			"id": "dies", "role": "assistant", "content": []any{block(c.input)},
		}}},
	}
}

// then are the steps of the turn that the agent began itself.
func (p *played) then() (out scripted.Steps) {
	for _, e := range p.later {
		if e.chunks != nil {
			out = append(out, &scripted.Partial{Chunks: e.chunks})
		}
	}
	return out
}

// askOf are the members of the CLI's request that the permission request of the recording shows.
func askOf(request object) map[string]any {
	ask := map[string]any{"permission_suggestions": nil}
	if text(request, "toolCall", "kind") == "execute" {
		if places, _ := request["toolCall"].(object)["locations"].([]any); len(places) > 0 {
			ask["blocked_path"] = text(places[0], "path")
		}
	}
	options, _ := request["options"].([]any)
	for _, o := range options {
		words := text(o, "name")
		command, isRule := strings.CutPrefix(words, "Yes, and don't ask again for ")
		switch {
		case text(o, "kind") != "allow_always":
		case isRule:
			ask["permission_suggestions"] = []any{map[string]any{
				"type": "addRules", "behavior": "allow", "destination": "session",
				"rules": []any{map[string]any{"toolName": "Bash", "ruleContent": strings.TrimSuffix(command, " commands")}},
			}}
		case strings.Contains(words, "all edits"):
			ask["permission_suggestions"] = []any{map[string]any{"type": "setMode", "mode": "acceptEdits", "destination": "session"}}
		}
	}
	return ask
}

package agent

import "github.com/agent-troupe/troupe/protocol"

// The usage that a model call reports.
const (
	inputTokens  = 10
	outputTokens = 5
	defaultCost  = 0.00014 // dollars
)

// Result is the result of a turn. The zero value is the success that Claude Code reports
// after a plain answer.
type Result struct {
	Subtype        string   // "" means success
	IsError        *bool    // nil: false for success, true for all other subtypes
	Text           *string  // nil: the last text of the main lane
	Errors         []string // only with an error subtype
	StopReason     string   // "": end_turn for success, null for all other subtypes
	TerminalReason string   // "": completed for success, absent for all other subtypes
	Structured     any      // structured_output
	APIErrorStatus int      // HTTP status; 0: no status
	Cost           float64  // US dollars, added to the cost of the model calls
	More           Object   // further members; they replace those of the same name

	Local bool // no model was called, so that num_turns does not increase
}

// Say returns a Text for [Result].
func Say(text string) *string { return &text }

func (r Result) success() bool { return r.Subtype == "" || r.Subtype == "success" }

func (e *engine) costPerCall() float64 {
	if e.cfg.CostPerCall != 0 {
		return e.cfg.CostPerCall
	}
	return defaultCost
}

// overBudget reports whether --max-budget-usd is spent, or the share of it of the sub-agent.
func (l *Lane) overBudget() bool {
	limit := l.e.flags.number("max-budget-usd")
	if own := l.own; own != nil {
		return limit > 0 && (own.spent > own.share || l.e.spent > limit)
	}
	return limit > 0 && l.parent == "" && l.turn != nil && l.e.spent > limit
}

func (e *engine) modelUsage() Object {
	if e.calls == 0 {
		return Object{}
	}
	return Object{e.session.model: Object{
		"inputTokens": inputTokens * e.calls, "outputTokens": outputTokens * e.calls,
		"cacheReadInputTokens": 0, "cacheCreationInputTokens": 0, "webSearchRequests": 0,
		"costUSD": e.spent, "contextWindow": 1000000, "maxOutputTokens": 128000,
	}}
}

func usage(calls int) Object {
	return Object{
		"input_tokens": inputTokens * calls, "output_tokens": outputTokens * calls,
		"cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
		"server_tool_use": Object{"web_search_requests": 0, "web_fetch_requests": 0},
		"service_tier":    "standard",
		"cache_creation":  Object{"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 0},
		"inference_geo":   "", "iterations": []any{}, "speed": "standard",
	}
}

// write writes the result frame, once.
func (t *Turn) write(r Result) {
	if t.finished || t.e.exit != nil {
		return
	}
	t.Open()
	t.keepPrompt()
	if err := t.stored(true); err != nil && r.success() {
		r = Result{Subtype: "error_during_execution", Errors: []string{err.Error()}, Local: r.Local}
	}
	t.finished = true
	e := t.e
	for _, msg := range t.injected {
		e.lifecycle(msg, "completed")
	}
	e.spent += r.Cost
	t.apiError = t.failed(r) || e.cfg.Live != nil && r.Subtype == protocol.ResultErrorMaxStructuredRetry
	o := t.frame(r)
	e.lastError, _ = o["is_error"].(bool)
	e.at(BeforeResult, nil)
	e.emit(o)
	e.results++
	e.at(AfterResult, nil)
}

func (t *Turn) frame(r Result) Object {
	e := t.e
	e.sync(true)
	took := t.s.slept.Milliseconds()
	denials := t.denials
	if denials == nil {
		denials = []any{}
	}
	o := Object{
		"type": "result", "subtype": "success", "is_error": !r.success(),
		"duration_ms": took, "duration_api_ms": took,
		"num_turns": t.users, "stop_reason": nil,
		"total_cost_usd": e.spent, "usage": usage(t.calls), "modelUsage": e.modelUsage(),
		"permission_denials": denials,
	}
	if !r.Local {
		o["num_turns"] = t.users + 1
	}
	if live := e.cfg.Live; live != nil && live.Used != nil {
		if r.success() && live.Answered != nil {
			o = o.with(live.Answered(t))
			if t.msg.origin != nil { // no caller waits for it
				for _, name := range []string{"request_sent_wall_ms", "first_request_input_tokens", "first_request_cache_read_input_tokens"} {
					delete(o, name)
				}
			}
		}
		o = o.with(live.Used(t))
	}
	if r.Subtype != "" {
		o["subtype"] = r.Subtype
	}
	if r.IsError != nil {
		o["is_error"] = *r.IsError
	}
	if r.success() {
		t.success(o, r)
	} else {
		o["errors"] = r.Errors
	}
	if r.StopReason != "" {
		o["stop_reason"] = r.StopReason
	}
	if r.TerminalReason != "" {
		o["terminal_reason"] = r.TerminalReason
	}
	if e.cfg.Dialect == Qoder {
		o["total_credits"] = 0
		return o.with(r.More)
	}
	o["result_index"], o["queued_turn_count"] = e.results, 0
	o["fast_mode_state"] = "off"
	if e.cfg.Live == nil {
		o["safety_stops"] = 0
	}
	if t.msg.origin != nil {
		o["origin"] = Object{"kind": "task-notification", "producer": "session-task", "runId": t.msg.origin.RunID}
	}
	if uuids := t.answers(); uuids != nil {
		o["user_message_uuid"], o["user_message_uuids"] = uuids[0], uuids
	}
	if t.msg.again {
		o["resume_reason"] = "interrupted_turn"
	}
	return o.with(r.More)
}

// answers are the uuids of the user lines that the turn answers: a turn that the agent has
// started itself may have taken some, too, and their callers wait for its result.
func (t *Turn) answers() (uuids []string) {
	if t.msg.origin == nil && t.msg.uuid == "" {
		return nil
	}
	for _, msg := range append([]*message{t.msg}, t.injected...) {
		if msg.uuid != "" && msg.origin == nil {
			uuids = append(uuids, msg.uuid)
		}
	}
	return uuids
}

// success adds what only a success carries.
func (t *Turn) success(o Object, r Result) {
	o["result"] = t.lastText
	if r.Text != nil {
		o["result"] = *r.Text
	}
	if !r.Local {
		o["stop_reason"] = "end_turn"
		if o["terminal_reason"] == nil { // an agent with a real model may have said another
			o["terminal_reason"] = "completed"
		}
		if t.stopped && t.lastStop == "" {
			o["stop_reason"] = nil
		} else if t.stopped {
			o["stop_reason"] = t.lastStop
		}
	}
	o["api_error_status"] = nil
	if r.APIErrorStatus != 0 {
		o["api_error_status"] = r.APIErrorStatus
		o["terminal_reason"] = "api_error"
	}
	if r.Structured != nil {
		o["structured_output"] = r.Structured
	}
	if t.output != nil && !t.failed(r) {
		o["structured_output"], o["result"] = t.output, string(t.output)
	}
}

// refuseTurn writes a result for a line that gets no turn.
func (e *engine) refuseTurn(text, reason string) {
	e.lastError = true
	o := Object{
		"type": "result", "subtype": "error_during_execution", "is_error": true,
		"duration_ms": 0, "duration_api_ms": 0, "num_turns": 0, "stop_reason": nil,
		"total_cost_usd": 0, "usage": usage(0), "modelUsage": Object{}, "permission_denials": []any{},
		"errors": []string{text},
	}
	if reason != "" {
		o["terminal_reason"] = reason
	}
	e.emit(o)
	e.results++
	e.flush()
}

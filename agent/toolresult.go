package agent

import (
	"errors"
	"strings"
)

// refusal writes the result of a call that was not let through.
func (l *Lane) refusal(c *call, g gate) {
	c.content = g.text
	if g.silent && g.plain != "" {
		structured := g.plain // as it is, if it says itself that it is an error
		if !strings.HasPrefix(structured, "Error") && !strings.HasPrefix(structured, "InputValidationError") {
			structured = "Error: " + structured
		}
		var meta Object
		if g.tagged && l.turn != nil {
			l.turn.denied(c)
			meta = Object{"id": c.ID, "permission_decision": decisionMeta("reject", g)}
		}
		l.resultFrame(c, g.text, true, structured, meta)
		return
	}
	if g.silent {
		l.resultFrame(c, g.text, true, "Error: "+g.text, nil)
		return
	}
	if l.turn != nil {
		l.turn.denied(c)
	}
	meta := Object{"id": c.ID, "non_execution_kind": "permission-rule"}
	if g.kind != "" {
		meta["non_execution_kind"] = g.kind
	}
	if g.source != "" {
		meta["permission_decision"] = decisionMeta("reject", g)
	}
	if g.interrupt {
		l.resultFrame(c, g.text, true, rejectedResult, Object{"id": c.ID, "non_execution_kind": "user-rejected"})
		return
	}
	l.resultFrame(c, g.text, true, "Error: "+g.text, meta)
}

// rejectRest answers the calls behind one whose refusal ends the turn: a real model's
// conversation has a result for each.
func (l *Lane) rejectRest(calls []*call) {
	if l.e.cfg.Live == nil {
		return
	}
	for _, c := range calls {
		l.resultFrame(c, rejectedText, true, rejectedResult, Object{"id": c.ID, "non_execution_kind": "user-rejected"})
	}
}

// rejectedResult is the tool_use_result of a call that the user has cut off.
const rejectedResult = "User rejected tool use"

// abortCall writes the result of a call that an interrupt, or the end of its
// task, cut off.
func (l *Lane) abortCall(c *call, err error) {
	if errors.Is(err, errAborted) && l.parent == "" && l.turn != nil {
		l.turn.cut = true
	}
	if l.own != nil {
		l.own.cut = true
	}
	switch {
	case errors.Is(err, errTerminated) && c.running:
		l.resultFrame(c, "Exit code 137", true, "Error: Exit code 137", nil)
	case errors.Is(err, errTerminated):
	case errors.Is(err, errAborted) && l.parent != "": // the parent's result says it
	case errors.Is(err, errAborted):
		text := rejectedText
		if !c.running && l.turn != nil {
			l.turn.denied(c)
		} else if l.e.cfg.Live != nil {
			text += stoppedText
		}
		l.resultFrame(c, text, true, rejectedResult,
			Object{"id": c.ID, "non_execution_kind": "user-rejected"})
	case errors.Is(err, errOver), errors.Is(err, errKilledTask):
	default:
		text := "<tool_use_error>Error: " + err.Error() + "</tool_use_error>"
		c.content = text
		l.resultFrame(c, text, true, "Error: "+err.Error(), nil)
	}
}

// toolResult writes the result of a call that ran.
func (l *Lane) toolResult(c *call, g gate, r ToolResult) {
	structured := r.Structured
	if structured == nil {
		structured = r.Content
		if text, ok := r.Content.(string); ok && r.IsError {
			structured = "Error: " + text
		} else if ok && c.Name == "Bash" {
			structured = Object{
				"stdout": text, "stderr": "", "interrupted": false, "isImage": false, "noOutputExpected": false,
			}
		}
	}
	c.content = r.Content
	if r.Content == nil {
		c.content = ""
	}
	l.resultFrame(c, c.content, r.IsError, structured, Object{
		"id": c.ID, "permission_decision": decisionMeta("accept", g),
	})
}

func decisionMeta(decision string, g gate) Object {
	o := Object{"decision": decision, "source": g.source}
	if g.source == "" {
		o["source"] = "config"
	}
	if g.reason != "" {
		o["reason_type"] = g.reason
	}
	return o
}

func (l *Lane) resultFrame(c *call, content any, isError bool, structured any, meta Object) {
	block := Object{"type": "tool_result", "tool_use_id": c.ID, "content": content}
	if _, text := content.(string); isError || c.Name == "Bash" && text {
		block["is_error"] = isError
	}
	o := Object{"message": Object{"role": "user", "content": []any{block}}}
	if l.e.cfg.Dialect != Qoder {
		if meta != nil {
			o["tool_result_meta"] = []any{meta}
		}
		o["tool_use_result"] = structured
	}
	l.userFrame(o)
}

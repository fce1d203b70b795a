package agent

// unchecked refuses a call that would need a check which this agent does not have, with the
// frames observed on Claude Code 2.1.329.
func (l *Lane) unchecked(c *call, g gate, text string) gate {
	g.refuse(text, "config", "classifier")
	g.kind = "automode-unavailable"
	note := Object{
		"content": "This session cannot check actions that are not known to be harmless, so they are refused. To run them, use another permission mode.",
		"isMeta":  false, "level": "warning", "tag": "auto_mode_no_server_check",
	}
	l.e.stamp(note)
	l.e.system("informational", note)
	l.reportDenial(c, g, Object{
		"decision_reason_type": "classifier", "decision_reason_code": "auto_mode_no_check_in_session", "decision_reason": "Classifier unavailable",
	})
	return g
}

// whose says which sub-agent of a real model makes a call.
func (l *Lane) whose() Object {
	if l.own == nil {
		return nil
	}
	return Object{"agent_id": l.agentID}
}

// reportDenial reports a call that was denied without asking the host.
func (l *Lane) reportDenial(c *call, g gate, more Object) {
	if l.e.cfg.Dialect != Qoder {
		l.e.system("permission_denied", Object{"tool_name": c.Name, "tool_use_id": c.ID, "message": g.text}.with(more).with(l.whose()))
	}
}

const outsideText = "Path is outside allowed working directories"

// wants is what a call is asked about, in words.
func (c *call) wants() string {
	if file := c.file(); file != "" && edits(c.Name) {
		return "write to " + file
	}
	return "use " + c.Name
}

package agent

// This file has the texts of hooks for a real model and for the person, in the words observed
// on Claude Code 2.1.329.

// hookName is an event as texts name it.
func hookName(event, subject string) string {
	if subject == "" {
		return event
	}
	return event + ":" + subject
}

// notesOf are what the model reads of a hook's answer. Its decision before a call is in the
// call's result.
func notesOf(event, subject string, a HookAnswer) (notes []string) {
	name := hookName(event, subject)
	if a.Decision == "block" && event != "PreToolUse" {
		notes = append(notes, name+` hook blocking error from command: "callback": `+a.Reason)
	}
	if text := a.Specific.AdditionalContext; text != "" {
		notes = append(notes, name+" hook additional context: "+text)
	}
	return notes
}

// remind has the model read notes, if there are any.
func (l *Lane) remind(notes []string) {
	if len(notes) > 0 && (l.parent == "" || l.own != nil) {
		l.Remind(notes...)
	}
}

// says shows the person what a hook says.
func (l *Lane) says(event, subject string, a HookAnswer) {
	if l.e.cfg.Live == nil || a.SystemMessage == "" {
		return
	}
	l.e.system("informational", Object{"content": hookName(event, subject) + " says: " + a.SystemMessage, "level": "notice"})
}

// noteUser keeps a user message for the model that the host does not see. It counts as one.
func (t *Turn) noteUser(text string) {
	t.recordUser(Object{
		"uuid":    t.e.ids.uuid(),
		"message": Object{"role": "user", "content": []any{Object{"type": "text", "text": text}}},
	})
	t.users++
}

// stopContext makes the turn continue if Stop hooks have added something for the model.
func (t *Turn) stopContext(answers []HookAnswer) (more bool) {
	if t.e.cfg.Live == nil {
		return false
	}
	for _, a := range answers {
		if text := a.Specific.AdditionalContext; text != "" {
			t.noteUser("<system-reminder>\nStop hook additional context: " + text + "\n</system-reminder>")
			more = true
		}
	}
	return more
}

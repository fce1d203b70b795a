package agent

import (
	"cmp"
	"strings"
	"time"
)

// Compaction is what takes the place of a conversation.
type Compaction struct {
	Summary string   // what the model reads in place of it
	Kept    []string // uuids of the lines that stay behind the summary, in their order; nil: none
	// Tokens of the conversation before and after, and those that this compaction and the
	// earlier ones have dropped.
	PreTokens, PostTokens, Dropped int
	More                           Object // further members of compactMetadata in the history
}

// CompactError says that a conversation was not compacted. Nothing of it has changed.
type CompactError struct {
	Reason string // too_few_groups, or in words
}

func (e *CompactError) Error() string { return "the conversation was not compacted: " + e.Reason }

// Compacts reports whether the turn's prompt is the command /compact, and what the user says of
// the summary.
func (t *Turn) Compacts() (instructions string, ok bool) { return t.msg.compacts() }

func (m *message) compacts() (instructions string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(m.prompt), "/compact")
	if !ok || m.origin != nil || rest != "" && strings.TrimSpace(rest[:1]) != "" {
		return "", false
	}
	return strings.TrimSpace(rest), true
}

// Compact replaces the conversation so far by what summarize returns. instructions are the
// user's, for the hooks. Hooks, frames and lines of the history are those observed on Claude Code
// 2.1.329: the history keeps what was before, and from the boundary on the model reads the
// summary and the lines that are kept. If it fails, all is as before. Of a sub-agent the host
// sees no frames.
func (l *Lane) Compact(manual bool, instructions string, summarize func() (*Compaction, error)) error {
	began, trigger := l.e.clock(), "auto"
	if manual {
		trigger = "manual"
	}
	l.compacting(Object{"status": "compacting"}, !manual)
	done, err := l.preCompact(trigger, instructions)
	var c *Compaction
	if err == nil {
		c, err = summarize()
	}
	var start []HookAnswer
	if err == nil {
		if start, err = l.Hook("SessionStart", "compact", Object{"source": "compact", "model": l.e.session.model}); err == nil {
			var after []HookAnswer
			after, err = l.Hook("PostCompact", trigger, Object{"trigger": trigger, "compact_summary": c.Summary})
			done = append(done, completed("PostCompact", after)...)
		}
	}
	if err == nil {
		err = l.s.scope.cause() // what was aborted stays as it was
	}
	if err != nil {
		reason := "interrupted"
		if l.s.scope.cause() == nil {
			reason = reasonOf(err)
		}
		l.compacting(Object{"status": nil, "compact_result": "failed", "compact_error": reason}, false)
		return err
	}
	l.compacted(c, trigger, max(l.e.clock()-began, 0))
	for _, a := range start {
		l.remind(notesOf("SessionStart", "compact", a))
	}
	if manual && l.turn != nil {
		l.turn.ranLocally("/compact", instructions, "Compacted "+strings.Join(done, "\n"))
	}
	return nil
}

// clock is the time since the start: that of the day, if there is one.
func (e *engine) clock() time.Duration {
	if e.cfg.Now != nil {
		return e.cfg.Now().Sub(epoch())
	}
	return e.now()
}

// preCompact asks the PreCompact hooks, which may prevent it. done are the words about them.
func (l *Lane) preCompact(trigger, instructions string) (done []string, err error) {
	input := Object{"trigger": trigger, "custom_instructions": nil}
	if instructions != "" {
		input["custom_instructions"] = instructions
	}
	answers, err := l.Hook("PreCompact", trigger, input)
	if err != nil {
		return nil, err
	}
	for _, a := range answers {
		if a.Decision == "block" || a.stops() {
			return nil, &CompactError{cmp.Or(a.Reason, a.StopReason, "a PreCompact hook has blocked it")}
		}
	}
	return completed("PreCompact", answers), nil
}

// completed are the words about hooks for the person.
func completed(event string, answers []HookAnswer) (words []string) {
	for range answers {
		words = append(words, event+" [callback] completed successfully")
	}
	return words
}

func reasonOf(err error) string {
	if c, ok := err.(*CompactError); ok { //nolint:errorlint // it is never wrapped
		return c.Reason
	}
	return err.Error()
}

// compacting writes a status of a compaction.
func (l *Lane) compacting(o Object, counts bool) {
	if counts { // how much of the summary is written
		o["compact_output_chars"] = 0
	}
	if l.parent == "" {
		l.e.system("status", o)
	}
}

// compacted writes the boundary and the summary to the history, and then their frames.
func (l *Lane) compacted(c *Compaction, trigger string, took time.Duration) {
	e := l.e
	boundary, anchor, before := e.ids.uuid(), e.ids.uuid(), ""
	th := l.thread()
	if th != nil {
		before = th.leaf
	}
	inLine := Object{
		"trigger": trigger, "preTokens": c.PreTokens, "postTokens": c.PostTokens, "cumulativeDroppedTokens": c.Dropped, "durationMs": took.Milliseconds(),
	}.with(c.More)
	inFrame := Object{
		"trigger": trigger, "pre_tokens": c.PreTokens, "post_tokens": c.PostTokens, "cumulative_dropped_tokens": c.Dropped, "duration_ms": took.Milliseconds(),
	}
	if n := len(c.Kept); n > 0 {
		inLine["preservedSegment"] = Object{"headUuid": c.Kept[0], "anchorUuid": anchor, "tailUuid": c.Kept[n-1]}
		inLine["preservedMessages"] = Object{"anchorUuid": anchor, "uuids": c.Kept, "allUuids": c.Kept}
		inFrame["preserved_segment"] = Object{"head_uuid": c.Kept[0], "anchor_uuid": anchor, "tail_uuid": c.Kept[n-1]}
		inFrame["preserved_messages"] = Object{"anchor_uuid": anchor, "uuids": c.Kept, "all_uuids": c.Kept}
	}
	message, frame := Object{"role": "user", "content": c.Summary}, Object{"isReplay": false}
	if trigger == "auto" {
		message["content"], frame = []any{Object{"type": "text", "text": c.Summary}}, Object{}
	}
	if th != nil && e.keeps() {
		th.leaf = ""
		l.record(Object{
			"type": "system", "subtype": "compact_boundary", "uuid": boundary, "logicalParentUuid": orNull(before),
			"content": "Conversation compacted", "isMeta": false, "level": "info", "compactMetadata": inLine,
		})
		l.record(Object{
			"type": "user", "uuid": anchor, "promptId": e.session.prompt, "isCompactSummary": true, "isVisibleInTranscriptOnly": true, "message": message,
		})
	}
	l.compacting(Object{"status": nil, "compact_result": "success"}, false)
	if l.parent != "" {
		return
	}
	if l.turn != nil {
		l.turn.Open()
		if trigger == "auto" {
			l.turn.users++
		}
	}
	e.system("compact_boundary", Object{"uuid": boundary, "compact_metadata": inFrame, "logical_parent_uuid": orNull(before)})
	o := frame.with(Object{"type": "user", "uuid": anchor, "parent_tool_use_id": nil, "isSynthetic": true, "message": message})
	e.stamp(o)
	e.emit(o)
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// localCaveat is what the model reads before a command of the user's (observed on Claude Code
// 2.1.329).
const localCaveat = "<local-command-caveat>The command below was run directly in Claude Code, not sent to you as a request, and its output goes straight to the user. It's recorded here as context for later messages.</local-command-caveat>"

// isLocal reports whether a line is about a command of the user's, which no model answers.
func isLocal(text string) bool {
	return strings.HasPrefix(text, "<local-command-") || strings.HasPrefix(text, "<command-name>")
}

// ranLocally keeps a command of the user's and what it said, and shows that.
func (t *Turn) ranLocally(command, args, output string) {
	e := t.e
	line := func(uuid, text string, more Object) {
		if e.keeps() {
			e.record(Object{
				"type": "user", "uuid": uuid, "promptId": e.session.prompt, "message": Object{"role": "user", "content": text},
			}.with(more))
		}
	}
	line(e.ids.uuid(), localCaveat, Object{"isMeta": true})
	line(cmp.Or(t.msg.uuid, e.ids.uuid()), "<command-name>"+command+"</command-name>\n            <command-message>"+strings.TrimPrefix(command, "/")+
		"</command-message>\n            <command-args>"+args+"</command-args>", nil)
	output = "<local-command-stdout>" + output + "</local-command-stdout>"
	uuid := e.ids.uuid()
	line(uuid, output, nil)
	o := Object{
		"type": "user", "uuid": uuid, "parent_tool_use_id": nil, "isReplay": true, "message": Object{"role": "user", "content": output},
	}
	e.stamp(o)
	e.emit(o)
}

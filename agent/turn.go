package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
)

// Turn is one turn: from a user message, or the end of a background task, to the result.
type Turn struct {
	*Lane

	id         string
	msg        *message
	injected   []*message // lines that joined the turn while it ran
	calls      int        // model calls of the main lane
	users      int        // user frames written: num_turns less one
	denials    []any
	spoke      bool // an assistant frame was written
	streamed   bool // an event of the model's stream was written
	finished   bool
	opened     bool            // system/init was written
	stopActive bool            // a Stop hook has blocked once
	cut        bool            // an interrupt met an open tool call
	continues  bool            // it is the rest of one that an earlier life has begun
	apiError   bool            // the result is an error of a real model's API, or of its structured output
	output     json.RawMessage // the structured output; nil before it is given
}

var (
	errMaxTurns = errors.New("agent: turn limit reached")
	errBudget   = errors.New("agent: budget spent")
)

// Prompt returns the text that the turn answers.
func (t *Turn) Prompt() string { return t.msg.prompt }

// Content returns the content of the user message as the host wrote it; nil if no user
// message started the turn.
func (t *Turn) Content() json.RawMessage { return t.msg.content }

// MessageUUID returns the uuid of the message that the turn answers; "" if it has no uuid.
func (t *Turn) MessageUUID() string { return t.msg.uuid }

// Index returns the turn's number in this process of the agent, from 0.
func (t *Turn) Index() int { return t.e.results }

// Task returns the background task whose end started the turn; nil if the host started
// it.
func (t *Turn) Task() *Task { return t.msg.origin }

// Continues reports whether the turn is the rest of one that an earlier life of the agent has begun:
// the model is asked what it was asked then ([Live.Continues]).
func (t *Turn) Continues() bool { return t.continues }

func (t *Turn) denied(c *call) {
	name := c.Name
	if name == "Agent" && t.e.cfg.Live != nil {
		name = "Task" // as observed
	}
	t.denials = append(t.denials, Object{"tool_name": name, "tool_use_id": c.ID, "tool_input": c.Input})
}

// runTurn starts the strand of a turn.
func (e *engine) runTurn(msg *message) {
	t := &Turn{id: e.ids.uuid(), msg: msg}
	t.Lane = &Lane{e: e, scope: &scope{}, turn: t}
	e.turn = t
	t.s = e.spawn(t.scope, func(*Strand) {
		t.end(t.play())
		t.close()
	})
}

// play is the turn up to its result.
func (t *Turn) play() error {
	e := t.e
	if err := t.s.wait(-1, e.connected); err != nil {
		return err
	}
	if err := t.adoptTools(); err != nil {
		return err
	}
	e.session.prompt = e.ids.uuid()
	e.setStateOnce("running")
	_, compact := t.Compacts()
	t.continues = !compact && e.continues(t.msg)
	var answers []HookAnswer
	if t.msg.query && !compact { // a command, or a line for the history, is not a prompt
		var err error
		if answers, err = t.Hook("UserPromptSubmit", "", Object{"prompt": t.msg.prompt}); err != nil {
			return err
		}
	}
	if !compact { // which opens when it is done
		t.Open()
	}
	for _, a := range answers {
		if a.Decision == "block" || a.stops() {
			return t.blocked(a)
		}
	}
	switch {
	case t.continues:
		e.mem.cut = false
	case compact && t.msg.query && e.cfg.Live != nil: // its lines follow, behind the boundary
		e.mend(t.msg)
	default:
		e.recordPrompt(t.msg)
	}
	for _, a := range answers {
		if !t.continues { // the model was asked with what hooks had to add
			t.remind(notesOf("UserPromptSubmit", "", a))
		}
	}
	if err := t.stored(false); err != nil {
		return err
	}
	switch {
	case !t.msg.query:
		return t.Finish(Result{Text: Say(""), Local: true})
	case t.msg.origin != nil && t.msg.origin.then != nil:
		return t.msg.origin.then(t)
	case e.cfg.Turn == nil:
		return t.Text(t.msg.prompt)
	}
	return e.cfg.Turn(t)
}

// Open writes the first messages of a turn, once: system/init if the dialect writes it in
// every turn, and the echo of the user message.
func (t *Turn) Open() {
	if t.opened {
		return
	}
	t.opened = true
	if t.e.tr.initEachTurn {
		t.e.initFrame(t.msg)
	}
	t.e.replay(t.msg)
}

// blocked is a prompt that a UserPromptSubmit hook refused: no model call.
func (t *Turn) blocked(a HookAnswer) error {
	reason := cmp.Or(a.Reason, a.StopReason)
	text := "UserPromptSubmit operation blocked by hook:\n" + reason + "\n\nOriginal prompt: " + t.msg.prompt
	t.e.system("informational", Object{
		"content": text, "level": "warning", "prevent_continuation": true,
		"prompt_submit_outcome": Object{"kind": "blocked_by_hook", "prompt_kept": false, "reason": reason},
	})
	return t.Finish(Result{Text: Say(text), Local: true})
}

// end writes the result that err calls for, unless there is one already.
func (t *Turn) end(err error) {
	var x *ExitError
	switch {
	case errors.As(err, &x):
		t.e.flush()
		t.e.quit(x.Exit)
	case errors.Is(err, errOver), errors.Is(err, errTerminated), t.finished:
	case err == nil:
		if err := t.Finish(Result{}); err != nil {
			t.end(err)
		}
	case errors.Is(err, errAborted):
		t.aborted()
	case errors.Is(err, errHookStopped):
		t.write(Result{Text: Say(""), StopReason: "tool_use", TerminalReason: "hook_stopped"})
	case errors.Is(err, errDeferred):
		c := t.deferred
		t.write(Result{Text: Say(""), StopReason: "tool_deferred", TerminalReason: "tool_deferred", More: Object{
			"deferred_tool_use": Object{"id": c.ID, "name": c.Name, "input": c.Input},
		}})
	case errors.Is(err, errMaxTurns):
		t.write(Result{
			Subtype: "error_max_turns", StopReason: cmp.Or(t.lastStop, "tool_use"), TerminalReason: "max_turns",
			Errors: []string{"Reached maximum number of turns (" + t.e.flags.last("max-turns") + ")"},
		})
	case errors.Is(err, errBudget):
		t.write(Result{
			Subtype: "error_max_budget_usd", StopReason: cmp.Or(t.lastStop, "tool_use"), TerminalReason: "budget_exhausted",
			Errors: []string{"Reached maximum budget ($" + t.e.flags.last("max-budget-usd") + ")"},
		})
	default:
		t.write(Result{Subtype: "error_during_execution", Errors: []string{err.Error()}})
	}
}

// aborted is the end of a turn the host interrupted.
func (t *Turn) aborted() {
	note, stop, terminal := "[Request interrupted by user]", "", "aborted_streaming"
	if t.cut || t.halted {
		note, stop, terminal = "[Request interrupted by user for tool use]", "tool_use", "aborted_tools"
	}
	t.recordBlocks("")
	if t.e.cfg.Live != nil && t.e.keeps() {
		t.e.answerOpen() // calls that were not made, or that an earlier life has left: a text comes behind results
	}
	t.UserText(note, nil)
	said := cmp.Or(stop, "null")
	t.message = ""
	t.write(Result{
		Subtype: "error_during_execution", StopReason: stop, TerminalReason: terminal,
		Errors: []string{"[ede_diagnostic] result_type=user last_content_type=n/a stop_reason=" + said},
	})
}

// Finish ends the turn with r. If r is a success, Stop hooks are called before the result
// is written. The turn function may continue after Finish.
func (t *Turn) Finish(r Result) error {
	if t.finished {
		return nil
	}
	t.endMessage("end_turn")
	for !r.Local && r.success() && !t.failed(r) {
		again, err := t.stopHooks()
		if err != nil {
			return err
		}
		if !again {
			break
		}
		t.endMessage("end_turn")
	}
	t.write(r)
	return t.s.scope.cause()
}

// failed reports whether r is an error of a real model's API: no Stop hook is called then.
func (t *Turn) failed(r Result) bool {
	return t.e.cfg.Live != nil && r.success() && r.IsError != nil && *r.IsError
}

// stopHooks asks the Stop hooks; a block makes the turn continue.
func (t *Turn) stopHooks() (again bool, err error) {
	answers, err := t.Hook("Stop", "", Object{
		"stop_hook_active": t.stopActive, "last_assistant_message": t.lastText,
		"background_tasks": t.e.taskList(), "session_crons": []any{},
	})
	if err != nil {
		return false, err
	}
	i := slices.IndexFunc(answers, func(a HookAnswer) bool { return a.Decision == "block" })
	if i < 0 && !t.stopContext(answers) {
		return false, nil
	}
	t.stopActive = true
	if i < 0 {
		return true, t.e.cfg.Continue(t, "")
	}
	reason := answers[i].Reason
	t.UserText("Stop hook feedback:\n"+reason, Object{"isSynthetic": true})
	t.remind([]string{`Stop:Callback hook blocking error from command: "callback": ` + reason})
	t.stopContext(answers)
	t.e.system("notification", Object{
		"key": "stop-hook-error", "text": "stop hook problem · ctrl+o to see", "priority": "immediate",
	})
	if t.e.cfg.Continue != nil {
		return true, t.e.cfg.Continue(t, reason)
	}
	return true, t.Text("Going on: " + reason)
}

// close is what follows the result: the states, and the next turn.
func (t *Turn) close() {
	e := t.e
	e.turn = nil
	if errors.Is(t.scope.err, errTerminated) {
		return
	}
	state := "completed"
	if errors.Is(t.scope.err, errAborted) || t.halted || t.apiError {
		state = "cancelled"
	}
	e.lifecycle(t.msg, state)
	if len(e.inbox) == 0 {
		e.rest()
	}
	if e.leaving {
		e.inbox = nil
		return
	}
	if e.idle() {
		e.setStateOnce("idle")
	}
}

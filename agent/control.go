package agent

import (
	"encoding/json"
	"strings"
)

// Request is a control request of the host.
type Request struct {
	ID      string
	Subtype string
	Body    json.RawMessage // the request member

	e *Engine
}

// Succeed answers with body; nil answers without one.
func (r *Request) Succeed(body any) { r.succeed(body, nil) }

// succeedBeside answers with body and more members next to it.
func (r *Request) succeedBeside(body any, beside Object) { r.succeed(body, beside) }

func (r *Request) succeed(body any, beside Object) {
	o := Object{"subtype": "success", "request_id": r.ID}
	if body != nil {
		o["response"] = body
	}
	r.e.send(Object{"type": "control_response", "response": o.with(beside)})
}

// Fail answers with an error. code may be empty.
func (r *Request) Fail(text, code string) {
	o := Object{"subtype": "error", "request_id": r.ID, "error": text}
	if code != "" {
		o[r.e.tr.codeKey] = code
	}
	r.e.send(Object{"type": "control_response", "response": o})
}

// Later runs fn on a strand of its own: for answers that come late.
func (r *Request) Later(fn func(*Strand)) { r.e.spawn(nil, fn) }

// Serve does what the engine does with the request.
func (r *Request) Serve() { r.e.serve(r) }

// Cancelled reports whether the host has taken the request back.
func (r *Request) Cancelled() bool { return r.e.host.cancelled[r.ID] }

// control takes a control request. One without an id cannot be answered.
func (e *Engine) control(in inLine) {
	if in.RequestID == "" || len(in.Request) == 0 {
		return
	}
	var kind struct {
		Subtype string `json:"subtype"`
		Type    string `json:"type"`
	}
	if json.Unmarshal(in.Request, &kind) != nil {
		return
	}
	if kind.Subtype == "" && e.cfg.Dialect == Qoder { // either names it there; subtype wins
		kind.Subtype = kind.Type
		if kind.Subtype == "" {
			return
		}
	}
	r := &Request{ID: in.RequestID, Subtype: kind.Subtype, Body: in.Request, e: e}
	if e.cfg.Control != nil && e.cfg.Control(r) {
		return
	}
	e.serve(r)
}

// params is the union of what requests carry that the engine reads.
type params struct {
	Mode         string                     `json:"mode"`
	Model        *string                    `json:"model"`
	TaskID       string                     `json:"task_id"`
	ToolUseID    string                     `json:"tool_use_id"`
	ServerName   string                     `json:"serverName"`
	Enabled      bool                       `json:"enabled"`
	Servers      map[string]json.RawMessage `json:"servers"`
	MessageUUID  string                     `json:"message_uuid"`
	UserMessage  string                     `json:"user_message_id"`
	DryRun       bool                       `json:"dry_run"`
	CancelQueued bool                       `json:"cancel_queued"`
	Path         string                     `json:"path"`
	Active       bool                       `json:"active"`
}

// serve answers a control request the way the CLI was seen to.
func (e *Engine) serve(r *Request) {
	var in params
	if err := json.Unmarshal(r.Body, &in); err != nil {
		r.Fail("invalid "+r.Subtype+" request: "+err.Error(), "invalid_request")
		return
	}
	switch r.Subtype {
	case "initialize":
		e.initialize(r)
	case "interrupt":
		e.serveInterrupt(r, in.CancelQueued)
	case "set_permission_mode":
		e.setMode(r, in.Mode)
	case "set_model":
		e.setModel(r, in.Model)
	case "stop_task":
		stopped := e.stopTask(in.TaskID)
		r.Succeed(Object{})
		if stopped && e.idle() {
			e.setState("idle")
		}
	case "mcp_status":
		e.mcpStatus(r)
	case "mcp_set_servers":
		e.setServers(r, in.Servers)
	case "mcp_toggle", "mcp_reconnect":
		e.reconnect(r, in.ServerName, r.Subtype == "mcp_reconnect" || in.Enabled)
	case "cancel_async_message":
		r.Succeed(Object{"cancelled": len(e.dropQueued(in.MessageUUID)) > 0})
	case "read_file":
		e.readFile(r, in.Path)
	case "rewind_files":
		e.rewind(r)
	default:
		if answer, ok := e.document(r.Subtype, in); ok {
			r.Succeed(answer)
			return
		}
		e.unsupported(r)
	}
}

func (e *Engine) unsupported(r *Request) {
	if e.cfg.Dialect == Qoder {
		r.Fail(`Unsupported control request type: "`+r.Subtype+`"`, "")
		return
	}
	r.Fail("Unsupported control request subtype: "+r.Subtype, "unsupported_request")
}

// serveInterrupt stops the turn. What was asked is taken back before the
// answer, what the turn still writes comes after it, as observed.
func (e *Engine) serveInterrupt(r *Request, cancelQueued bool) {
	answer := Object{}
	if cancelQueued {
		answer["cancelled"] = e.dropQueued("")
	}
	answer["still_queued"] = e.queued()
	if e.turn != nil {
		e.withdrawAll(e.turn.scope)
	}
	r.Succeed(answer)
	e.interrupt()
}

// interrupt ends the turn that runs.
func (e *Engine) interrupt() {
	if e.turn == nil || e.turn.scope.err != nil {
		return
	}
	e.withdrawAll(e.turn.scope)
	if e.state == "requires_action" {
		e.setState("running")
	}
	e.turn.scope.err = ErrAborted
}

func (e *Engine) setMode(r *Request, mode string) {
	switch {
	case !validMode(mode) && e.cfg.Dialect == Qoder:
		r.Fail("unknown permission_mode: "+mode, "")
		return
	case !validMode(mode):
		r.Fail("Cannot set permission mode: must be one of acceptEdits, auto, bypassPermissions, default, dontAsk, plan", "invalid_mode")
		return
	case mode == "bypassPermissions" && !e.perms.mayBypass && e.cfg.Dialect != Qoder:
		r.Fail("Cannot set permission mode to bypassPermissions because the session was not launched with --dangerously-skip-permissions", "bypass_not_launched")
		return
	}
	if !e.tr.modeReplies {
		e.perms.change(e, mode)
		r.Succeed(nil)
		return
	}
	r.Succeed(Object{"mode": mode})
	e.perms.change(e, mode)
}

func (e *Engine) setModel(r *Request, model *string) {
	e.session.model = e.tr.model
	if model != nil && *model != "" {
		e.session.model = *model
	}
	if e.tr.commandEcho {
		e.emit(Object{
			"type": "user", "parent_tool_use_id": nil, "isReplay": true,
			"message": Object{
				"role":    "user",
				"content": "<local-command-stdout>Set model to `" + e.session.model + "`</local-command-stdout>",
			},
		})
	}
	if !e.tr.modeReplies {
		r.Succeed(nil)
		return
	}
	r.Succeed(Object{"model": e.session.model})
}

// readFile has nothing to read, and refuses what lies outside the working
// directory.
func (e *Engine) readFile(r *Request, path string) {
	if strings.HasPrefix(path, "/") && !strings.HasPrefix(path, e.session.cwd+"/") {
		r.Fail("read denied: "+path, "")
		return
	}
	r.Succeed(Object{"contents": "", "absPath": path, "lossy": false, "requested_path": path})
}

func (e *Engine) rewind(r *Request) {
	if e.cfg.Dialect == Qoder {
		var in params
		_ = json.Unmarshal(r.Body, &in) // serve has read it before
		r.Succeed(Object{"canRewind": false, "error": "no snapshot found for message " + in.UserMessage})
		return
	}
	r.Fail("No file checkpoint found for this message.", "")
}

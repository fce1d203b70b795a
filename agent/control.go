package agent

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
)

// Request is a control request of the host.
type Request struct {
	ID      string          // request id
	Subtype string          // such as interrupt
	Body    json.RawMessage // the request member

	e     *engine
	frame protocol.Frame
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

// SessionID returns the session's id.
func (r *Request) SessionID() string { return r.e.session.id }

// Later runs fn on a new strand, which can answer the request later.
func (r *Request) Later(fn func(*Strand)) { r.e.spawn(nil, fn) }

// Serve handles the request as the engine does by default.
func (r *Request) Serve() { r.e.serve(r) }

// Model is the session's model, as the options and set_model say.
func (r *Request) Model() string { return r.e.session.model }

// Cancelled reports whether the host has cancelled the request.
func (r *Request) Cancelled() bool { return r.e.host.cancelled[r.ID] }

// control takes a control request. One without an id cannot be answered.
func (e *engine) control(f protocol.Frame) {
	if f.RequestID == "" || f.Subtype == "" {
		return
	}
	r := &Request{ID: f.RequestID, Subtype: f.Subtype, Body: f.Body(), e: e, frame: f}
	if e.cfg.Control != nil && e.cfg.Control(r) {
		return
	}
	e.serve(r)
}

// serve answers a control request the way the CLI was seen to.
func (e *engine) serve(r *Request) {
	request, err := protocol.DecodeHostRequest(r.frame)
	if err != nil {
		r.Fail("invalid "+r.Subtype+" request: "+err.Error(), "invalid_request")
		return
	}
	switch in := request.(type) {
	case *protocol.InitializeRequest:
		e.initialize(r, in)
	case *protocol.InterruptRequest:
		e.serveInterrupt(r, in.CancelQueued)
	case *protocol.SetPermissionModeRequest:
		e.setMode(r, string(in.Mode))
	case *protocol.SetModelRequest:
		e.setModel(r, in.Model)
	case *protocol.StopTaskRequest:
		stopped := e.stopTask(in.TaskID)
		r.Succeed(Object{})
		if stopped && e.idle() {
			e.setState("idle")
		}
	case *protocol.MCPStatusRequest:
		e.mcpStatus(r)
	case *protocol.MCPSetServersRequest:
		e.setServers(r, in.Servers)
	case *protocol.MCPToggleRequest:
		e.reconnect(r, in.ServerName, in.Enabled)
	case *protocol.MCPReconnectRequest:
		e.reconnect(r, in.ServerName, true)
	case *protocol.CancelAsyncMessageRequest:
		r.Succeed(Object{"cancelled": len(e.dropQueued(in.MessageUUID)) > 0})
	case *protocol.ReadFileRequest:
		e.readFile(r, in.Path)
	case *protocol.RewindFilesRequest:
		e.rewind(r, in.UserMessageID)
	default:
		if off := e.switchedOff(r.Subtype); off != "" {
			r.Fail(off+" is not enabled for this session", "")
			return
		}
		if e.serveMCP(r, request) {
			return
		}
		if answer, ok := e.document(request); ok {
			r.Succeed(answer)
			return
		}
		e.unsupported(r)
	}
}

// switchedOff names what a request of Qoder needs, if that is off.
func (e *engine) switchedOff(subtype string) string {
	switch {
	case e.cfg.Dialect != Qoder:
	case (subtype == "flush_memory" || subtype == "refresh_memory") && e.host.memory == nil:
		return "SDK memory"
	case subtype == "flush_skill_evolution" && e.host.evolution == nil:
		return "SDK skill evolution"
	}
	return ""
}

func (e *engine) unsupported(r *Request) {
	if e.cfg.Dialect == Qoder {
		r.Fail(`Unsupported control request type: "`+r.Subtype+`"`, "")
		return
	}
	r.Fail("Unsupported control request subtype: "+r.Subtype, "unsupported_request")
}

// serveInterrupt stops the turn. Open requests are cancelled before the answer, and the
// turn's last output comes after it, as observed.
func (e *engine) serveInterrupt(r *Request, cancelQueued bool) {
	e.ensureTurn()
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

// ensureTurn starts the turn of a line that was begun but still waits for what
// came with it, so that an interrupt finds it.
func (e *engine) ensureTurn() {
	if e.turn == nil && len(e.inbox) > 0 && e.inbox[0].started {
		e.startTurn()
	}
}

// interrupt ends the turn that runs.
func (e *engine) interrupt() {
	e.ensureTurn()
	if e.turn == nil || e.turn.scope.err != nil {
		return
	}
	e.withdrawAll(e.turn.scope)
	if e.state == "requires_action" {
		e.setState("running")
	}
	e.turn.scope.err = errAborted
}

func (e *engine) setMode(r *Request, mode string) {
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

func (e *engine) setModel(r *Request, model *string) {
	e.session.model = cmp.Or(e.cfg.Model, e.tr.model)
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
func (e *engine) readFile(r *Request, path string) {
	if strings.HasPrefix(path, "/") && !strings.HasPrefix(path, e.session.cwd+"/") {
		r.Fail("read denied: "+path, "")
		return
	}
	r.Succeed(Object{"contents": "", "absPath": path, "lossy": false, "requested_path": path})
}

func (e *engine) rewind(r *Request, id string) {
	if e.cfg.Dialect == Qoder {
		r.Succeed(Object{"canRewind": false, "error": "no snapshot found for message " + id})
		return
	}
	r.Fail("No file checkpoint found for this message.", "")
}

package acpagent_test

import (
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
)

// never is longer than a recording takes.
const never = 30 * time.Second

// background is how long a background task takes: longer than the turn that begins it.
const background = 400 * time.Millisecond

// scriptOf is the script of an agent that does what the model and the tools of a recording did.
// Each prompt of the recording is a turn.
func scriptOf(recording []*recorded) *scripted.Script {
	s := &scripted.Script{Transcript: true, Initialize: map[string]any{"models": modelsOf(recording), "commands": commandsOf(recording)}}
	first := ""
	for i, r := range recording {
		if !r.request() || r.Method != acp.MethodSessionPrompt {
			continue
		}
		session := text(r.Params, "sessionId")
		if first == "" {
			first = session
		}
		if session == first && runs(recording, i) { // other sessions play the same script
			s.Turns = append(s.Turns, scripted.Turn{Steps: stepsOf(recording, i)})
		}
	}
	s.Resumed = s.Turns
	if died := slices.IndexFunc(s.Turns, dies); died >= 0 {
		s.Resumed = s.Turns[died+1:]
	}
	return s
}

// runs: the prompt in the n-th line reached the agent.
func runs(recording []*recorded, n int) bool {
	answer := answerOf(recording, string(recording[n].ID))
	if answer == nil {
		return true
	}
	if before := openBefore(recording, n, text(recording[n].Params, "sessionId")); before != nil && slices.Index(recording, before) > slices.Index(recording, answer) {
		return false // it was cancelled before its turn
	}
	o, _ := answer.Error.(object)
	code, _ := o["code"].(float64)
	return code != float64(acp.CodeInvalidParams) && code != float64(acp.CodeResourceNotFound)
}

// dies: the agent dies in the turn.
func dies(t scripted.Turn) bool {
	for _, step := range t.Steps {
		if _, ok := step.(*scripted.Exit); ok {
			return true
		}
	}
	return false
}

// stepsOf are the steps of the turn that the n-th line asks for.
func stepsOf(recording []*recorded, n int) scripted.Steps {
	p := &played{calls: map[string]*call{}, asked: map[string]object{}}
	session, id := text(recording[n].Params, "sessionId"), string(recording[n].ID)
	p.answer = answerOf(recording, id)
	end := len(recording)
	for i := n + 1; i < end; i++ {
		r := recording[i]
		switch {
		case r.request() && r.Method == acp.MethodSessionPrompt && text(r.Params, "sessionId") == session && p.answer != nil && slices.Index(recording, p.answer) < i:
			end = i // what follows belongs to the next prompt
		case !r.fromClient() && r.Method == "" && string(r.ID) == id:
			p.over = true
		case r.Method == acp.MethodSessionRequestPermission && text(r.Params, "sessionId") == session:
			p.asked[text(r.Params, "toolCall", "toolCallId")] = r.Params
		case r.Method == acp.MethodElicitationCreate:
			p.form = true
		case r.Method == acp.MethodSessionUpdate && text(r.Params, "sessionId") == session:
			if before := openBefore(recording, n, session); before != nil && slices.Index(recording, before) > i {
				continue // of the prompt before
			}
			u, _ := r.Params["update"].(object)
			p.update(u)
		}
	}
	return p.steps()
}

// openBefore is the answer of the prompt of the session that was open when the n-th line was
// written; nil: none was.
func openBefore(recording []*recorded, n int, session string) (answer *recorded) {
	for i, r := range recording[:n] {
		if r.request() && r.Method == acp.MethodSessionPrompt && text(r.Params, "sessionId") == session {
			if a := answerOf(recording, string(r.ID)); a != nil && slices.Index(recording, a) > max(i, n) {
				answer = a
			}
		}
	}
	return answer
}

func answerOf(recording []*recorded, id string) *recorded {
	i := slices.IndexFunc(recording, func(r *recorded) bool { return !r.fromClient() && r.Method == "" && string(r.ID) == id })
	if i < 0 {
		return nil
	}
	return recording[i]
}

// played collects what happened in a turn.
type played struct {
	events  []*event // of the turn
	later   []*event // of the turn that the agent began itself afterwards
	calls   map[string]*call
	asked   map[string]object // parameters of permission requests, by the call
	answer  *recorded         // nil: there was none
	form    bool              // the agent showed a form
	over    bool              // the prompt is answered
	counted bool              // the turn has its cost, so it is over
}

// event is a text or a call.
type event struct {
	step   scripted.Step
	id     string // of the message, if it is a text
	chunks []string
	call   *call
}

// call is a tool call.
type call struct {
	id, name, parent string
	input            map[string]any
	output           any // rawOutput
	shown            string
	structured       map[string]any
	failed, ended    bool
	begun, end       int // how many calls had ended
	inner            []*call
}

func (p *played) add(e *event) {
	if p.over || p.counted {
		p.later = append(p.later, e)
		return
	}
	p.events = append(p.events, e)
}

// update takes an update.
func (p *played) update(u object) {
	switch text(u, "sessionUpdate") {
	case "agent_message_chunk", "agent_thought_chunk":
		p.chunk(u)
	case "tool_call", "tool_call_update":
		p.tool(u)
	case "plan":
		if todos := todosOf(u); len(todos) > 0 {
			p.add(&event{step: &scripted.ToolUse{Name: "TodoWrite", Gate: agent.GateAllow, Input: map[string]any{"todos": todos}}})
		}
	case "usage_update":
		p.counted = p.counted || u["cost"] != nil
	}
}

func todosOf(u object) (todos []any) {
	entries, _ := u["entries"].([]any)
	for _, e := range entries {
		todos = append(todos, map[string]any{"content": text(e, "content"), "activeForm": text(e, "content"), "status": text(e, "status")})
	}
	return todos
}

func (p *played) chunk(u object) {
	words, id := text(u, "content", "text"), text(u, "messageId")
	list := &p.events
	if p.over || p.counted {
		list = &p.later
	}
	last := &event{}
	if n := len(*list); n > 0 {
		last = (*list)[n-1]
	}
	switch {
	case text(u, "sessionUpdate") == "agent_thought_chunk":
		p.add(&event{step: scripted.Thinking(words)})
	case text(u, "_meta", "claudeCode", "kind") == "informational":
		p.add(&event{step: &scripted.System{Subtype: "informational", Fields: map[string]any{
			"content": strings.TrimPrefix(words, "**Notice:** "), "level": text(u, "_meta", "claudeCode", "level"),
		}}})
	case last.chunks != nil && last.id == id:
		last.chunks = append(last.chunks, words)
	case last.chunks != nil && !strings.HasPrefix(id, "msg_"): // the adapter repeats what a command wrote
	default:
		p.add(&event{id: id, chunks: []string{words}})
	}
}

func (p *played) tool(u object) {
	id := text(u, "toolCallId")
	c := p.calls[id]
	if c == nil {
		c = &call{id: id, name: text(u, "name"), parent: text(u, "_meta", "claudeCode", "parentToolUseId"), begun: p.ended()}
		p.calls[id] = c
		if outer := p.calls[c.parent]; outer != nil {
			outer.inner = append(outer.inner, c)
		} else {
			p.add(&event{call: c})
		}
	}
	if input, _ := u["rawInput"].(object); len(input) > 0 {
		c.input = input
	}
	if u["rawOutput"] != nil {
		c.output = u["rawOutput"]
	}
	if response, _ := u["_meta"].(object)["claudeCode"].(object)["toolResponse"].(object); response != nil {
		c.structured = response
	}
	switch text(u, "status") {
	case "completed", "failed":
		c.failed, c.end, c.ended = text(u, "status") == "failed", p.ended(), true
		c.shown = ""
		if blocks, _ := u["content"].([]any); len(blocks) > 0 {
			for _, b := range blocks {
				c.shown += text(b, "content", "text")
			}
		}
	}
}

// ended is how many calls have ended.
func (p *played) ended() (n int) {
	for _, c := range p.calls {
		if c.ended {
			n++
		}
	}
	return n
}

// modelsOf are the models of a recording, as Claude Code reports them. A recording that was
// shortened has those of the others.
func modelsOf(recording []*recorded) (out []any) {
	for _, r := range recording {
		options, _ := optionOf(r, "model")["options"].([]any)
		for _, o := range options {
			out = append(out, map[string]any{"value": text(o, "value"), "displayName": text(o, "name"), "description": text(o, "description"), "supportsAutoMode": true})
		}
		if out != nil {
			return out
		}
	}
	return []any{map[string]any{"value": "default", "displayName": "Default (recommended)", "description": "Opus", "supportsAutoMode": true}}
}

// optionOf is a configuration option in a result or an update; nil if it is not there.
func optionOf(r *recorded, id string) object {
	update, _ := r.Params["update"].(object)
	result, _ := r.Result.(object)
	for _, from := range []object{result, update} {
		options, _ := from["configOptions"].([]any)
		for _, o := range options {
			if text(o, "id") == id {
				return o.(object)
			}
		}
	}
	return nil
}

// commandsOf are the commands of the first list of a recording, as far as it has them.
func commandsOf(recording []*recorded) []any {
	out := []any{}
	for _, r := range recording {
		update, _ := r.Params["update"].(object)
		commands, _ := update["availableCommands"].([]any)
		for _, c := range commands {
			if c, ok := c.(object); ok {
				out = append(out, map[string]any{"name": c["name"], "description": c["description"], "argumentHint": text(c, "input", "hint")})
			}
		}
		if len(out) > 0 {
			break
		}
	}
	return out
}

// isChunk: the agent wrote a piece of text.
func isChunk(r *recorded) bool {
	return r.Method == acp.MethodSessionUpdate && text(r.Params, "update", "sessionUpdate") == "agent_message_chunk"
}

// doubled is how many chunks the adapter wrote twice: what commands wrote.
func doubled(recording []*recorded) (n int) {
	for i, r := range recording[1:] {
		if id := text(r.Params, "update", "messageId"); isChunk(r) && isChunk(recording[i]) && id != "" && !strings.HasPrefix(id, "msg_") {
			n++
		}
	}
	return n
}

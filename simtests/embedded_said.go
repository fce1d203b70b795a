package simtests

import (
	"cmp"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
)

// textIn is the text of a result; "": it has blocks, or nothing.
func textIn(content json.RawMessage) (text string) {
	_ = json.Unmarshal(content, &text) // blocks are not a text
	return text
}

// sameJSON reports whether two texts are the same value.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// calls checks that a tool of the host's MCP servers may be called now.
func (m *mind) calls(id string, arguments json.RawMessage) {
	m.effect(func(u *use) bool {
		return u.id == id && strings.HasPrefix(u.name, "mcp__") && sameJSON([]byte(u.input), arguments)
	}, "calls a tool of the host's with "+string(arguments), "mcp\x00"+id+"\x00"+string(arguments))
	m.moment()
}

// calledBy checks that a tool of an MCP server of the options may be called now.
func (m *mind) calledBy(name string, arguments json.RawMessage) {
	m.effect(func(u *use) bool {
		return strings.HasPrefix(u.name, "mcp__") && strings.HasSuffix(u.name, "__"+name) && u.results == 0 && sameJSON([]byte(u.input), arguments)
	}, "calls the tool "+name+" of a server with "+string(arguments), "server\x00"+name+"\x00"+string(arguments))
	m.moment()
}

// quotes checks that a block of an answer is one that the model has given in it: a text may be
// a part, if the answer broke off. mu is held.
func (m *mind) quotes(in *frame, b *blockIn) []string {
	a := m.w.loops.answers[numberIn(in.Message.ID)]
	if a == nil || !a.sound || len(a.said) == 0 {
		return nil
	}
	found := slices.ContainsFunc(a.said, func(s model.Block) bool {
		switch b.Type {
		case "text":
			return s.Kind == model.Text && (b.Text == s.Text || !a.whole && strings.HasPrefix(s.Text, b.Text))
		case "tool_use":
			return s.Kind == model.ToolUse && s.Name == b.Name && has(b.Input, s.Input)
		}
		return true
	})
	if !found {
		return []string{fmt.Sprintf("said: %s writes a block of the answer %s that the model has not given: %s %s%s %s", m.lane, in.Message.ID, b.Type, b.Text, b.Name, b.Input)}
	}
	return nil
}

// labels checks what the frame of a call says of the tool: of one of an MCP server its name for people.
func (m *mind) labels(in *frame, b *blockIn) []string {
	remote := b.Type == "tool_use" && strings.HasPrefix(b.Name, "mcp__")
	if named := len(in.Meta) == 1 && in.Meta[0].ID == b.ID && in.Meta[0].Name != ""; named != remote || len(in.Meta) > 1 {
		return []string{fmt.Sprintf("said: %s says %v of the block %s %s", m.lane, in.Meta, b.Type, b.Name)}
	}
	return nil
}

// has reports whether an input has the members of another one: the agent adds defaults.
func has(input, other json.RawMessage) bool {
	var all, some map[string]json.RawMessage
	if json.Unmarshal(other, &some) != nil || json.Unmarshal(input, &all) != nil {
		return true // the model did not give an object
	}
	for name, v := range some {
		if !sameJSON(all[name], v) {
			return false
		}
	}
	return true
}

// prints checks that the result of a command has what the command printed; mu is held.
func (m *mind) prints(u *use, b *blockIn) []string {
	const most = 1000 // bytes: a longer output may be shortened
	text := textIn(b.Content)
	if _, replaced := m.hooking.replaced[u.id]; b.IsError || text == "" || u.background || len(u.also) > 0 || replaced {
		return nil
	}
	for _, p := range m.procs {
		plain := !strings.ContainsFunc(p.output, func(r rune) bool { return r < ' ' && r != '\n' })
		if p.use == u && p.gone && p.status.Signal == "" && len(p.output) < most && plain && !strings.Contains(text, strings.TrimSpace(p.output)) {
			return []string{fmt.Sprintf("said: the result of the call %s has not what its command printed, %q: %.300q", u.id, p.output, text)}
		}
	}
	return nil
}

// chooses checks the model of a request: the session's own one, or a fallback, to which a turn changes when a
// request has failed. mu is held.
func (m *mind) chooses(r *modeltest.Request, agent string) string {
	before := m.asking[agent]
	m.asking[agent] = r.Model
	f := m.tally.fails[r.User]
	failed := f != nil && f.last != nil && !f.last.whole
	switch {
	case m.own == "" || agent != "": // a kind of sub-agents may have another model
	case before == "" && r.Model != m.own:
		return fmt.Sprintf("limits: request %d of %s, the first of a turn, asks %s, and its model is %s", r.N, r.User, r.Model, m.own)
	case before != "" && r.Model != before && !failed:
		return fmt.Sprintf("limits: request %d of %s asks %s, and the one before has not failed, which asked %s", r.N, r.User, r.Model, before)
	case !m.fallback && r.Model != m.own:
		return fmt.Sprintf("limits: request %d of %s asks %s, and its model is %s", r.N, r.User, r.Model, m.own)
	}
	return ""
}

// repeats checks that the model reads the results that the host has read.
func (m *mind) repeats(r *modeltest.Request) {
	m.w.mu.Lock()
	var wrong []string
	for _, b := range r.Results() {
		told := m.told[b.ID]
		if len(told) > 0 && b.Text != "" && !slices.ContainsFunc(told, func(text string) bool { return text == "" || strings.Contains(b.Text, text) }) {
			wrong = append(wrong, fmt.Sprintf("said: request %d has another result of the call %s than the host has read: %.200q, and it was %.200q", r.N, b.ID, b.Text, told))
		}
	}
	m.w.mu.Unlock()
	for _, text := range wrong {
		m.w.Errorf("%s", text)
	}
}

// paced checks a request that repeats the one before, since its answer failed: that its time
// has come, and that there are not too many. mu is held.
func (m *mind) paced(r *modeltest.Request, repeats bool) (wrong string) {
	if !repeats {
		delete(m.again, r.User)
		return ""
	}
	m.again[r.User]++
	most := cmp.Or(m.e.Config.Retries, embeddedRetries)
	most = max(most, 0) + atOnce
	switch early := m.soonest[r.User].Sub(m.w.sched.Now()); {
	case m.again[r.User] > most:
		return fmt.Sprintf("limits: request %d of %s repeats the one before for the %dth time, and %d are allowed", r.N, m.lane, m.again[r.User], most)
	case early > 0:
		return fmt.Sprintf("limits: request %d of %s comes %v before the time that the model had said", r.N, m.lane, early)
	}
	return ""
}

const (
	embeddedRetries = 10 // the default of embedded.Config.Retries
	atOnce          = 4  // requests that are repeated in addition, without a wait
)

package simtests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/agent"
)

// onDisk is the disk of the agent: it fails as the world wants.
func (m *mind) onDisk(op, path string) error {
	if op != "read" || !strings.HasPrefix(path, m.dir) { // the host reads sessions that have ended
		m.alive(op + "s " + filepath.Base(path))
	}
	m.moment()
	switch {
	case op == "sync" && strings.HasSuffix(path, ".jsonl"):
		if err := m.w.diskFails(op, path); err != nil {
			return err
		}
		info, err := os.Stat(path)
		if err == nil {
			m.w.mu.Lock()
			m.w.loops.synced[path] = int(info.Size())
			m.w.mu.Unlock()
		}
		return nil
	case op == "sync" && strings.HasPrefix(path, m.dir):
		if err := m.w.diskFails(op, path); err != nil {
			return err
		}
		names, _ := filepath.Glob(filepath.Join(path, "*.jsonl")) // the pattern is right
		m.w.mu.Lock()
		for _, name := range names {
			m.w.loops.named[name] = true
		}
		m.w.mu.Unlock()
		return nil
	case op == "sync" || op == "write" && strings.Contains(path, ".tmp."):
		m.w.mu.Lock()
		m.parts[path] = op == "sync"
		m.w.mu.Unlock()
	case op == "read" && strings.HasPrefix(path, m.cwd):
		content, _ := os.ReadFile(path) // the tool says it
		m.w.mu.Lock()
		m.reads[path] = string(content)
		m.w.mu.Unlock()
	}
	if op == "rename" && strings.HasPrefix(path, m.cwd) && !m.restores(path) {
		w := m.w
		chosen := m.changer(path)
		u := m.effect(func(u *use) bool { return u == chosen }, "changes "+filepath.Base(path), path+"\x00"+chosen.input)
		if u != nil {
			w.note(Event{Kind: "effect", Lane: w.sched.running(), What: u.name + " " + filepath.Base(path)})
			m.overwrites(u, path)
		}
	}
	return m.w.diskFails(op, path)
}

// printsFile is a command that prints a file.
var printsFile = regexp.MustCompile(`^cat ([a-z.]+)( #.*)?$`)

// overwrites checks a change of a file that others may have changed since the model has read
// it.
func (m *mind) overwrites(u *use, path string) {
	there, err := os.ReadFile(path)
	next, synced := "", false
	w := m.w
	w.mu.Lock()
	if parts, _ := filepath.Glob(path + ".tmp.*"); len(parts) == 1 {
		content, _ := os.ReadFile(parts[0]) // it was written just now
		next, synced = string(content), m.parts[parts[0]]
	}
	before, read := m.known[u.agent+path] // each sub-agent has read other files
	// The model is taken to know what a command has made of a file that it wrote itself.
	stale := err == nil && read && string(there) != before && !m.ours[u.agent+path]
	unread := err == nil && !read && m.first && !m.doubled && !m.names(path)
	u.stale = stale
	m.known[u.agent+path], m.ours[u.agent+path] = next, false
	lane := m.lane
	w.mu.Unlock()
	if !synced {
		w.Errorf("recorded: %s gives a new content the name %s, and a loss of power would lose it", lane, filepath.Base(path))
	}
	if unread {
		w.Errorf("stale: %s writes over %s, which the model has not read", lane, filepath.Base(path))
	}
	if !stale {
		return
	}
	if u.name == "Write" {
		w.Errorf("stale: %s writes over %s, which was changed since the model has read it", lane, filepath.Base(path))
	}
	for line := range strings.Lines(string(there)) {
		if !strings.Contains(before, line) && !strings.Contains(next, line) {
			w.Errorf("stale: an edit of %s drops from %s what others have written: %q", lane, filepath.Base(path), line)
		}
	}
}

// printed is the file that a command prints; "": none.
func (m *mind) printed(u *use) string {
	cat := printsFile.FindStringSubmatch(u.command)
	if cat == nil || u.name != "Bash" {
		return ""
	}
	return filepath.Join(m.cwd, cat[1])
}

// names reports whether a command that has run names a file, and may have shown it; mu is held.
func (m *mind) names(path string) bool {
	return slices.ContainsFunc(m.order, func(id string) bool {
		u := m.uses[id]
		return u != nil && strings.Contains(u.command, filepath.Base(path))
	})
}

// shows takes what the model gets to know of a file by the result of a call, and checks that
// an edit of a file that others have changed says so; mu is held.
func (m *mind) shows(u *use, b *blockIn) []string {
	if path := m.printed(u); path != "" && !b.IsError && !u.background && len(u.also) == 0 {
		if content, read := m.reads[path]; read {
			m.known[u.agent+path], m.ours[u.agent+path] = content, false // as if the model had written it
		}
	}
	_, known := m.known[u.agent+u.path]
	switch {
	case b.IsError && known && len(u.also) == 0 && bytes.Contains(b.Content, []byte("File has not been read yet")):
		return []string{fmt.Sprintf("stale: the call %s is refused since the model has not read %s, and it has", u.id, filepath.Base(u.path))}
	case b.IsError || u.path == "":
	case u.name == "Read":
		if content, read := m.reads[u.path]; read { // none has, if a gate refused the call and another with its id had a result
			m.known[u.agent+u.path] = content
			delete(m.ours, u.agent+u.path)
		}
	case u.stale && !m.doubled && m.hooking.replaced[u.id] == "" && !bytes.Contains(b.Content, []byte("modified on disk")):
		return []string{fmt.Sprintf("stale: the result of the edit %s does not say that others have changed the file", u.id)}
	}
	return nil
}

// changer is the call that changes a file: among those that may, and that sub-agents may make at the
// same time, one that has not done so, and whose text is in the new content.
func (m *mind) changer(path string) *use {
	next := ""
	if parts, _ := filepath.Glob(path + ".tmp.*"); len(parts) == 1 { // the pattern is right
		content, _ := os.ReadFile(parts[0]) // it was written just now
		next = string(content)
	}
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	found := &use{}
	for _, id := range slices.Backward(m.order) {
		u := m.uses[id]
		if u == nil || u.results > len(u.also) {
			continue
		}
		for _, o := range slices.Concat([]*use{u}, u.also, u.changed) {
			switch {
			case o.path != path || o.name != "Write" && o.name != "Edit":
			case u.ran <= len(u.also) && strings.Contains(next, o.gives):
				return o
			case found.path == "":
				found = o
			}
		}
	}
	return found
}

// stored is what the file of a session has.
type stored struct {
	read          int // bytes of the file
	durable       int // of them, those that survive a loss of power
	uuids         map[string]bool
	uses, results map[string]int
	held          map[string]bool // lines with the calls whose results they have
	edges         int             // compactions, and times that results were left out
	edge          string          // a boundary whose summary has not come
	closed        map[string]bool // lines behind an answer that ends a turn
	ends          map[string]int  // where the line of a call ends, the last one of its id
	wrong         []string        // what is wrong with its lines
}

// lasts reports whether the record of a call survives a loss of power.
func (l *stored) lasts(id string) bool { return l.ends[id] <= l.durable }

// durable is how much of a session's file survives a loss of power; mu is held.
func (ms *minds) durable(name string) int {
	if !ms.named[name] {
		return 0
	}
	return ms.synced[name]
}

// conversation is the name of a session's conversation, or of that of its sub-agent, as the agent
// gives it to the model.
func conversation(session, agent string) string {
	if agent == "" {
		return session
	}
	return session + "-" + agent
}

// sessionOf is the session of a conversation, and the sub-agent; "": it is the session's own.
func sessionOf(conversation string) (session, agent string) {
	const id = len("00000000-0000-4000-8000-000000000000")
	if len(conversation) <= id {
		return conversation, ""
	}
	return conversation[:id], conversation[id+1:]
}

// log reads the file of a conversation.
func (m *mind) log(conversation string) *stored {
	session, of := sessionOf(conversation)
	name := filepath.Join(m.dir, filepath.FromSlash(agent.SessionFile(m.cwd, session)))
	if of != "" {
		name = filepath.Join(strings.TrimSuffix(name, ".jsonl"), "subagents", "agent-"+of+".jsonl")
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return &stored{}
	}
	m.w.mu.Lock()
	defer m.w.mu.Unlock()
	l := m.logs[name]
	if l == nil || l.read > len(content) {
		l = &stored{uuids: make(map[string]bool), uses: make(map[string]int), held: make(map[string]bool), closed: make(map[string]bool), results: make(map[string]int), ends: make(map[string]int)}
		m.logs[name] = l
	}
	l.durable = m.w.loops.durable(name)
	whole := content[:bytes.LastIndexByte(content, '\n')+1]
	at := min(l.read, len(whole))
	more := whole[at:]
	l.read = len(whole)
	for line := range bytes.Lines(more) {
		at += len(line)
		var in frame
		if json.Unmarshal(line, &in) != nil {
			continue // cut off by a death
		}
		if in.UUID == "" {
			continue // about the session
		}
		switch {
		case l.uuids[in.UUID]:
			l.wrong = append(l.wrong, "the line "+in.UUID+" is there twice")
		case in.Before != "" && !l.uuids[in.Before] && !m.w.happened(faultDisk):
			l.wrong = append(l.wrong, "the line "+in.UUID+" follows one that is not there")
		}
		if in.Message.Model == "<synthetic>" && l.closed[in.Before] && bytes.Contains(in.Message.Content, []byte("No response requested.")) {
			l.wrong = append(l.wrong, "the line "+in.UUID+" mends a turn that has ended")
		}
		l.uuids[in.UUID] = true
		l.closed[in.UUID] = in.Type == "assistant" && in.Message.Stop == "end_turn" || in.Type == "attachment" && l.closed[in.Before]
		l.passes(&in)
		for _, b := range blocksIn(in.Message.Content) {
			switch b.Type {
			case "tool_use":
				l.uses[b.ID]++
				l.ends[b.ID] = at
			case "tool_result":
				l.results[b.ToolUse]++
				l.held[in.UUID+" "+b.ToolUse] = true
			}
		}
	}
	return l
}

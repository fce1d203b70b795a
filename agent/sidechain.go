package agent

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"strings"
	"time"
)

// sidechain is the conversation of a real model's sub-agent: its file, what it has used, and
// what it may spend.
type sidechain struct {
	thread
	e       *engine
	up      *sidechain // of the sub-agent that has started it; nil: the main conversation
	id      string     // of the sub-agent
	task    *Task
	depth   int           // 1: the main conversation has started it
	model   string        // "": the session's
	cwd     func() string // in which its next call begins; nil: the session's
	history History       // of the file, or nil if it is not kept
	failed  error         // why lines are not stored; nil: all are
	lost    []json.RawMessage

	share, spent float64   // in US dollars, with what its own sub-agents have spent
	last         Object    // the usage of its last answer
	calls        int       // of tools
	began        time.Time // zero: the time of day is not known
	blocked      bool      // a hook has blocked its end
	cut          bool      // a call was cut off
}

// thread is the conversation of the lane; nil for a scripted sub-agent.
func (l *Lane) thread() *thread {
	switch {
	case l.own != nil:
		return &l.own.thread
	case l.parent != "":
		return nil
	}
	return &l.e.mem.thread
}

// record adds a line to the conversation of the lane.
func (l *Lane) record(o Object) {
	if l.own == nil {
		l.e.record(o)
		return
	}
	if line := l.e.lineOf(&l.own.thread, o, Object{"isSidechain": true, "agentId": l.own.id, "promptId": l.e.session.prompt}); line != nil {
		l.own.append(line)
	}
}

// append stores a line.
func (c *sidechain) append(line []byte) {
	if c.history == nil || c.e.exit != nil {
		return
	}
	path := c.e.agentFile(c.id)
	err := c.history.Append(path, line)
	c.lost = append(c.lost, bytes.TrimSuffix(line, []byte{'\n'}))
	if err != nil {
		if c.failed == nil {
			c.e.stderr("agent: a sub-agent's conversation cannot be kept: " + err.Error())
		}
		c.failed = err
		return
	}
	c.failed = nil // it has stored the earlier lines, too
	if c.e.flags.has("session-mirror") {
		c.e.send(Object{"type": "transcript_mirror", "filePath": c.e.configDir() + "/" + path, "entries": c.lost})
	}
	c.lost = nil
}

// sync makes durable what was stored. It is called as a task.
func (c *sidechain) sync() error {
	if h, ok := c.history.(Syncer); ok {
		return h.Sync()
	}
	return nil
}

// AgentFile is the path of the file of a sub-agent's conversation, below the directory of
// sessions.
func (l *Lane) AgentFile(id string) string { return l.e.agentFile(id) }

// used notes what an answer has used.
func (l *Lane) used(usage Object) {
	if l.own != nil {
		l.own.last = usage
	}
}

// tokens are those of the last answer, as the host sees them.
func (c *sidechain) tokens() (n int) {
	for _, name := range []string{"input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"} {
		some, _ := c.last[name].(int)
		n += some
	}
	return n
}

// took is how long the sub-agent works.
func (c *sidechain) took() time.Duration {
	if c.began.IsZero() {
		return 0
	}
	return c.e.cfg.Now().Sub(c.began)
}

func (c *sidechain) usage() Object {
	return Object{"total_tokens": c.tokens(), "tool_uses": c.calls, "duration_ms": c.took().Milliseconds()}
}

// progress reports that a real model's sub-agent makes a call.
func (l *Lane) progress(c *call) {
	if l.own == nil {
		return
	}
	l.own.calls++
	l.e.system("task_progress", Object{
		"task_id": l.task.ID, "run_id": l.task.RunID, "tool_use_id": l.task.toolUseID, "description": l.e.doing(c),
		"subagent_type": l.agentType, "last_tool_name": c.Name, "usage": l.own.usage(),
	})
}

// doing is what people read of a call, as observed on Claude Code 2.1.329.
func (e *engine) doing(c *call) string {
	what, _ := c.Input["description"].(string)
	file, _ := c.Input["file_path"].(string)
	file = strings.TrimPrefix(file, e.session.cwd+"/")
	switch {
	case c.Name == "Agent" && what != "":
		return what
	case c.Name == "Read" && file != "":
		return "Reading " + file
	case c.Name == "Write" && file != "":
		return "Writing " + file
	case c.Name == "Edit" && file != "":
		return "Editing " + file
	}
	return "Running " + cmp.Or(what, c.Name)
}

// left is what may still be spent, but for what running sub-agents may; ok is false if there
// is no limit. A sub-agent gets half of it, so that who has started it can continue.
func (l *Lane) left() (dollars float64, ok bool) {
	limit := l.e.flags.number("max-budget-usd")
	if limit <= 0 {
		return 0, false
	}
	dollars = limit - l.e.spent
	if l.own != nil {
		dollars = min(dollars, l.own.share-l.own.spent)
	}
	for _, c := range l.e.sidechains {
		if c.up == l.own {
			dollars -= max(c.share-c.spent, 0)
		}
	}
	return dollars, true
}

// errShare ends a sub-agent.
var errShare = errors.New("its share of the budget is spent")

func (l *Lane) budgetError() error {
	if l.own != nil {
		return errShare
	}
	return errBudget
}

// Mirror gives the host an entry for its copy of the sub-agent's file.
func (l *Lane) Mirror(entry Object) {
	if l.own != nil && l.e.flags.has("session-mirror") {
		l.e.send(Object{"type": "transcript_mirror", "filePath": l.e.configDir() + "/" + l.e.agentFile(l.own.id), "entries": []any{entry}})
	}
}

// MayStart reports whether there is money for a sub-agent.
func (l *Lane) MayStart() bool {
	dollars, limited := l.left()
	return !limited || dollars > 0
}

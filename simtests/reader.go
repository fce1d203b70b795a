package simtests

import (
	"bytes"
	"encoding/json"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// clientProgram is a client with its agent.
type clientProgram struct {
	client  *sdk.Client
	program *program
}

// content is a line of an agent's that its user reads.
type content struct {
	line    string // its label in the trace: the lines of a long history would fill the memory
	partial bool   // it may be dropped without a reader
	whole   bool   // all of it was written
}

// Read reads all messages of a client until its session or the world ends, as a program
// does that loops over [sdk.Client.Messages], and returns the error of the loop. each is
// called with every message; nil is allowed. The messages are held against what the agent
// wrote (ordered-lossless): none is missing, repeated or out of order. [ConsumerStalls] and
// [ConsumerLeaves] happen here.
func (w *World) Read(c *sdk.Client, each func(protocol.Message)) error {
	w.mu.Lock()
	var p *program
	for _, o := range w.programs {
		if o.client == c {
			p = o.program
		}
	}
	if p == nil {
		w.mu.Unlock()
		w.Errorf("Read: the client was not made by World.Open or World.Dial")
		return nil
	}
	p.readers++
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		p.readers--
	}()
	for m, err := range c.Messages(w.ctx) {
		if err != nil {
			return err
		}
		if raw := m.Raw(); raw != nil { // else it is Troupe's own
			p.reads(raw)
		}
		if each != nil {
			each(m)
		}
		if hit := w.strike(laneScenario, "", faultConsumerStall); hit != nil {
			w.Sleep(hit.d)
		}
		if w.strike(laneScenario, "", faultConsumerLeaves) != nil {
			return nil
		}
	}
	p.readAll()
	return nil
}

// writes notes a line that the agent is about to write; nil if the user never reads it.
func (p *program) writes(line []byte) *content {
	line = bytes.TrimSpace(line)
	f, err := protocol.ParseFrame(line)
	if err != nil || f.Type == "" || p.maxLine > 0 && len(line) > p.maxLine {
		return nil
	}
	switch f.Type {
	case "control_request", "control_response", "control_cancel_request", "keep_alive", "transcript_mirror":
		return nil
	}
	c := &content{line: label(f), partial: f.Type == "stream_event"}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.wrote = append(p.wrote, c)
	return c
}

// reads compares a message with the agent's lines. A reader begins at the first line
// that fits: another reader may have read before it.
func (p *program) reads(raw json.RawMessage) {
	f, _ := protocol.ParseFrame(raw) // an agent's line was one
	line := label(f)
	p.w.mu.Lock()
	first := p.read == 0
	i := p.read
	missing := ""
	for ; i < len(p.wrote) && p.wrote[i].line != line; i++ {
		if c := p.wrote[i]; !first && c.whole && !c.partial && missing == "" {
			missing = c.line
		}
	}
	found := i < len(p.wrote)
	if found {
		p.read = i + 1
	}
	p.w.mu.Unlock()
	switch {
	case !found:
		p.w.Errorf("ordered-lossless: the user read a message that the agent did not write there, or that was read before: %.200s", raw)
	case missing != "":
		p.w.Errorf("ordered-lossless: the user read %.200s, and never what came before it: %s", raw, missing)
	}
}

// readAll checks for unread messages when the session was closed in order and the loop
// has ended.
func (p *program) readAll() {
	p.w.mu.Lock()
	missing := ""
	for i := p.read; p.ended && i < len(p.wrote) && missing == ""; i++ {
		if c := p.wrote[i]; c.whole && !c.partial {
			missing = c.line
		}
	}
	p.w.mu.Unlock()
	if missing != "" {
		p.w.Errorf("ordered-lossless: the session has ended, and the user never read %s", missing)
	}
}

// user holds a user message that the host writes against sent-once.
func (p *program) user(line []byte) {
	var m struct {
		UUID string `json:"uuid"`
	}
	if json.Unmarshal(line, &m) != nil || m.UUID == "" {
		return
	}
	p.w.mu.Lock()
	before := p.sent[m.UUID]
	p.sent[m.UUID] = p.started
	p.w.mu.Unlock()
	if before > 0 && (before == p.started || p.AgentDialect() != agent.Claude) {
		p.w.Errorf("sent-once: the user message %s was written to process %d and to process %d; the agent may have begun with the first", m.UUID, before, p.started)
	}
}

// stalled looks for sessions whose reader waits for messages while the session waits for
// a reader, and for those that wait longer for one than Limits.Consumer.
func (w *World) stalled() {
	w.mu.Lock()
	all := w.programs
	w.mu.Unlock()
	for _, o := range all {
		w.mu.Lock()
		readers := o.program.readers
		w.mu.Unlock()
		switch {
		case o.client.State() != session.StateAwaitingConsumer:
		case readers > 0:
			w.Errorf("credit: a session waits for somebody who reads, and its reader waits for messages")
		case o.program.consumer > 0:
			w.Errorf("liveness: a session waits for somebody who reads longer than Limits.Consumer, %v", o.program.consumer)
		}
	}
}

// restarted looks for sessions with more processes than MaxRestarts allows. It does so at
// the end, when all events are known: the process after a passivation is not a restart.
func (w *World) restarted() {
	w.mu.Lock()
	all := w.programs
	w.mu.Unlock()
	for _, o := range all {
		w.mu.Lock()
		p := o.program
		started, allowed := p.started-p.begun, 1+p.restarts+p.rested
		w.mu.Unlock()
		if started > allowed {
			w.Errorf("restarts: a session with MaxRestarts %d had %d processes, and was passivated %d times", p.restarts, started, p.rested)
		}
	}
}

// rests counts how often the session of a program is passivated.
func (p *program) rests(o *sdk.Options) {
	tell := o.OnEvent
	o.OnEvent = func(r session.EventRecord) {
		if e, ok := r.Event.(*session.StateChanged); ok && e.To == session.StatePassivated.String() {
			p.w.mu.Lock()
			p.rested++
			p.w.mu.Unlock()
		}
		if tell != nil {
			tell(r)
		}
	}
}

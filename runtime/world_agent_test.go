package runtime_test

import (
	"bytes"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
)

// Agent plays a script. The world knows whether it lives, what it wrote, and
// which side effects its tools had.
func (w *world) Agent(s *scripted.Script) agent.Program {
	return program{scripted.New(scripted.WithScript(s), scripted.WithEffect(func(_, line string) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.history.effects = append(w.history.effects, line)
		w.note("effect %s", line)
		return nil
	})), w}
}

type program struct {
	agent.Program
	w *world
}

func (p program) Serve(l agent.Launch, port agent.Port) agent.Exit {
	p.w.count(1)
	defer p.w.count(-1)
	return p.Program.Serve(l, &recorder{Port: port, w: p.w})
}

func (w *world) count(n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.living += n
	w.ever += max(n, 0)
}

// recorder keeps the lines that an agent writes.
type recorder struct {
	agent.Port
	w    *world
	rest []byte
}

func (r *recorder) Write(b []byte) error {
	if err := r.Port.Write(b); err != nil {
		return err
	}
	r.rest = append(r.rest, b...)
	for {
		line, rest, whole := bytes.Cut(r.rest, []byte("\n"))
		if !whole {
			return nil
		}
		r.w.said(string(line))
		r.rest = rest
	}
}

func (w *world) said(line string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.note("agent %s", line)
	if w.Mute {
		return
	}
	if f, err := protocol.ParseFrame([]byte(line)); err == nil && !strings.HasPrefix(f.Type, "control_") {
		w.history.wrote = append(w.history.wrote, line)
	}
}

// Agents is how many live, and how many were ever started.
func (w *world) Agents() (living, ever int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.living, w.ever
}

// Effects are the side effects of the agents' tools.
func (w *world) Effects() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.history.effects)
}

// Wrote is the content that agents wrote, a line each.
func (w *world) Wrote() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.history.wrote)
}

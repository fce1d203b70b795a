package simtests

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// Event is a line of a trace.
type Event struct {
	At time.Duration `json:"at"` // virtual time since the world began, in nanoseconds
	// Kind is message (an actor handles one), agent and host (a line on the wire, by
	// who wrote it), state, event, callback, fault, crash, effect, note or failure.
	Kind string `json:"kind"`
	Lane string `json:"lane"`           // the actor, agent or session it belongs to
	From string `json:"from,omitempty"` // the lane it comes from
	What string `json:"what"`
	Text string `json:"text,omitempty"` // what it carries; in kept traces alone
}

// line is the event as it counts for the equality of histories.
func (e Event) line() string {
	return fmt.Sprintf("%d %s %s %s %s", e.At, e.Kind, e.Lane, e.From, e.What)
}

// note adds an event to the trace.
func (w *World) note(e Event) {
	e.At = w.Elapsed()
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = fmt.Fprintf(w.hash, "%d %s %s %s %s\n", e.At, e.Kind, e.Lane, e.From, e.What)
	if w.full {
		w.events = append(w.events, e)
	}
}

// onMessage is told of each message of each actor, and may kill the actor.
func (w *World) onMessage(actor string, m any, at kernel.Moment) bool {
	if at == kernel.BeforeMessage {
		e := Event{Kind: "message", Lane: actor, What: fmt.Sprintf("%T", m)}
		if w.full {
			e.Text = shown(m)
		}
		w.note(e)
	}
	return w.killed(actor, m, at)
}

// maxText bounds what a trace shows of a message, in bytes.
const maxText = 2000

func shown(m any) string {
	text := fmt.Sprintf("%+v", m)
	if b, err := json.Marshal(m); err == nil && string(b) != "{}" {
		text = string(b)
	}
	return text[:min(len(text), maxText)]
}

// writeTrace writes the trace of a history as JSON lines and as a page.
func writeTrace(dir, test string, h history, o outcome) ([]string, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, err
	}
	name := strings.NewReplacer("/", "_", " ", "_").Replace(test) + fmt.Sprintf("-%d", h.Seed)
	var lines strings.Builder
	for _, e := range o.events {
		b, err := json.Marshal(e)
		if err != nil {
			return nil, err
		}
		lines.Write(b)
		lines.WriteByte('\n')
	}
	jsonl, page := filepath.Join(dir, name+".jsonl"), filepath.Join(dir, name+".html")
	if err := os.WriteFile(jsonl, []byte(lines.String()), 0o600); err != nil {
		return nil, err
	}
	if err := os.WriteFile(page, timeline(test, h, o), 0o600); err != nil {
		return nil, err
	}
	return []string{jsonl, page}, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// exitTask ends the calling task with its deferred functions.
func exitTask() { runtime.Goexit() }

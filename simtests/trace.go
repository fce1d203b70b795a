package simtests

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// Event is a line of a trace.
//
// A lane is the path of an actor ("ID#1" is the first incarnation of the actor of
// session ID, "ID#1/router#2" the second of its router), the id of a session, an agent
// process ("agent#1", in order of their starts), "host" (Troupe's end of an agent's
// pipes), "callbacks", "scenario" (the user's code), or "world" (the end of the
// history). As the sender of a message it may also be "timer" (a timer of Troupe's) or
// "task" (what Troupe does outside of actors, such as to read a pipe).
type Event struct {
	// At is the virtual time since the world began, in nanoseconds.
	At time.Duration `json:"at"`
	// Kind is one of
	//	message   an actor handles a message; again if a second incarnation has to
	//	actor     an incarnation starts, or has stopped
	//	crash     an actor failed
	//	agent     an agent wrote a line on the wire
	//	host      an agent read a line that the host wrote
	//	effect    a tool of an agent's had its side effect
	//	state     a session has a new state
	//	event     any other event of a session
	//	callback  a callback of the user's is called
	//	fault     a fault happens; the name is that of reports
	//	note      a line of World.Note, or the start or end of an agent
	//	failure   the history failed here
	Kind string `json:"kind"`
	// Lane is where it happens: of a message or a line, who receives it.
	Lane string `json:"lane"`
	// From is the lane of the sender of a message or a line. Empty: unknown, which
	// messages are that were sent to an actor before its first incarnation.
	From string `json:"from,omitempty"`
	// The type of a message or an event, the type, length in bytes and sum of a line,
	// the new state, or a text.
	What string `json:"what"`
	// Text is what it carries, at most 2,000 bytes.
	Text string `json:"text,omitempty"`
	// Sent is the virtual time at which a message was sent, in nanoseconds.
	Sent time.Duration `json:"sent,omitempty"`
	// After is the number of the last event before a message was sent; the first line
	// of a trace is number 1. A sender that is an actor sent it while it handled that
	// event or an earlier one of its lane.
	After int `json:"after,omitempty"`
}

// line is the event as it counts for the equality of histories.
func (e Event) line() string { return string(e.append(nil)) }

// append adds the line to b.
func (e Event) append(b []byte) []byte {
	b = strconv.AppendInt(b, int64(e.At), 10)
	for _, s := range [...]string{e.Kind, e.Lane, e.From, e.What} {
		b = append(append(b, ' '), s...)
	}
	return b
}

// copyNames are the names of copies of checkpoints: hashes of the files' paths.
var copyNames = regexp.MustCompile(`[0-9a-f]{16}@v`)

// placeless is a text with a name in place of the world's directory, which differs in each
// run.
func (w *World) placeless(text []byte) []byte {
	if w.dir == "" {
		return text
	}
	folder := strings.ReplaceAll(w.dir, "/", "-") // as in the names of sessions' files
	text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte(w.dir), []byte("/world")), []byte(folder), []byte("-world"))
	return copyNames.ReplaceAll(text, []byte("copy@v"))
}

// note adds an event to the trace.
func (w *World) note(e Event) {
	e.At = w.Elapsed()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.count++
	if w.dir != "" {
		e.What = string(w.placeless([]byte(e.What)))
	}
	w.scratch = append(e.append(w.scratch[:0]), '\n')
	_, _ = w.hash.Write(w.scratch) // never fails
	if w.full {
		w.events = append(w.events, e)
	}
}

// onMessage sees each message of each actor, and may kill the actor. The baton knows
// the actor by its path, where the kernel says its name.
func (w *World) onMessage(_ string, m any, at kernel.Moment) bool {
	actor := w.sched.running()
	switch at {
	case kernel.BeforeMessage:
		o := w.sched.received()
		e := Event{Kind: "message", Lane: actor, From: o.lane, What: reflect.TypeOf(m).String(), Sent: o.at, After: o.after}
		if w.full {
			e.Text = shown(m)
		}
		w.note(e)
	case kernel.AfterMessage:
		w.sched.handled()
	case kernel.AfterEffect, kernel.InStep:
	}
	return w.killed(actor, m, at)
}

// writeTrace writes the trace of a history as JSON lines and as a page.
func writeTrace(dir, test string, h history, o outcome) ([]string, error) {
	if err := os.MkdirAll(dir, 0o750); err != nil {
		return nil, fmt.Errorf("simtests: make the directory of -sim.trace: %w", err)
	}
	name := strings.NewReplacer("/", "_", " ", "_").Replace(test) + fmt.Sprintf("-%d", h.Seed)
	var lines strings.Builder
	for _, e := range o.events {
		b, err := json.Marshal(e)
		if err != nil {
			return nil, fmt.Errorf("simtests: write the trace: %w", err)
		}
		lines.Write(b)
		lines.WriteByte('\n')
	}
	page, err := timeline(test, h, o)
	if err != nil {
		return nil, fmt.Errorf("simtests: write the page of the trace: %w", err)
	}
	jsonl, html := filepath.Join(dir, name+".jsonl"), filepath.Join(dir, name+".html")
	if err := os.WriteFile(jsonl, []byte(lines.String()), 0o600); err != nil {
		return nil, fmt.Errorf("simtests: write the trace: %w", err)
	}
	if err := os.WriteFile(html, page, 0o600); err != nil {
		return nil, fmt.Errorf("simtests: write the page of the trace: %w", err)
	}
	return []string{jsonl, html}, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// exitTask ends the calling task with its deferred functions.
func exitTask() { runtime.Goexit() }

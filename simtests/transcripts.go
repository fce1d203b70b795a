package simtests

import (
	"io/fs"
	"time"

	"github.com/agent-troupe/troupe/agent/scripted"
)

// transcripts are the sessions that agents keep, as they are found when they are
// resumed.
type transcripts struct {
	scripted.MemoryHistory
	w *World
}

// Lag is how long after the agent has written a line the store has it.
func (h *transcripts) Lag() time.Duration {
	if hit := h.w.strike(h.w.sched.running(), "", faultLag); hit != nil {
		return 1 + time.Duration(hit.rng.Int64N(int64(hit.d)))
	}
	return 0
}

// Load implements [agent.History].
func (h *transcripts) Load(path string) ([]byte, error) {
	b, err := h.MemoryHistory.Load(path)
	if err != nil {
		return nil, err
	}
	if h.w.strike(h.w.sched.running(), "", faultNoTranscript) != nil {
		return nil, &fs.PathError{Op: "load", Path: path, Err: fs.ErrNotExist}
	}
	if hit := h.w.strike(h.w.sched.running(), "", faultCutTranscript); hit != nil {
		b = b[:hit.rng.IntN(len(b)+1)]
	}
	return b, nil
}

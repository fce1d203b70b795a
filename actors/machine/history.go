package machine

import (
	"slices"
	"time"

	"github.com/agent-troupe/troupe/session"
)

// readLimit is how long a life waits for the agent's transcript before it continues
// without it.
const readLimit = 2 * time.Second

// maxShown is how many of the agent's messages of a turn are known.
const maxShown = 64

type (
	// ReadHistory has the agent's transcript of a session read, after the process Gen has
	// ended; [HistoryRead] is the answer. To: the session actor.
	ReadHistory struct {
		Gen       int
		SessionID string
		Wanted    Wanted
	}

	// HistoryRead says what is in the transcript. From: the session actor.
	HistoryRead struct {
		Gen     int
		History History
	}
)

func (ReadHistory) effect()    {}
func (HistoryRead) ToSession() {}

// Wanted is what is looked for in a transcript.
type Wanted struct {
	Messages []string // uuids of the user's
	Shown    []string // uuids of the agent's, of the turn that ran, oldest first, at most maxShown
	Calls    []ToolCall
}

// History is what a transcript says, once its writer has ended. The zero value: nothing is
// known.
type History struct {
	Known    bool
	Missing  bool // the agent has not stored the session
	Messages []string
	Shown    []string
	Calls    []string // ids of the tool calls that it has
	Results  []string // ids of the tool calls whose results it has
}

// has reports whether a message is in the history, under its own uuid or another one.
func (h *History) has(t *Turn) bool {
	return slices.Contains(h.Messages, t.ID) || t.Alias != "" && slices.Contains(h.Messages, t.Alias)
}

// lacking are the calls whose result is not known to be in the history.
func (h *History) lacking(done []ToolCall) []ToolCall {
	if !h.Known {
		return done
	}
	var lacking []ToolCall
	for _, c := range done {
		if !slices.Contains(h.Results, c.ID) {
			lacking = append(lacking, c)
		}
	}
	return lacking
}

// lost is what was shown and is not in the history. The agent stores in order, so what is
// before a message that is there is there, too, or was never to be stored.
func (w *Wanted) lost(h *History) (lost session.LostHistory) {
	if !h.Known {
		return lost
	}
	lost.Known = true
	first := 0
	for i, id := range w.Shown {
		if slices.Contains(h.Shown, id) {
			first = i + 1
		}
	}
	lost.Messages = append(lost.Messages, w.Shown[first:]...)
	for _, c := range w.Calls {
		call := !slices.Contains(h.Calls, c.ID)
		if call || c.Over && !slices.Contains(h.Results, c.ID) {
			lost.Tools = append(lost.Tools, session.LostTool{ID: c.ID, Name: c.Name, Call: call})
		}
	}
	return lost
}

// read starts to read the transcript, if it can be read, and decides after that.
func (l *Life) read() {
	s := &l.s
	lapse := s.Lapse
	switch {
	case !l.cfg.Recovery.Reads || lapse.Fresh || lapse.Parted.SessionID == "":
		l.settlePolicy()
		return
	case l.cfg.Recovery.Branch != "": // it is resumed at the end of the turn before
		lapse.History.Known = true
		l.settlePolicy()
		return
	}
	lapse.Step, lapse.Due = LapseReading, l.now.Add(readLimit)
	l.do(ReadHistory{Gen: s.Gen, SessionID: lapse.Parted.SessionID, Wanted: lapse.Parted.Wanted})
}

// historyRead takes what the transcript says.
func (l *Life) historyRead(in HistoryRead) {
	s := &l.s
	if s.Lapse == nil || s.Lapse.Step != LapseReading || in.Gen != s.Gen || s.Close != NotClosing {
		return
	}
	s.Lapse.History = in.History
	l.settlePolicy()
}

// begins reports whether the next process begins the session because the agent has not
// stored it. A process that was to begin it and did not come up may have found it.
func (l *Life) begins() bool {
	lapse := l.s.Lapse
	return lapse.Fresh || lapse.History.Missing && !lapse.Doubted && !l.stored()
}

package ledger

import (
	"errors"
	"regexp"

	"github.com/agent-troupe/troupe/protocol"
)

// ErrResultSkipped says that a turn's result was a line above the ceiling.
var ErrResultSkipped = errors.New("the turn's result was longer than a line may be and was skipped; raise MaxLine")

// What the head of a skipped line may show. Keys come in any order, so it may
// also show nothing.
var (
	resultHead  = regexp.MustCompile(`"type"\s*:\s*"result"`)
	requestHead = regexp.MustCompile(`"type"\s*:\s*"control_request"`)
	requestID   = regexp.MustCompile(`"request_id"\s*:\s*"([^"\\]+)"`)
	subtypeHead = regexp.MustCompile(`"subtype"\s*:\s*"([a-z_]+)"`)
)

// Skipped takes note of a line above the ceiling, of which only the head is
// known: somebody may wait for it. A result ends its turn with
// [ErrResultSkipped], a request is denied. It reports whether a turn ended.
func (l *Ledger) Skipped(head []byte) (ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.facts.skipped = true
	switch {
	case resultHead.Match(head):
		return l.endSkipped(TurnWritten, 1)
	case requestHead.Match(head):
		id, subtype := requestID.FindSubmatch(head), subtypeHead.FindSubmatch(head)
		if id == nil {
			return false
		}
		r := &Request{ID: string(id[1]), Kind: Hook, Frame: protocol.Frame{Type: protocol.TypeControlRequest, RequestID: string(id[1]), Raw: head}}
		if subtype != nil {
			r.Kind, r.Frame.Subtype = KindOf(string(subtype[1])), string(subtype[1])
		}
		l.requests.open[r.ID] = r
		if r.Kind == Permission {
			l.requests.gates++
		}
		l.deny(r, "the request was longer than a line may be")
	}
	return false
}

// endSkipped ends up to n open turns that have come at least as far as from.
func (l *Ledger) endSkipped(from TurnState, n int) (ended bool) {
	l.facts.skipped = false
	for i := 0; i < len(l.turns.open) && n > 0; {
		t := l.turns.open[i]
		if t.state < from {
			i++
			continue
		}
		l.endTurn(t, nil, ErrResultSkipped)
		ended, n = true, n-1
	}
	return ended
}

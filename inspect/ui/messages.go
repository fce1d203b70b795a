package ui

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
)

const (
	deltaBeat  = 50 * time.Millisecond // text that streams is merged for so long
	maxMessage = 64 << 10              // bytes of a message; of a longer one the texts are cut
	cutText    = 4 << 10               // bytes to which they are
	keptLive   = 200                   // messages of a session that is watched
	liveSeq    = 1 << 40               // numbers of live messages are above those of stored ones
)

// item is a message of a transcript.
type item struct {
	Session string          `json:"session,omitempty"` // of the stream
	Seq     int64           `json:"seq"`
	At      time.Time       `json:"at,omitzero"`
	Type    string          `json:"type"` // user, assistant, result
	UUID    string          `json:"uuid,omitempty"`
	Parent  string          `json:"parent_tool_use_id,omitempty"` // of a subagent
	Message json.RawMessage `json:"message,omitempty"`            // {role, content}
	Result  string          `json:"result,omitempty"`             // of a result that is an error: what it says
	Error   bool            `json:"error,omitempty"`
	Text    string          `json:"text,omitempty"` // of a note of this window
	Size    int             `json:"size,omitempty"` // bytes of a message that was cut
	Cut     bool            `json:"cut,omitempty"`
	// Gates say who has decided about the calls that the message has the results of, by their ids.
	Gates map[string]runtime.Gate `json:"gates,omitempty"`
}

// itemOf is a line of a transcript as a page gets it. ok is false for lines that a page does
// not show.
func itemOf(raw []byte) (one item, ok bool) {
	var line struct {
		Type    string          `json:"type"`
		UUID    string          `json:"uuid"`
		Parent  string          `json:"parent_tool_use_id"`
		Message json.RawMessage `json:"message"`
		Result  string          `json:"result"`
		IsError bool            `json:"is_error"`
		Subtype string          `json:"subtype"`

		At        string `json:"timestamp"`   // of a line that was stored
		Sidechain bool   `json:"isSidechain"` // of a subagent
		Meta      bool   `json:"isMeta"`      // of the agent's own
	}
	if protocol.Unmarshal(raw, &line) != nil {
		return item{}, false
	}
	one = item{Type: line.Type, UUID: line.UUID, Parent: line.Parent}
	if line.Sidechain || line.Meta {
		return item{}, false
	}
	one.At, _ = time.Parse(time.RFC3339Nano, line.At) // else not known
	switch line.Type {
	case "user", "assistant":
		if one.Message = line.Message; len(line.Message) > maxMessage {
			one.Message, one.Size, one.Cut = shorter(line.Message), len(line.Message), true
		}
		return one, len(line.Message) > 0
	case "result":
		if !line.IsError {
			return item{}, false
		}
		one.Error, one.Result = true, line.Subtype
		if line.Result != "" {
			one.Result = cut(line.Result, maxError)
		}
		return one, true
	}
	return item{}, false
}

// shorter cuts the texts of a message. A message that is still too long loses its content.
func shorter(message json.RawMessage) json.RawMessage {
	var v any
	if protocol.Unmarshal(message, &v) != nil {
		return nil
	}
	raw, err := json.Marshal(cutTexts(v))
	if err != nil || len(raw) > 2*maxMessage {
		return json.RawMessage(`{"content":[]}`)
	}
	return raw
}

func cutTexts(v any) any {
	switch v := v.(type) {
	case string:
		if len(v) > cutText {
			return strings.ToValidUTF8(v[:cutText], "") + "…"
		}
	case []any:
		for i := range v {
			v[i] = cutTexts(v[i])
		}
	case map[string]any:
		for k := range v { //troupe:maporder each member is cut by itself
			v[k] = cutTexts(v[k])
		}
	}
	return v
}

// lives are the sessions whose messages readers want.
type lives struct {
	mu  sync.Mutex
	all map[string]*live
	seq atomic.Int64 // the last number of a live message, of any session
}

// live follows the messages of one session.
type live struct {
	w    *Window
	id   string
	s    *runtime.Session
	stop context.CancelFunc

	mu        sync.Mutex
	kept      []item
	streaming int64 // number of the message whose text streams; 0 for none
	text      strings.Builder
	pending   bool // a flush of the text has been asked for

	left time.Time // since when no reader has wanted it; zero while one does
}

// follow starts and ends taps, so that there is one for each session that is wanted, or was a
// moment ago: a reader whose connection was lost comes back. Each reader of a session gets a frame when
// its tap has begun, since it may have fetched before.
func (l *lives) follow(ctx context.Context, w *Window) {
	wanted := w.hub.watched()
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, one := range l.all { //troupe:maporder each ends by itself
		switch now := w.clock.Now(); {
		case slices.Contains(wanted, id):
			one.left = time.Time{}
		case one.left.IsZero():
			one.left = now
		case now.Sub(one.left) > linger:
			one.stop()
			delete(l.all, id)
		}
	}
	for _, id := range wanted {
		s := w.rt.Session(id)
		_, _, far := farName(id)
		if l.all[id] != nil || s == nil && !far {
			continue
		}
		ctx, stop := context.WithCancel(ctx)
		one := &live{w: w, id: id, s: s, stop: stop}
		if l.all == nil {
			l.all = map[string]*live{}
		}
		l.all[id] = one
		if s == nil {
			w.exec.Go(func() { w.followFar(ctx, id) })
			continue
		}
		messages := s.Watch(ctx)
		w.begun(id)
		w.exec.Go(func() {
			for m := range messages {
				one.see(&m)
			}
		})
	}
}

// begun says to the readers of a session that its messages come from now on.
func (w *Window) begun(name string) {
	w.hub.publish("watching", name, map[string]string{"session": name})
}

// end forgets all sessions; their taps end with the pump.
func (l *lives) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = nil
}

// see takes a message.
func (l *live) see(m *runtime.Seen) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if m.Lost > 0 {
		l.flush()
		l.add(item{Type: "note", At: m.At, Text: "messages are missing here: they came faster than the page was sent", Error: true})
	}
	if p, ok := m.Message.(*protocol.PartialAssistantMessage); ok {
		l.partial(p)
		return
	}
	one, ok := itemOf(m.Raw)
	if !ok {
		return
	}
	l.flush()
	one.At = m.At
	one.Gates = l.w.gatesOf(l.s, one.Message)
	l.add(one)
}

// next is the number of another message: of a session they only grow, whichever tap has them.
func (l *live) next() int64 { return liveSeq + l.w.lives.seq.Add(1) }

// add numbers a message and sends it. The whole text has the number of the text that
// streamed. mu is held.
func (l *live) add(one item) {
	if one.Type == "assistant" && l.streaming != 0 {
		one.Seq, l.streaming = l.streaming, 0
	} else {
		one.Seq = l.next()
	}
	one.Session = l.id
	l.w.hub.publish("message", l.id, one)
	one.Session = ""
	if len(l.kept) >= keptLive {
		l.kept = slices.Delete(l.kept, 0, 1)
	}
	l.kept = append(l.kept, one)
}

// partial takes a part of a text.
func (l *live) partial(p *protocol.PartialAssistantMessage) {
	d, ok := p.Event.(*protocol.ContentBlockDelta)
	if !ok {
		return
	}
	text, ok := d.Delta.(*protocol.DeltaText)
	if !ok || text.Text == "" {
		return
	}
	if l.streaming == 0 {
		l.streaming = l.next()
	}
	l.text.WriteString(text.Text)
	if !l.pending {
		l.pending = true
		l.w.clock.AfterFunc(deltaBeat, func() {
			l.w.exec.Go(func() {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.pending = false
				l.flush()
			})
		})
	}
}

// delta is text that was added to a message that is not complete.
type delta struct {
	Session string `json:"session"`
	Seq     int64  `json:"seq"`
	Text    string `json:"text"`
}

// flush sends the text that has come; mu is held.
func (l *live) flush() {
	if l.text.Len() == 0 {
		return
	}
	l.w.hub.publish("delta", l.id, delta{l.id, l.streaming, l.text.String()})
	l.text.Reset()
}

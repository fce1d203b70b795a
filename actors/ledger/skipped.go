package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// deliverSkipped handles the line at the head of the inbox of which only the head
// is known. One that is too long, and may be content, keeps its place in the
// stream.
func (l *Ledger) deliverSkipped(f protocol.Frame) (edge bool) {
	o := outlineOf(f.Raw)
	f.Type, f.Subtype = o.typ, o.subtype
	e := Entry{Frame: f}
	content := o.object && !IsControl(o.typ) && f.Oversize().Length > 0
	if content {
		l.place(&e)
	}
	edge = l.skipped(f, o, content)
	l.inbox.pop()
	if content {
		l.stream.push(e)
	} else {
		l.stream.release(len(f.Raw))
	}
	return edge
}

// skipped tells who may wait for a line of which only the head is known. A result
// ends its turn, an answer its call, a request is denied; what may be a result is
// one if the agent then says that it is idle. shown: the line has a place in the
// stream. It reports whether a turn or a call ended.
func (l *Ledger) skipped(line protocol.Frame, o outline, shown bool) (ended bool) {
	head, resultErr, answerErr, reason := line.Raw, session.ErrResultSkipped, session.ErrAnswerSkipped, "the request was longer than a line may be"
	if line.Oversize().Length == 0 {
		resultErr, answerErr, reason = session.ErrResultBroken, session.ErrAnswerBroken, "the request is no JSON"
	}
	switch {
	case o.typ == "result":
		l.strays.active = false
		return l.endSkipped(TurnWritten, 1, resultErr, shown)
	case o.typ == protocol.TypeControlRequest && !o.id.IsZero():
		f := protocol.Frame{Type: o.typ, Subtype: o.subtype, ID: o.id, Raw: head}
		r := l.admit(f, IdentityOf(&f))
		if r == nil {
			return false
		}
		if o.subtype == "" {
			r.Kind = Hook // what denies a hook denies everything
		}
		l.deny(r, reason)
	case o.typ == protocol.TypeControlResponse && l.callOf(o.id) != nil:
		c := l.callOf(o.id)
		l.calls.close(c)
		err := fmt.Errorf("control request %s: %w", c.Subtype, answerErr)
		if c.Setup {
			l.facts.initFailure = err
		}
		c.answer.Fail(err)
		return true
	case o.typ == "" && o.object && shown:
		l.facts.skipped = true
	}
	return false
}

// endSkipped ends up to n open turns that have come at least as far as from. shown:
// the line that ends them is about to be pushed.
func (l *Ledger) endSkipped(from TurnState, n int, why error, shown bool) (ended bool) {
	l.facts.skipped = false
	for i := 0; i < len(l.turns.open) && n > 0; {
		t := l.turns.open[i]
		if t.state < from {
			i++
			continue
		}
		l.endTurnWith(t, nil, why, shown)
		ended, n = true, n-1
	}
	return ended
}

// outline is what the head of a line shows of its envelope. Keys come in any
// order, so it may also show nothing.
type outline struct {
	object       bool
	typ, subtype string
	id           protocol.ID
}

func outlineOf(head []byte) (o outline) {
	o.object = bytes.HasPrefix(bytes.TrimSpace(head), []byte("{"))
	d := json.NewDecoder(bytes.NewReader(head))
	var rest json.RawMessage
	// It ends with an error, because the head is cut.
	_ = members(d, func(key string) error {
		switch key {
		case "type":
			return d.Decode(&o.typ)
		case "request_id":
			return o.decodeID(d)
		case "request", "response":
			answer := key == "response"
			return members(d, func(key string) error {
				switch {
				case key == "subtype":
					return d.Decode(&o.subtype)
				case key == "request_id" && answer:
					return o.decodeID(d)
				}
				return d.Decode(&rest)
			})
		}
		return d.Decode(&rest)
	})
	return o
}

func (o *outline) decodeID(d *json.Decoder) error {
	var token json.RawMessage
	err := d.Decode(&token)
	o.id = protocol.ID(token)
	return err
}

// members calls see for each key of the object that comes next, to decode its
// value.
func members(d *json.Decoder, see func(key string) error) error {
	if open, err := d.Token(); open != json.Delim('{') {
		return errors.Join(err, errNoObject)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := key.(string) // it is one, or the decoder had refused it
		if err := see(name); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

var errNoObject = errors.New("no object")

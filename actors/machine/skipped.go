package machine

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// skipped handles a line of which only the head is known. A waiter may depend on it: a
// result ends its turn, an answer its call, a request is denied; what may be a result
// is one if the agent then says that it is idle. A line that is too long, and may be
// content, keeps its place in the stream.
func (m *Routing) skipped(f protocol.Frame) {
	o := outlineOf(f.Raw)
	f.Type, f.Subtype = o.typ, o.subtype
	e := Delivery{Frame: f}
	tooLong := f.Oversize().Length > 0
	content := o.object && !IsControl(o.typ) && tooLong
	resultErr, answerErr, reason := session.ErrResultBroken, session.ErrAnswerBroken, "the request is no JSON"
	if tooLong {
		resultErr, answerErr, reason = session.ErrResultSkipped, session.ErrAnswerSkipped, "the request was longer than a line may be"
	}
	if content {
		m.place(&e)
	}
	switch {
	case o.typ == "result":
		m.Strays.Active = false
		e.Ends = m.endSkipped(TurnWritten, 1, resultErr, content)
	case o.typ == protocol.TypeControlRequest && !o.id.IsZero():
		m.deliver() // what came before it
		m.denySkipped(protocol.Frame{Type: o.typ, Subtype: o.subtype, ID: o.id, Raw: f.Raw}, reason)
	case o.typ == protocol.TypeControlResponse && m.callOf(o.id) >= 0:
		m.deliver()
		c := m.takeCall(m.callOf(o.id))
		m.callOver(&c, nil, fmt.Errorf("control request %s: %w", c.Subtype, answerErr))
	case o.typ == "" && content:
		m.Facts.Skipped = true
	}
	switch {
	case content:
		m.push(e)
	default:
		m.deliver()
		for _, o := range e.Ends {
			m.do(TurnOver{o})
		}
	}
}

func (m *Routing) denySkipped(f protocol.Frame, reason string) {
	r := m.admit(f)
	if r == nil {
		return
	}
	if f.Subtype == "" {
		r.Kind = session.KindHook // what denies a hook denies everything
	}
	m.deny(r, reason)
}

// endSkipped ends up to n open turns that have come at least as far as from. shown:
// the line that ends them is about to be pushed.
func (m *Routing) endSkipped(from TurnState, n int, why error, shown bool) (ended []Outcome) {
	m.Facts.Skipped = false
	for i := 0; i < len(m.Turns) && n > 0; {
		if m.Turns[i].State < from {
			i++
			continue
		}
		ended, n = append(ended, m.outcome(&m.Turns[i], nil, why, shown)), n-1
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

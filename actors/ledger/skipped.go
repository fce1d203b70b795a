package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/protocol"
)

// ErrResultSkipped says that a turn's result was a line above the ceiling.
var ErrResultSkipped = errors.New("the turn's result was longer than a line may be and was skipped; raise MaxLine")

// ErrAnswerSkipped says that the answer to a call was a line above the ceiling.
var ErrAnswerSkipped = errors.New("the answer was longer than a line may be and was skipped; raise MaxLine")

// skipped handles a line above the ceiling at its place in the inbox. A result
// ends its turn with [ErrResultSkipped], an answer its call with
// [ErrAnswerSkipped], a request is denied; what may be a result, for all that is known of it, is one if the agent then says that it is
// idle. It reports whether a turn ended.
func (l *Ledger) skipped(head []byte) (ended bool) {
	o := outlineOf(head)
	switch {
	case o.typ == "result":
		return l.endSkipped(TurnWritten, 1)
	case o.typ == protocol.TypeControlRequest && !o.id.IsZero():
		f := protocol.Frame{Type: o.typ, Subtype: o.subtype, ID: o.id, Raw: head}
		r := l.admit(f, IdentityOf(&f))
		if r == nil {
			return false
		}
		if o.subtype == "" {
			r.Kind = Hook // what denies a hook denies everything
		}
		l.deny(r, "the request was longer than a line may be")
	case o.typ == protocol.TypeControlResponse && l.callOf(o.id) != nil:
		c := l.callOf(o.id)
		l.calls.close(c)
		err := fmt.Errorf("control request %s: %w", c.Subtype, ErrAnswerSkipped)
		if c.Setup {
			l.facts.initFailure = err
		}
		c.answer.Fail(err)
		return true
	case o.typ == "" && o.object:
		l.facts.skipped = true
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

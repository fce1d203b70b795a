package optionfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Kind is the kind of a value.
type Kind int

// The kinds of a value. Null is the zero value.
const (
	Null Kind = iota
	Bool
	Number
	Text
	List
	Object
)

func (k Kind) String() string {
	return [...]string{"null", "a boolean", "a number", "a text", "a list", "an object"}[k]
}

// Node is a value of a document, and where it is written.
type Node struct {
	Kind  Kind
	Text  string // of a text, a number (as JSON writes it) or a boolean
	List  []*Node
	Pairs []Pair // in the order of the document

	expanded     bool // {"$env": …} made the text, which may be meant as another kind
	line, column int  // from 1; 0 when unknown
}

// Pair is a key of an object and its value.
type Pair struct {
	Key   *Node // a text
	Value *Node
}

// shown is the text for a mistake. A variable of the environment may hold a
// secret.
func (n *Node) shown() string {
	if n.expanded {
		return "another value"
	}
	return n.Text
}

// under is the value of a key, or n itself if it has no such key.
func (n *Node) under(key string) *Node {
	for _, p := range n.Pairs {
		if p.Key.Text == key {
			return p.Value
		}
	}
	return n
}

// ParseJSON reads a JSON document. It keeps the order of keys and the digits of
// numbers.
func ParseJSON(raw []byte) (*Node, error) {
	if !json.Valid(raw) { // the decoder alone would take an open list for a whole one
		return nil, errors.New("is not JSON")
	}
	d := &jsonReader{dec: json.NewDecoder(bytes.NewReader(raw)), at: place{raw: raw}}
	d.dec.UseNumber()
	return d.value()
}

// jsonReader reads a valid JSON document.
type jsonReader struct {
	dec *json.Decoder
	at  place
}

// place is a place in a document. It only goes forward.
type place struct {
	raw                  []byte
	offset, line, column int // from 0
}

// node is an empty node at an offset.
func (p *place) node(offset int) *Node {
	for ; p.offset < offset; p.offset++ {
		switch c := p.raw[p.offset]; {
		case c == '\n':
			p.line, p.column = p.line+1, 0
		case c&0xC0 != 0x80: // the first byte of a character
			p.column++
		}
	}
	return &Node{line: p.line + 1, column: p.column + 1}
}

func (d *jsonReader) value() (*Node, error) {
	next := int(d.dec.InputOffset())
	for next < len(d.at.raw) && bytes.IndexByte([]byte(" \t\r\n,:"), d.at.raw[next]) >= 0 {
		next++
	}
	n := d.at.node(next)
	t, err := d.dec.Token()
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case bool:
		n.Kind, n.Text = Bool, fmt.Sprint(t)
	case json.Number:
		n.Kind, n.Text = Number, t.String()
	case string:
		n.Kind, n.Text = Text, t
	case json.Delim:
		n.Kind = List
		if t == '{' {
			n.Kind = Object
		}
		for d.dec.More() {
			var p Pair
			if n.Kind == Object {
				if p.Key, err = d.value(); err != nil {
					return nil, err
				}
			}
			if p.Value, err = d.value(); err != nil {
				return nil, err
			}
			if n.Kind == Object {
				n.Pairs = append(n.Pairs, p)
			} else {
				n.List = append(n.List, p.Value)
			}
		}
		if _, err = d.dec.Token(); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
	}
	return n, nil
}

// JSON is the node as JSON.
func (n *Node) JSON() []byte {
	var b bytes.Buffer
	n.write(&b)
	return b.Bytes()
}

func (n *Node) write(b *bytes.Buffer) {
	switch n.Kind {
	case Null:
		b.WriteString("null")
	case Bool, Number:
		b.WriteString(n.Text)
	case Text:
		writeText(b, n.Text)
	case List:
		b.WriteByte('[')
		for i, v := range n.List {
			if i > 0 {
				b.WriteByte(',')
			}
			v.write(b)
		}
		b.WriteByte(']')
	case Object:
		b.WriteByte('{')
		for i, p := range n.Pairs {
			if i > 0 {
				b.WriteByte(',')
			}
			writeText(b, p.Key.Text)
			b.WriteByte(':')
			p.Value.write(b)
		}
		b.WriteByte('}')
	}
}

// writeText writes a text as JSON, without escaping <, > and &.
func writeText(b *bytes.Buffer, s string) {
	enc := json.NewEncoder(b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a text always encodes
	b.Truncate(b.Len() - 1)
}

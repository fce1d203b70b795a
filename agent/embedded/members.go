package embedded

import (
	"encoding/json"

	"github.com/agent-troupe/troupe/protocol"
)

// member is a member of a JSON object whose order is kept.
type member struct {
	name  string
	value any
}

// members are those of a JSON object in their order.
type members []member

// object is the JSON object.
func (m members) object() ([]byte, error) {
	b := []byte{'{'}
	for n, one := range m {
		if n > 0 {
			b = append(b, ',')
		}
		name, err := plainJSON(one.name)
		if err != nil {
			return nil, err
		}
		value, err := plainJSON(one.value)
		if err != nil {
			return nil, err
		}
		b = append(append(append(b, name...), ':'), value...)
	}
	return append(b, '}'), nil
}

func (m members) get(name string) json.RawMessage {
	for _, one := range m {
		if raw, isRaw := one.value.(json.RawMessage); isRaw && one.name == name {
			return raw
		}
	}
	return nil
}

func (m members) text(name string) (s string) {
	_ = protocol.Unmarshal(m.get(name), &s) // "" if it is not a text
	return s
}

// set replaces a member, or adds one.
func (m *members) set(name string, value []byte) {
	for i := range *m {
		if (*m)[i].name == name {
			(*m)[i].value = json.RawMessage(value)
			return
		}
	}
	*m = append(*m, member{name, json.RawMessage(value)})
}

// textJSON is a text as JSON.
func textJSON(s string) []byte {
	b, _ := plainJSON(s) // a text
	return b
}

package acp

import (
	"bytes"
	"encoding/json"
	"errors"
	"strconv"
)

// ID is the id of a request: the JSON text of a string, a number or null. The zero value
// is null. Equal ids are equal values, so an ID may be the key of a map.
type ID struct{ text string }

// NumberID returns the id that is the number n.
func NumberID(n int64) ID { return ID{strconv.FormatInt(n, 10)} }

// String returns the JSON text.
func (id ID) String() string {
	if id.text == "" {
		return "null"
	}
	return id.text
}

// MarshalJSON writes the id as it was read.
func (id ID) MarshalJSON() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalJSON reads a string, a number or null.
func (id *ID) UnmarshalJSON(data []byte) error {
	data = bytes.TrimSpace(data)
	switch {
	case string(data) == "null":
		*id = ID{}
		return nil
	case len(data) > 0 && data[0] == '"':
		// Two ways to write the same string are the same id.
		var text string
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		data, err := json.Marshal(text)
		id.text = string(data)
		return err
	case len(data) > 0 && (data[0] == '-' || data[0] >= '0' && data[0] <= '9'):
		id.text = string(data)
		return nil
	}
	return errors.New("acp: a request id is a string or a number")
}

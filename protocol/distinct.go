package protocol

import (
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/base/jsonscan"
)

// DuplicateKeyError says that a control request has a key twice in one of its
// objects. JSON readers differ in which of the two they take, so a gate must not
// decide on either.
type DuplicateKeyError struct {
	// Key is the key, cut after 256 bytes.
	Key string
}

func (e *DuplicateKeyError) Error() string {
	return fmt.Sprintf("protocol: the request has the key %q twice", e.Key)
}

func duplicateKey(key string) error {
	return &DuplicateKeyError{Key: key[:min(len(key), oversized)]}
}

// distinct returns a *[DuplicateKeyError] if an object of a control request, at
// any depth, has a key twice. The request is valid JSON.
func (f *Frame) distinct() error {
	if f.twice != "" {
		return duplicateKey(f.twice)
	}
	return distinctKeys(f.Body())
}

// manyKeys is how many keys of one object are compared with each other before
// they are put in a map.
const manyKeys = 16

// maxDepth is how deep encoding/json reads.
const maxDepth = 10000

var errTooDeep = errors.New("protocol: the request is nested too deep")

// scope is an object or an array that is not closed yet.
type scope struct {
	object bool
	from   int             // its first key in the list of keys
	seen   map[string]bool // its keys; nil up to manyKeys
}

// distinctKeys looks at every object of valid once, in one pass.
func distinctKeys(valid []byte) error {
	var inline [8]scope
	var few [2 * manyKeys][]byte
	open, keys := inline[:0], few[:0]
	atKey := false
	for i := 0; i < len(valid); {
		switch valid[i] {
		case '{', '[':
			if atKey = valid[i] == '{'; len(open) == maxDepth {
				return errTooDeep
			}
			open = append(open, scope{object: atKey, from: len(keys)})
		case '}', ']':
			if len(open) == 0 {
				return nil // no valid JSON
			}
			last := len(open) - 1
			keys, open, atKey = keys[:open[last].from], open[:last], false
		case ',':
			atKey = len(open) > 0 && open[len(open)-1].object
		case '"':
			end := jsonscan.String(valid, i)
			if end < 0 {
				return nil // no valid JSON
			}
			if atKey {
				key := exactText(valid[i+1 : end-1])
				s := &open[len(open)-1]
				if s.has(keys, key) {
					return duplicateKey(string(key))
				}
				keys, atKey = append(keys, key), false
			}
			i = end
			continue
		}
		i++
	}
	return nil
}

// has reports whether the scope has the key already.
func (s *scope) has(keys [][]byte, key []byte) bool {
	own := keys[s.from:]
	if len(own) < manyKeys {
		for _, k := range own {
			if string(k) == string(key) {
				return true
			}
		}
		return false
	}
	if s.seen == nil {
		s.seen = make(map[string]bool, 2*len(own))
		for _, k := range own {
			s.seen[string(k)] = true
		}
	}
	if s.seen[string(key)] {
		return true
	}
	s.seen[string(key)] = true
	return false
}

// exactText is the text of the inside of a JSON string, with lone surrogates
// kept apart from each other and from U+FFFD.
func exactText(s []byte) []byte {
	if jsonscan.IsPlain(s) {
		return s
	}
	return jsonscan.AppendUnescapedAs(make([]byte, 0, len(s)), s, appendSurrogate)
}

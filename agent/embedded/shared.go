package embedded

import (
	"bytes"
	"strconv"
	"sync"

	"github.com/agent-troupe/troupe/policy"
)

// shared is what the sessions of a backend have in common, so that none of them has it for
// itself. It is safe for concurrent use.
type shared struct {
	mu       sync.Mutex
	policies map[string]*policy.Policy // by their rules; each is at the places of some session
	lists    [][]byte                  // encoded lists of tools
}

// maxShared is how many policies are kept, and how many lists. Beyond that all are forgotten.
const maxShared = 64

// policy compiles the rules, which sessions have in common, at the places of one session. It
// is nil if the rules have a mistake.
func (s *shared) policy(r policy.Rules) *policy.Policy {
	key := textOf(r.Allow) + " " + textOf(r.Deny)
	s.mu.Lock()
	known := s.policies[key]
	s.mu.Unlock()
	if known != nil {
		here, err := known.At(r)
		if err != nil {
			return nil
		}
		return here
	}
	made, err := policy.Compile(r)
	if err != nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.policies == nil || len(s.policies) == maxShared {
		s.policies = map[string]*policy.Policy{}
	}
	s.policies[key] = made
	return made
}

// textOf is a list as one text that no other list has.
func textOf(list []string) string {
	var b []byte
	for _, s := range list {
		b = append(strconv.AppendInt(b, int64(len(s)), 10), ':')
		b = append(b, s...)
	}
	return string(b)
}

// tools returns the list, or the same one of another session.
func (s *shared) tools(list []byte) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.lists {
		if bytes.Equal(known, list) {
			return known
		}
	}
	if len(s.lists) == maxShared {
		s.lists = nil
	}
	s.lists = append(s.lists, list)
	return list
}

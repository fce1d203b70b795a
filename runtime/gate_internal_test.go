package runtime

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// TestWhoDecided: the last word of a call counts, a denial of a hook more than a rule that allows, and
// old calls are forgotten.
func TestWhoDecided(t *testing.T) {
	t.Parallel()
	s := &Session{}
	_, known := s.Gate("a")
	assert.False(t, known)
	s.told("a", protocol.BehaviorAsk, true, "ask: Edit")
	_, known = s.Gate("a")
	assert.False(t, known, "to ask is not a decision")
	s.answered("a", &protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil)
	s.told("b", protocol.BehaviorAllow, true, "allow: Bash")
	s.hooked("b", []byte(`{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecisionReason":"no"}}`), nil, "")
	s.told("b", protocol.BehaviorAllow, true, "allow: Bash")
	s.hooked("c", []byte(`{}`), nil, "")
	s.hooked("d", nil, errors.New("broken"), "")
	s.hooked("e", nil, errors.New("broken"), session.ContinueOnFailure)
	s.answered("f", &protocol.PermissionResult{}, errors.New("late"))
	s.told("", protocol.BehaviorDeny, true, "without an id")
	for call, want := range map[string]Gate{
		"a": {"person", true, "ask: Edit"}, "b": {"hook", false, "no"}, "d": {"hook", false, "the hook failed: broken"}, "f": {"person", false, "CanUseTool failed: late"},
	} {
		got, _ := s.Gate(call)
		assert.Equal(t, want, got, call)
	}
	for _, call := range []string{"", "c", "e"} {
		_, known = s.Gate(call)
		assert.False(t, known, call)
	}
	for i := range 3 * maxGates {
		s.told(fmt.Sprint(i), protocol.BehaviorDeny, false, "default")
		assert.LessOrEqual(t, s.gates.Load().n, 2*maxGates)
	}
	_, known = s.Gate("a")
	assert.False(t, known)
	for range 3 * maxGates { // decisions about one call take the room of no other one
		s.told("again", protocol.BehaviorDeny, false, "default")
	}
	for i := range maxGates - 1 {
		_, known = s.Gate(fmt.Sprint(3*maxGates - 1 - i))
		assert.True(t, known, i)
	}
	got, _ := s.Gate(fmt.Sprint(3*maxGates - 1))
	assert.Equal(t, Gate{"policy", false, "default"}, got)
}

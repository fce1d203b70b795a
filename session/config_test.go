package session_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/session"
)

func TestErrorsSayWhatWhereAndWhatToDo(t *testing.T) {
	t.Parallel()
	assert.EqualError(t, &session.ConfigError{Option: "Model", Backend: "qoder", Problem: "is empty", Fix: "name one"},
		"option Model (qoder): is empty; name one")
	assert.EqualError(t, &session.ConfigError{Option: "Model", Problem: "is empty"}, "option Model: is empty")
	assert.Equal(t, "option CanUseTool (rule Read): hidden; drop it",
		session.Warning{Option: "CanUseTool", Rule: "Read", Problem: "hidden", Fix: "drop it"}.String())
	assert.Equal(t, "option Debug: hidden", session.Warning{Option: "Debug", Problem: "hidden"}.String())
	assert.EqualError(t, &session.UnsupportedCapabilityError{Backend: "qoder", Request: "read_file"},
		"qoder does not serve read_file requests")
	assert.EqualError(t, &session.UnsupportedCapabilityError{Backend: "qoder", Request: "get_goal", Capability: "goal_v1"},
		"qoder did not announce capability goal_v1, which get_goal needs; use a newer agent")
}

func TestConfigErrorsAreFoundInAnyTree(t *testing.T) {
	t.Parallel()
	a, b := &session.ConfigError{Option: "A"}, &session.ConfigError{Option: "B"}
	tree := fmt.Errorf("open: %w", errors.Join(a, errors.New("other"), fmt.Errorf("deep: %w", b)))
	assert.Equal(t, []*session.ConfigError{a, b}, session.ConfigErrors(tree))
	assert.Empty(t, session.ConfigErrors(nil))
	assert.Empty(t, session.ConfigErrors(errors.New("other")))
	var first *session.ConfigError
	require.ErrorAs(t, tree, &first)
}

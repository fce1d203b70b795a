//go:build conformance

package conformance_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/conformance"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// release is a release of Claude Code, with what it does unlike the other.
type release struct {
	agent conformance.Agent
	// levels: it reports its state, the life of user messages, and the set of
	// background tasks whenever it changes; results name their messages, and
	// task_started says whether it is in the background. Of one that does not,
	// all of this has to be told from edges.
	levels bool
	// handshake: it asks the MCP servers of this process for their tools, and
	// does not trust the manifests that it was given.
	handshake bool
	// agent started without a word on it: in the background.
	agentInBackground bool
	// apiError is the terminal reason of a turn that the model's API refused.
	apiError string
	// aborted: the half-said message of an interrupted turn is marked.
	aborted bool
	// compacted is what comes of a /compact after one turn.
	compacted string
}

// releases are those that the tests run against; the first is the one they are
// written against.
func releases() []release {
	return []release{
		{
			agent:             conformance.Claude,
			levels:            true,
			handshake:         false,
			agentInBackground: true,
			apiError:          "api_error",
			aborted:           true,
			compacted:         "success",
		},
		{
			agent:             conformance.ClaudeOlder,
			levels:            false,
			handshake:         true,
			agentInBackground: false,
			apiError:          "completed",
			aborted:           false,
			compacted:         "failed",
		},
	}
}

// TestReleases holds what every user needs against each release.
func TestReleases(t *testing.T) {
	t.Parallel()
	checks := map[string]func(*testing.T, release){
		"Text":                                checkText,
		"AllowedToolIsNotAskedFor":            checkAllowedToolIsNotAskedFor,
		"QueuedMessagesAreTurnsOfTheirOwn":    checkQueuedMessagesAreTurnsOfTheirOwn,
		"MaxTurns":                            checkMaxTurns,
		"APIErrorIsASuccessThatFailed":        checkAPIErrorIsASuccessThatFailed,
		"Compact":                             checkCompact,
		"PermissionAllowedWithAnotherInput":   checkPermissionAllowedWithAnotherInput,
		"PermissionDenied":                    checkPermissionDenied,
		"PermissionCallbackThatDoesNotDecide": checkPermissionCallbackThatDoesNotDecide,
		"Switches":                            checkSwitches,
		"GatesThatGoOff":                      checkGatesThatGoOff,
		"HonestAgent":                         checkHonestAgent,
		"MatchersFire":                        checkMatchersFire,
		"MatcherDenies":                       checkMatcherDenies,
		"PreToolUseHookDenies":                checkPreToolUseHookDenies,
		"PreToolUseHookModifiesTheInput":      checkPreToolUseHookModifiesTheInput,
		"PreToolUseHookThatDoesNotDecide":     checkPreToolUseHookThatDoesNotDecide,
		"InterruptWhileTheModelStreams":       checkInterruptWhileTheModelStreams,
		"InterruptWhileAToolRuns":             checkInterruptWhileAToolRuns,
		"InterruptWhilePermissionIsPending":   checkInterruptWhilePermissionIsPending,
		"CloseWhileAToolRuns":                 checkCloseWhileAToolRuns,
		"KilledAgent":                         checkKilledAgent,
		"Resume":                              checkResume,
		"StructuredOutput":                    checkStructuredOutput,
		"SubagentInTheForeground":             checkSubagentInTheForeground,
		"SubagentInTheBackground":             checkSubagentInTheBackground,
		"RunReturnsAfterTheBackgroundWork":    checkRunReturnsAfterTheBackgroundWork,
		"RunDoesNotWaitForAServer":            checkRunDoesNotWaitForAServer,
		"ShellInTheBackground":                checkShellInTheBackground,
		"CloseWhileIdle":                      checkCloseWhileIdle,
		"SubagentWithoutAWordOnWhere":         checkSubagentWithoutAWordOnWhere,
		"CloseStartsNoTurnForBackgroundWork":  checkCloseStartsNoTurnForBackgroundWork,
		"ToolOfThisProcess":                   checkToolOfThisProcess,
	}
	for _, rel := range releases() {
		t.Run(rel.agent.Version(), func(t *testing.T) {
			t.Parallel()
			for _, name := range slices.Sorted(maps.Keys(checks)) {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					checks[name](t, rel)
				})
			}
		})
	}
}

// names checks that a result says whose it is, if it can.
func (rel release) names(t *testing.T, result *sdk.ResultMessage, turns ...*sdk.Turn) {
	t.Helper()
	var uuids []string
	for _, turn := range turns {
		uuids = append(uuids, turn.UUID())
	}
	if !rel.levels {
		uuids = nil
	}
	assert.Equal(t, uuids, result.UserMessageUUIDs)
}

// backgrounded checks that the start of a task says where it runs, if it can.
func (rel release) backgrounded(t *testing.T, want bool, started *protocol.TaskStartedMessage) {
	t.Helper()
	if !rel.levels {
		assert.Nil(t, started.IsBackgrounded)
		return
	}
	if assert.NotNil(t, started.IsBackgrounded) {
		assert.Equal(t, want, *started.IsBackgrounded)
	}
}

package docs_test

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// exportedErrors returns the exported names of the packages sdk and session that look
// like errors. Names of sdk have no package prefix. A name of session has the prefix
// session, and is left out if sdk has an alias for it.
func exportedErrors(t *testing.T) []string {
	t.Helper()
	looksLikeError := regexp.MustCompile(`^(Err[A-Z].*|[A-Z].*Error)$`)
	var names []string
	inSDK := map[string]bool{}
	for name, alias := range declarations(t, "../sdk") {
		inSDK[alias] = true
		if looksLikeError.MatchString(name) {
			names = append(names, name)
		}
	}
	for name := range declarations(t, "../session") {
		if name = "session." + name; looksLikeError.MatchString(strings.TrimPrefix(name, "session.")) && !inSDK[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// printed returns an example of each error, whose text deployment.md must show.
func printed() map[string]error {
	result := &sdk.ResultMessage{Subtype: "error_max_turns", Errors: []string{"Reached maximum number of turns (3)"}}
	return map[string]error{
		"AuthError": &sdk.AuthError{Backend: "claude", Err: errors.New("…")},
		"session.BreakerOpenError": &session.BreakerOpenError{
			Kind: session.BreakerAgent, Name: "claude", Since: time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), Failures: 5,
			LastFailure: "the agent ended during initialize: exit code 1", RetryAfter: 800 * time.Millisecond,
		},
		"session.CloudError":              &session.CloudError{Op: "post message", Status: 429, Type: "rate_limit_error", Message: "slow down", RequestID: "r1"},
		"ConfigError":                     &sdk.ConfigError{Option: "TaskBudget", Backend: "claude", Problem: "is 0; a budget is above zero"},
		"ControlError":                    &sdk.ControlError{Request: "set_permission_mode", Code: "invalid_mode", Message: "…"},
		"session.ErrAnswerSkipped":        session.ErrAnswerSkipped,
		"ErrBusy":                         sdk.ErrBusy,
		"ErrClaimTaken":                   sdk.ErrClaimTaken,
		"ErrClaimUnsure":                  sdk.ErrClaimUnsure,
		"ErrClosed":                       sdk.ErrClosed,
		"session.ErrConsumerStalled":      session.ErrConsumerStalled,
		"ErrMCPServerClosed":              sdk.ErrMCPServerClosed,
		"session.ErrNoRoom":               session.ErrNoRoom,
		"session.ErrMirrorFull":           session.ErrMirrorFull,
		"session.ErrStoreAhead":           session.ErrStoreAhead,
		"session.ErrChildFull":            session.ErrChildFull,
		"session.ErrNoChild":              session.ErrNoChild,
		"session.ErrChildDone":            session.ErrChildDone,
		"session.ErrChildRestarts":        session.ErrChildRestarts,
		"ErrNotConnected":                 sdk.ErrNotConnected,
		"session.ErrNotRun":               session.ErrNotRun,
		"session.ErrResultSkipped":        session.ErrResultSkipped,
		"session.ErrResultBroken":         session.ErrResultBroken,
		"session.ErrAnswerBroken":         session.ErrAnswerBroken,
		"session.EchoError":               &session.EchoError{},
		"protocol.OversizeError":          &protocol.OversizeError{Length: 70000000, Ceiling: 67108864},
		"protocol.UnreadableResultError":  &protocol.UnreadableResultError{Err: errors.New("…")},
		"session.ErrShutdown":             session.ErrShutdown,
		"session.ErrDraining":             session.ErrDraining,
		"session.ErrTooLarge":             session.ErrTooLarge,
		"session.ErrTransportClosed":      session.ErrTransportClosed,
		"LoadError":                       &sdk.LoadError{File: "options.yaml", Line: 3, Column: 1, Key: "max_turns", Problem: "is not known", Fix: "did you mean maxTurns?"},
		"session.KilledError":             &session.KilledError{},
		"session.WritesLostError":         &session.WritesLostError{Code: "ENOSPC", Lost: []string{"transcript"}},
		"session.LeftoverError":           &session.LeftoverError{Processes: []session.ProcInfo{{PID: 4711, Command: "node"}}},
		"session.ModelPolicyTimeoutError": &session.ModelPolicyTimeoutError{Limit: 500 * time.Millisecond},
		"session.PanicError":              &session.PanicError{Message: "PreToolUse", Value: "boom"},
		"protocol.FrameError":             &protocol.FrameError{Kind: protocol.NotJSON, Head: []byte("oops"), Len: 4},
		"session.ProtocolVersionError":    &session.ProtocolVersionError{Backend: "qoder", Version: "2.0", Major: "1"},
		"ResultError":                     &sdk.ResultError{Result: result},
		"session.StructuredOutputError":   &session.StructuredOutputError{Err: errors.New(`A: expected integer, got "x"`)},
		"TimeoutError":                    &sdk.TimeoutError{What: "control request set_model", Limit: time.Minute, SetBy: "Limits.Control"},
		"session.UnfinishedError": &session.UnfinishedError{
			Doing: "run", State: session.StateAwaitingHost, Err: context.DeadlineExceeded,
			Waits: []session.Wait{
				{What: "permission request Bash", ID: "req_1", Age: 12 * time.Second},
				{What: "turn written", ID: "6f…", Age: 15 * time.Second},
			},
			Tools: []session.RunningTool{{ID: "toolu_1", Name: "Bash", Age: 12 * time.Second}}, Called: 3, Messages: 14, Text: "Let me look",
		},
		"session.UnsupportedCapabilityError": &session.UnsupportedCapabilityError{Backend: "claude", Request: "set_goal_max_turns"},
		"session.LeaseError":                 &session.LeaseError{SessionID: "3f2b8c1e", Holder: session.LeaseHolder{Host: "build7", PID: 4711}},
		"session.PassivateError":             &session.PassivateError{Problem: "a turn is open"},
		"session.StoreError":                 &session.StoreError{Doing: "load", Key: session.StoreKey{Project: "-home-me-app", Session: "3f2b8c1e"}, Err: errors.New("…")},
		"session.RetryLimitError": &session.RetryLimitError{
			Status: 529, Kind: "overloaded", Attempts: 12, For: 30 * time.Minute, Limit: 30 * time.Minute,
		},
		"session.RecoveryError":          &session.RecoveryError{Problem: "the agent died alike 3 times in a row, with no result between (EqualDeaths)", Err: errors.New("…")},
		"session.GatesOffError":          &session.GatesOffError{Seen: "system/init"},
		"ExitError":                      &sdk.ExitError{Program: "/usr/bin/claude", During: "a turn", Status: session.ExitStatus{Code: 3}, StderrTail: "something broke"},
		"StartError":                     &sdk.StartError{Err: errors.New(`lookup "claude": file does not exist (searched /usr/bin, /bin): install it, or give its path`)},
		"protocol.StreamError":           nil, // no Go error
		"session.ErrNoCanUseTool":        session.ErrNoCanUseTool,
		"session.ErrNoResolveModel":      session.ErrNoResolveModel,
		"session.ErrStdoutHeld":          session.ErrStdoutHeld,
		"session.ErrStderrHeld":          session.ErrStderrHeld,
		"session.PatternError":           &session.PatternError{Pattern: "(", Err: errors.New("…")},
		"session.IllegalTransitionError": &session.IllegalTransitionError{From: session.StateClosed, To: session.StateReady},
		"supervisor.Failure":             nil, // its text names an actor
	}
}

func TestEveryErrorIsExplained(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("deployment.md")
	require.NoError(t, err)
	document := string(raw)
	texts := printed()
	known := slices.Sorted(maps.Keys(texts))
	assert.Subset(t, known, exportedErrors(t), "errors of the packages sdk and session that this test does not know")
	for _, name := range known {
		want := "`" + name + "`"
		if e := texts[name]; e != nil {
			want = "**" + want + "** `" + e.Error() + "`"
		}
		assert.Contains(t, document, want)
	}
}

// TestLinks checks that the files and headings that the documents link to exist.
func TestLinks(t *testing.T) {
	t.Parallel()
	heading := regexp.MustCompile(`(?m)^#+ (.*)$`)
	anchors := func(file string) map[string]bool {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		all := map[string]bool{"": true}
		for _, h := range heading.FindAllStringSubmatch(string(raw), -1) {
			kept := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(h[1]), "")
			all[strings.ReplaceAll(kept, " ", "-")] = true
		}
		return all
	}
	files, err := fs.Glob(os.DirFS("."), "*.md")
	require.NoError(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		prose := regexp.MustCompile("(?ms)^```.*?^```$").ReplaceAllString(string(raw), "")
		for _, link := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(prose, -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			to, anchor, _ := strings.Cut(link[1], "#")
			if to == "" {
				to = file
			}
			if !strings.HasSuffix(to, ".md") {
				assert.FileExists(t, to, file)
				continue
			}
			assert.True(t, anchors(to)[anchor], "%s: %s", file, link[1])
		}
	}
}

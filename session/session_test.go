package session_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/session"
)

func TestStatesAndKindsHaveNames(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for s := session.StateAdmitting; s <= session.StateFailed; s++ {
		text, err := s.MarshalText()
		require.NoError(t, err)
		assert.Equal(t, s.String(), string(text))
		assert.Equal(t, s == session.StateClosed || s == session.StateFailed, s.Terminal(), "%v", s)
		assert.False(t, seen[s.String()], "%v", s)
		seen[s.String()] = true
	}
	for k := session.KindPermission; k <= session.KindOther; k++ {
		assert.False(t, seen[k.String()], "%v", k)
		seen[k.String()] = true
	}
	assert.Equal(t, "state(12) state(-1)", fmt.Sprint(session.StateFailed+1, " ", session.State(-1)))
	assert.Equal(t, "kind(6) kind(-1)", fmt.Sprint(session.KindOther+1, " ", session.Kind(-1)))
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	assert.Equal(t, session.Limits{
		Messages: 4096, Bytes: 4 << 20, HardBytes: 8 << 20, Requests: 16384, Answers: 4096,
		Initialize: 2 * time.Minute, Control: time.Minute, Stall: 30 * time.Minute,
		Retry: 30 * time.Minute, Start: 5 * time.Minute,
	}, session.Limits{}.WithDefaults())
	given := session.Limits{
		Messages: 1, Bytes: 5 << 20, Requests: 2, Answers: 3, Initialize: -1, Control: time.Second,
		Consumer: time.Hour, Background: -1, Stall: -1,
		Retry: -1, Start: -1, StallKill: time.Second,
	}
	want := given
	want.HardBytes = 10 << 20
	assert.Equal(t, want, given.WithDefaults(), "what is given stays, and HardBytes is twice Bytes")

	assert.Equal(t, session.Graces{Output: 2 * time.Second, Sweep: 10 * time.Second}, session.Graces{}.WithDefaults())
	graces := session.Graces{Flush: 1, EOF: 2, Terminate: 3, Output: 4, Sweep: 5}
	assert.Equal(t, graces, graces.WithDefaults())
}

// explained is a cause that names everything itself.
type explained struct{ error }

func (explained) Explained() string { return `lookup "x": not there: install it` }

func TestTextsOfErrors(t *testing.T) {
	t.Parallel()
	odd := errors.New("odd")
	for want, err := range map[string]error{
		"start agent x in /d: odd (searched /a:/b); stderr: no \\x1b": &session.StartError{
			Path: "x", Dir: "/d", Searched: []string{"/a", "/b"}, Stderr: "no \x1b\n", Err: odd,
		},
		`start agent: lookup "x": not there: install it`: &session.StartError{
			Path: "x", Dir: "/d", Searched: []string{"/a"}, Err: fmt.Errorf("spawn: %w", explained{odd}),
		},
		"agent ended while idle: signal SIGKILL (not sent by Troupe)":                               &session.ExitError{During: "idle", Status: session.ExitStatus{Code: -1, Signal: "SIGKILL"}},
		"agent ended during a turn: exit code 143 (as after a SIGTERM, not sent by Troupe)":         &session.ExitError{During: "a turn", Status: session.ExitStatus{Code: 143}},
		"agent ended during a turn: exit code 1 (after Troupe's close ladder: SIGTERM); stdout: so": &session.ExitError{During: "a turn", Status: session.ExitStatus{Code: 1}, LadderStep: "SIGTERM", StdoutTail: "so"},
		"2 processes of the agent did not stop: 1 (a), 2 (b)":                                       &session.LeftoverError{Processes: []session.ProcInfo{{PID: 1, Command: "a"}, {PID: 2, Command: "b"}}},
		"the agent's process tree could not be swept: odd":                                          &session.LeftoverError{Err: odd},
		session.ErrStdoutHeld.Error():                                                               &session.LeftoverError{Err: session.ErrStdoutHeld},
		"the agent refused control request interrupt (busy): later":                                 &session.ControlError{Request: "interrupt", Code: "busy", Message: "later"},
		"initialize: no answer within 1s (set by X); stderr: e; stdout: o":                          &session.TimeoutError{What: "initialize", Limit: time.Second, SetBy: "X", StderrTail: "e", StdoutTail: " o"},
		"panic while handling Bash: odd":                                                            &session.PanicError{Message: "Bash", Value: odd},
		"session: illegal transition ready -> closed":                                               &session.IllegalTransitionError{From: session.StateReady, To: session.StateClosed},
	} {
		assert.EqualError(t, err, want)
	}
	for _, err := range []error{
		&session.StartError{Err: odd}, &session.AuthError{Err: odd}, &session.LeftoverError{Err: odd},
		&session.UnfinishedError{Err: odd}, &session.PanicError{Value: odd}, &session.PatternError{Err: odd},
	} {
		assert.ErrorIs(t, err, odd, "%T", err)
	}
	assert.ErrorIs(t, &session.TimeoutError{}, context.DeadlineExceeded)
	assert.ErrorIs(t, &session.ModelPolicyTimeoutError{}, context.DeadlineExceeded)
}

func TestUnfinishedErrorNamesTheOldest(t *testing.T) {
	t.Parallel()
	e := &session.UnfinishedError{
		Doing: "run", State: session.StateRunning, Err: context.Canceled, Called: 2, Messages: 3, Text: "so",
		Tools: []session.RunningTool{{ID: "t\x1b", Name: "Bash", Age: time.Second}},
	}
	for i := range 6 {
		e.Waits = append(e.Waits, session.Wait{What: fmt.Sprint("w", i), Age: time.Second})
	}
	assert.EqualError(t, e, `run: unfinished when the context ended (context canceled); session running`+
		`; waiting for w0 (1s), w1 (1s), w2 (1s), w3 (1s) and 2 more; running tools: Bash t\x1b (1s)`+
		`; messages so far: 3, tools called: 2, last text "so"`)
}

func TestATokenIsNeverShown(t *testing.T) {
	t.Parallel()
	token := session.Token{Value: "secret", ExpiresAt: time.Unix(0, 0).UTC()}
	raw, err := json.Marshal(token)
	require.NoError(t, err)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%d"} {
		assert.NotContains(t, fmt.Sprintf(verb, token), "secret", verb)
		assert.NotContains(t, fmt.Sprintf(verb, struct{ T session.Token }{token}), "secret", verb)
	}
	assert.NotContains(t, string(raw)+token.LogValue().String(), "secret")
	assert.Equal(t, "token until 1970-01-01T00:00:00Z", token.String())
	assert.Equal(t, "no token", session.Token{}.String())
	assert.Equal(t, "token", session.Token{Value: "x"}.String())
	assert.Equal(t, `"token" Token(token)`, fmt.Sprintf("%q %#v", session.Token{Value: "x"}, session.Token{Value: "x"}))
}

// decision is what a supervisor decided.
type decision struct{}

func (decision) LogValue() slog.Value { return slog.StringValue("x") }

func TestEvents(t *testing.T) {
	t.Parallel()
	for want, e := range map[string]session.Event{
		"DEBUG state ready -> running":                   &session.StateChanged{From: "ready", To: "running"},
		"WARN state running -> recovering: it died":      &session.StateChanged{From: "running", To: "recovering", Reason: "it died"},
		"DEBUG state ready -> closing: asked":            &session.StateChanged{From: "ready", To: "closing", Reason: "asked"},
		"ERROR actor router failed: odd":                 &session.ActorFailed{Actor: "router", Reason: errors.New("odd")},
		"WARN noise from the agent: odd":                 &session.NoiseLine{Err: errors.New("odd")},
		"WARN line of 7 bytes skipped, the ceiling is 5": &session.OversizeLine{Length: 7, Ceiling: 5},
		"WARN hook callback for Bash failed: odd":        &session.CallbackFailed{Kind: "hook", Name: "Bash", Err: errors.New("odd")},
		"DEBUG late answer to hook request r1 ignored":   &session.LateAnswer{Kind: "hook", RequestID: "r1"},
		`INFO unexpected a b for id "c" ignored`:         &session.UnexpectedFrame{Type: "a", Subtype: "b", RequestID: "c"},
		`WARN hook request "r1" of the agent: denied`:    &session.RepeatedRequest{Kind: "hook", RequestID: "r1", Outcome: "denied"},
		"WARN odd":              &session.WarningIssued{Problem: "odd"},
		"DEBUG agent stderr: x": &session.StderrLine{Line: "x"},
		"WARN 3 events lost: their reader has fallen behind":                   &session.EventsLost{Count: 3},
		"DEBUG session closed":                                                 &session.Ended{},
		"ERROR session failed: odd":                                            &session.Ended{Reason: errors.New("odd")},
		"WARN the agent's login is missing or has expired: 401":                &session.AuthExpired{Reason: "401"},
		"WARN 2 partial messages (9 bytes) dropped: nobody reads the messages": &session.MessagesDropped{Count: 2, Bytes: 9},
	} {
		assert.Equal(t, want, e.Level().String()+" "+e.String())
		assert.Equal(t, e.String(), e.LogValue().String())
	}
	s := &session.Supervision{Decision: decision{}}
	assert.Equal(t, "WARN supervisor: x", s.Level().String()+" "+s.String())
}

func TestStatesAreReadBack(t *testing.T) {
	t.Parallel()
	for s := session.StateAdmitting; s <= session.StateFailed; s++ {
		text, err := s.MarshalText()
		require.NoError(t, err)
		var back session.State
		require.NoError(t, back.UnmarshalText(text))
		assert.Equal(t, s, back)
	}
	require.ErrorContains(t, new(session.State).UnmarshalText([]byte("dreaming")), "dreaming")
}

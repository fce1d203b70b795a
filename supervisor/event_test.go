package supervisor_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/supervisor"
)

func TestEventsReadWell(t *testing.T) {
	t.Parallel()
	o := supervisor.Origin{At: epoch, Supervisor: "sup"}
	failure := &supervisor.Failure{
		Supervisor: "sup", Child: "a", Incarnation: 3, Reason: errBoom,
		Limit:   supervisor.Intensity{Max: 1, Window: time.Minute},
		Earlier: []supervisor.Failed{{At: epoch, Child: "b", Incarnation: 1, Reason: io.EOF}},
	}
	for _, c := range []struct {
		event     supervisor.Event
		text, log string
	}{
		{
			&supervisor.ChildStarted{Origin: o, Child: "a", Incarnation: 2},
			"sup: a#2 started", `e.event=child_started e.supervisor=sup e.child=a e.incarnation=2`,
		},
		{
			&supervisor.ChildFailed{Origin: o, Child: "a", Incarnation: 2, Reason: errBoom},
			"sup: a#2 failed: boom", `e.event=child_failed e.supervisor=sup e.child=a e.incarnation=2 e.reason=boom`,
		},
		{
			&supervisor.ChildFailed{Origin: o, Child: "a", Incarnation: 2},
			"sup: a#2 failed: ended normally", `e.event=child_failed e.supervisor=sup e.child=a e.incarnation=2`,
		},
		{
			&supervisor.ChildStopped{Origin: o, Child: "a", Incarnation: 2, Reason: errors.Join(io.EOF, errBoom)},
			"sup: a#2 stopped: EOF; boom", `e.event=child_stopped e.supervisor=sup e.child=a e.incarnation=2 e.reason="EOF\nboom"`,
		},
		{
			&supervisor.ChildStuck{Origin: o, Child: "a", Incarnation: 2},
			"sup: a#2 did not stop, not even when killed", `e.event=child_stuck e.supervisor=sup e.child=a e.incarnation=2`,
		},
		{
			&supervisor.RestartScheduled{Origin: o, Child: "a", Reason: errBoom, Delay: time.Second, Children: []string{"a", "b"}},
			"sup: restart of a, b in 1s: boom", `e.event=restart_scheduled e.supervisor=sup e.child=a e.reason=boom e.delay=1s e.children="[a b]"`,
		},
		{
			&supervisor.Restarted{Origin: o, Child: "a", Children: []string{"a", "b"}},
			"sup: restarted a, b", `e.event=restarted e.supervisor=sup e.child=a e.children="[a b]"`,
		},
		{
			&supervisor.IntensityExceeded{Origin: o, Child: "a", Failures: 2, Limit: failure.Limit},
			"sup: 2 failures within 1m0s, 1 allowed", `e.event=intensity_exceeded e.supervisor=sup e.child=a e.failures=2 e.max=1 e.window=1m0s`,
		},
		{
			&supervisor.IntensityExceeded{Origin: o, Child: "a", Failures: 1, Limit: supervisor.Intensity{Max: -1}},
			"sup: a failed and is never to be restarted", `e.event=intensity_exceeded e.supervisor=sup e.child=a e.failures=1 e.max=-1 e.window=0s`,
		},
		{
			&supervisor.Escalated{Origin: o, Failure: failure},
			"sup: escalated: supervisor sup gave up after 2 failures within 1m0s: a#3: boom",
			`e.event=escalated e.supervisor=sup e.failure.supervisor=sup e.failure.child=a e.failure.incarnation=3 e.failure.reason=boom e.failure.earlier="[b#1: EOF]"`,
		},
		{&supervisor.Stopping{Origin: o}, "sup: stopping", `e.event=stopping e.supervisor=sup`},
		{&supervisor.Stopping{Origin: o, Reason: errBoom}, "sup: stopping: boom", `e.event=stopping e.supervisor=sup e.reason=boom`},
		{
			&supervisor.Stopped{Origin: o, Reason: errBoom, Stuck: []string{"a", "b"}},
			"sup: stopped without a, b: boom", `e.event=stopped e.supervisor=sup e.reason=boom e.stuck="[a b]"`,
		},
	} {
		assert.Equal(t, c.text, c.event.String())
		assert.Equal(t, c.log, logged(c.event))
		assert.Equal(t, epoch, c.event.When())
	}
}

func logged(e supervisor.Event) string {
	var buf bytes.Buffer
	onlyE := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey || a.Key == slog.MessageKey {
			return slog.Attr{}
		}
		return a
	}
	slog.New(slog.NewTextHandler(&buf, &slog.HandlerOptions{ReplaceAttr: onlyE})).Info("", "e", e)
	return string(bytes.TrimSpace(buf.Bytes()))
}

type exitError struct{ code int }

func (e *exitError) Error() string { return fmt.Sprintf("exit status %d", e.code) }

func TestFailureCarriesTheChain(t *testing.T) {
	t.Parallel()
	limit := supervisor.Intensity{Max: 1, Window: time.Minute}
	inner := &supervisor.Failure{
		Supervisor: "session", Child: "transport", Incarnation: 3, Reason: &exitError{2}, Limit: limit,
		Earlier: []supervisor.Failed{
			{Child: "transport", Incarnation: 1, Reason: &exitError{1}},
			{Child: "transport", Incarnation: 2},
		},
	}
	outer := &supervisor.Failure{
		Supervisor: "fleet", Child: "session", Incarnation: 1,
		Reason: fmt.Errorf("escalated: %w", inner), Limit: supervisor.Intensity{Max: -1},
		Earlier: []supervisor.Failed{{Reason: io.EOF}},
	}
	assert.EqualError(t, outer, "supervisor fleet gave up, being told never to restart: session#1: "+
		"escalated: supervisor session gave up after 3 failures within 1m0s: transport#3: exit status 2")
	var exit *exitError
	require.ErrorAs(t, outer, &exit)
	assert.Equal(t, 2, exit.code, "the last reason comes first")
	require.ErrorIs(t, outer, io.EOF)
	require.ErrorIs(t, outer, supervisor.ErrIntensity)
	assert.Equal(t, []error{inner.Reason, inner.Earlier[0].Reason}, inner.Unwrap(), "no nil among them")
	assert.Equal(t, "transport#2: ended normally", inner.Earlier[1].String())

	multi := &supervisor.Failure{Supervisor: "s", Child: "c", Reason: errors.Join(io.EOF, errBoom)}
	assert.EqualError(t, multi, "supervisor s gave up: c#0: EOF; boom")
	require.NotErrorIs(t, multi, supervisor.ErrIntensity)
}

//go:build conformance

package conformance_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// ended is what the process said of its end.
func (r *rig) ended() string {
	for _, s := range r.wire.said() {
		if how, ok := strings.CutPrefix(s.text, reaped); ok && s.who == "process" {
			return how
		}
	}
	return ""
}

// patient are options whose ladder has no step that runs out, however busy the
// machine is: a signal would be a bug.
func (r *rig) patient() *sdk.Options {
	o := r.options()
	o.InterruptGrace, o.Graces.EOF, o.CloseTimeout = turnLimit, turnLimit, turnLimit
	return o
}

// left checks that the agent went by itself.
func (r *rig) left(code int) {
	r.t.Helper()
	assert.Equal(r.t, fmt.Sprint("exit code ", code), r.ended())
	for _, s := range r.wire.said() {
		assert.False(r.t, s.who == "process" && strings.HasPrefix(s.text, "SIG"), "the agent got a %s", s.text)
	}
}

func checkCloseWhileIdle(t *testing.T, rel release) {
	r := rel.rig(t)
	c := r.connect(r.patient())
	r.ask(c, "hi [[scn:text]]")
	require.NoError(t, c.AwaitIdle(r.ctx))
	r.close(c)
	r.left(0)
	require.NoError(t, c.Close(r.ctx), "a second time")
	_, err := c.Send(r.ctx, sdk.UserText("too late"))
	require.ErrorIs(t, err, sdk.ErrClosed)
}

func TestCloseBeforeTheFirstMessage(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.connect(r.patient())
	r.close(c)
	r.left(0)
}

// The ladder: the turn is interrupted, which ends the command, and the agent
// leaves at the end of stdin without a signal. Its exit code tells that the
// last result was an error.
func checkCloseWhileAToolRuns(t *testing.T, rel release) {
	r := rel.rig(t)
	prompt, running := r.hold()
	o := r.patient()
	o.AllowedTools = []string{"Bash"}
	c := r.connect(o)
	turn := r.send(c, prompt)
	running()
	r.close(c)
	r.left(1)
	result, err := turn.Result(r.ctx)
	require.NoError(t, err)
	assert.Equal(t, "aborted_tools", result.TerminalReason)
}

func TestCloseWhileTheModelHangs(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.connect(r.patient())
	first, second := r.hanging(c)
	r.close(c)
	result, err := first.Result(r.ctx)
	require.NoError(t, err)
	assert.Equal(t, "aborted_streaming", result.TerminalReason)
	_, err = second.Result(r.ctx)
	require.Error(t, err)
	assert.Empty(t, r.model.Requests()[1:], "the queued message was not run")
}

// Whether the message was written yet or not: it does not run.
func TestCloseRightAfterSend(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	c := r.connect(o)
	turn := r.send(c, r.touch("late"))
	r.close(c)
	assert.NoFileExists(t, r.at("late"))
	if result, err := turn.Result(r.ctx); err == nil {
		assert.True(t, result.Failed())
	}
}

// At the end of stdin the agent would go on with the turn, and deny or run what
// is pending by rules of its own. So the gates come first.
func TestCloseWhileAHookIsPending(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	fired, ended := make(chan struct{}, 1), make(chan error, 1)
	o := r.guarded(func(ctx context.Context, _ *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		fired <- struct{}{}
		<-ctx.Done()
		ended <- ctx.Err()
		return sdk.PreToolUseOutput{PermissionDecision: protocol.HookAllow}, nil // too late
	})
	c := r.connect(o)
	r.send(c, r.touch("late"))
	await(r, "the hook", fired)
	r.close(c)
	require.ErrorIs(t, await(r, "the end of the hook's context", ended), context.Canceled)
	assert.NoFileExists(t, r.at("late"))
}

func TestCloseWhilePermissionIsPending(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	asked, never := make(chan struct{}, 1), make(chan struct{})
	t.Cleanup(func() { close(never) })
	o := r.options()
	o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		asked <- struct{}{}
		<-never // deaf to its context, too
		return sdk.Allow(), nil
	}
	c := r.connect(o)
	r.send(c, r.touch("late"))
	await(r, "the question", asked)
	r.close(c)
	assert.NoFileExists(t, r.at("late"))
}

// Without time to interrupt the turn the agent is terminated: what is pending
// or runs then must not take effect either.
func TestCloseThatDoesNotWaitForTheTurn(t *testing.T) {
	t.Parallel()
	for name, grace := range map[string]time.Duration{"terminated": turnLimit, "killed": 1} {
		t.Run(name+" while a tool runs", func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			r.wire.deaf = name == "killed" // or the agent may leave before the kill
			prompt, running := r.hold()
			o := r.options()
			o.AllowedTools, o.InterruptGrace, o.Graces.Terminate = []string{"Bash"}, 1, grace
			c := r.connect(o)
			turn := r.send(c, prompt)
			running()
			if name == "terminated" {
				r.close(c)
				assert.Equal(t, "exit code 143", r.ended())
			} else {
				var killed *session.KilledError
				require.ErrorAs(t, c.Close(r.ctx), &killed)
				r.nothingRuns()
			}
			if result, err := turn.Result(r.ctx); err == nil { // it may just have come
				assert.Equal(t, "aborted_tools", result.TerminalReason)
			} else {
				require.ErrorIs(t, err, sdk.ErrClosed)
			}
		})
	}
	t.Run("a hook is pending", func(t *testing.T) {
		t.Parallel()
		r := newRig(t)
		fired, never := make(chan struct{}, 1), make(chan struct{})
		t.Cleanup(func() { close(never) })
		o := r.guarded(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			fired <- struct{}{}
			<-never
			return sdk.PreToolUseOutput{PermissionDecision: protocol.HookAllow}, nil
		})
		o.InterruptGrace = 1
		c := r.connect(o)
		r.send(c, r.touch("late"))
		await(r, "the hook", fired)
		r.close(c)
		assert.NoFileExists(t, r.at("late"))
	})
}

func TestCloseFromACallback(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	closed := make(chan error, 1)
	var c *sdk.Client
	o := r.guarded(func(ctx context.Context, _ *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		closed <- c.Close(context.WithoutCancel(ctx))
		return sdk.PreToolUseOutput{PermissionDecision: protocol.HookAllow}, nil // too late
	})
	c = r.connect(o)
	r.send(c, r.touch("late"))
	require.NoError(t, await(r, "the close", closed))
	r.nothingRuns()
	assert.NoFileExists(t, r.at("late"))
}

func TestLeavingTheLoopOfAQuery(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	prompt, running := r.hold()
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	for m, err := range sdk.Query(r.ctx, prompt, o) {
		require.NoError(t, err)
		if len(sdk.ToolUses(m)) > 0 {
			running()
			break
		}
	}
	r.nothingRuns()
}

func TestCancelledContextEndsARun(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	prompt, running := r.hold()
	o := r.options()
	o.AllowedTools = []string{"Bash"}
	ctx, cancel := context.WithCancel(r.ctx)
	go func() {
		defer cancel()
		running()
	}()
	_, err := sdk.Run(ctx, prompt, o)
	require.ErrorIs(t, err, context.Canceled)
	r.nothingRuns()
}

func TestConnectThatIsGivenUp(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	ctx, cancel := context.WithCancel(r.ctx)
	r.wire.edit = func(b []byte) []byte { // of the host's first word: the agent cannot have answered yet
		cancel()
		return b
	}
	c := sdk.NewClient(r.options())
	require.ErrorIs(t, c.Connect(ctx), context.Canceled)
	r.nothingRuns()
	require.NoError(t, c.Connect(r.ctx), "it may be tried again")
	_, result := r.ask(c, "hi [[scn:text]]")
	assert.False(t, result.Failed())
	r.close(c)
}

func TestAgentThatCannotBeStarted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		change func(*rig, *sdk.Options)
		is     error
	}{
		"no such program": {func(r *rig, o *sdk.Options) { o.Backend = sdk.Claude(sdk.ClaudeConfig{Path: r.at("nosuch")}) }, os.ErrNotExist},
		"no program": {func(r *rig, o *sdk.Options) {
			path := r.at("plain")
			assert.NoError(r.t, os.WriteFile(path, []byte("no program"), 0o600))
			o.Backend = sdk.Claude(sdk.ClaudeConfig{Path: path})
		}, os.ErrPermission},
		"no such cwd": {func(r *rig, o *sdk.Options) { o.Cwd = filepath.Join(r.root, "nowhere") }, os.ErrNotExist},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			o := r.options()
			tc.change(r, o)
			_, err := sdk.Run(r.ctx, "hi [[scn:text]]", o)
			var start *sdk.StartError
			require.ErrorAs(t, err, &start)
			require.ErrorIs(t, err, tc.is)
			assert.NotEmpty(t, start.Path)
			assert.False(t, sdk.Retryable(err))
			assert.NotContains(t, err.Error(), "sk-test-offline")
		})
	}
}

func TestAgentThatRefusesItsArguments(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	o := r.options()
	o.ExtraArgs = map[string]sdk.Opt[string]{"no-such-flag": {}}
	_, err := sdk.Run(r.ctx, "hi [[scn:text]]", o)
	var exit *sdk.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 1, exit.Status.Code)
	assert.Equal(t, "initialize", exit.During)
	assert.Contains(t, exit.StderrTail, "no-such-flag")
}

// The shell of a killed agent lives on in a session of its own, under another
// parent. The sweep finds it.
func checkKilledAgent(t *testing.T, rel release) {
	for name, tc := range map[string]struct {
		signal os.Signal
		ends   string
	}{
		"SIGKILL": {os.Kill, "signal SIGKILL"},
		"SIGTERM": {syscall.SIGTERM, "exit code 143"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := rel.rig(t)
			prompt, running := r.hold()
			o := r.options()
			o.AllowedTools = []string{"Bash"}
			c := r.connect(o)
			turn := r.send(c, prompt)
			running()
			agent, err := os.FindProcess(r.rt.Sessions()[0].PID())
			require.NoError(t, err)
			require.NoError(t, agent.Signal(tc.signal))

			_, err = sdk.Collect(c.Messages(r.ctx))
			r.nothingRuns()
			var exit *sdk.ExitError
			require.ErrorAs(t, err, &exit)
			assert.Equal(t, tc.ends, exit.Status.String())
			assert.Equal(t, "a turn", exit.During)
			assert.True(t, sdk.Retryable(err))
			_, err = turn.Result(r.ctx)
			require.ErrorAs(t, err, &exit)
			require.NoError(t, c.Close(r.ctx))
		})
	}
}

func TestAgentKilledWhileIdle(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	c := r.connect(r.options())
	r.ask(c, "hi [[scn:text]]")
	require.NoError(t, c.AwaitIdle(r.ctx))
	agent, err := os.FindProcess(r.rt.Sessions()[0].PID())
	require.NoError(t, err)
	require.NoError(t, agent.Kill())
	_, err = sdk.Collect(c.Messages(r.ctx))
	var exit *sdk.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, "idle", exit.During)
	r.nothingRuns()
	require.NoError(t, c.Close(r.ctx))
}

// Two sessions of one runtime know nothing of each other.
func TestTwoAgentsAtOnce(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	one, other := r.connect(r.options()), r.connect(r.options())
	first, second := r.send(one, "one [[scn:echo to one]]"), r.send(other, "other [[scn:echo to the other]]")
	result, err := first.Result(r.ctx)
	require.NoError(t, err)
	assert.Equal(t, "to one", result.Result)
	require.NoError(t, one.Close(r.ctx))
	result, err = second.Result(r.ctx)
	require.NoError(t, err)
	assert.Equal(t, "to the other", result.Result)
	_, result = r.ask(other, "still there? [[scn:text]]")
	assert.False(t, result.Failed())
	assert.NotEqual(t, one.SessionID(), other.SessionID())
	r.close(other)
}

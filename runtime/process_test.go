package runtime_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// withToken lists the processes of this machine that have token in their
// arguments: leftovers are looked for from outside, never by our own marker.
func withToken(t *testing.T, token string) []string {
	t.Helper()
	procs, err := filepath.Glob("/proc/[0-9]*") // a name below would list each directory
	require.NoError(t, err)
	var found []string
	for _, p := range procs {
		b, err := os.ReadFile(filepath.Join(p, "cmdline"))
		if err == nil && strings.Contains(string(b), token) {
			found = append(found, strings.ReplaceAll(string(b), "\x00", " "))
		}
	}
	return found
}

func processSpec(t *testing.T, token, script string) runtime.Spec {
	t.Helper()
	bin, err := scriptedBinary()
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), token+".yaml")
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(script, "TOKEN", token)), 0o600))
	return runtime.Spec{
		Dialect: claude.New(),
		Options: session.Options{
			PathToExecutable: bin, Cwd: t.TempDir(), Env: map[string]string{"TROUPE_SCRIPT": path},
			ExtraArgs: map[string]session.Opt[string]{"token": session.Some(token)},
			Graces: session.Graces{
				EOF: 500 * time.Millisecond, Terminate: 300 * time.Millisecond, Output: 300 * time.Millisecond,
				Sweep: patience, // what forks is swept beside all the other tests
			},
			InterruptGrace: 300 * time.Millisecond,
		},
	}
}

const hello = "turns: [{steps: [{text: hello}]}]\n"

// TestProcessTreeIsGone drives misbehaving agents to the end of a turn, closes them,
// and looks for remaining processes.
func TestProcessTreeIsGone(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("the sweep is claimed for Linux only")
	}
	for name, script := range map[string]string{
		"polite":                       hello,
		"ignores EOF":                  hello + "misbehave: {ignore_eof: true}",
		"ignores EOF and SIGTERM":      hello + "misbehave: {ignore_eof: true, trap_term: true}",
		"slow to exit":                 hello + "misbehave: {exit_delay: 200ms}",
		"floods stderr":                hello + "misbehave: {stderr: 2MiB}",
		"child in its group":           hello + "misbehave: {children: [{token: TOKEN}]}",
		"child that holds stdout":      hello + "misbehave: {children: [{token: TOKEN, hold_stdout: true}]}",
		"child in its own session":     hello + "misbehave: {children: [{token: TOKEN, session: true, hold_stdout: true}]}",
		"child that was re-parented":   hello + "misbehave: {children: [{token: TOKEN, session: true, reparent: true, trap_term: true}]}",
		"child that keeps forking":     hello + "misbehave: {children: [{token: TOKEN, session: true, forks: 3ms, lifetime: 60s}]}",
		"exits right after its result": "turns: [{steps: [{text: hello}]}]\nmisbehave: {die: {at: after-result}}",
		"splits every byte":            hello + "misbehave: {split: bytes}",
		"noise between frames":         hello + "misbehave: {noise: ['null', '42', '\"x\"', '[]', '{broken', '']}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rt, err := runtime.New(runtime.Config{})
			require.NoError(t, err)
			token := "troupe-test-" + kernel.NewID(kernel.NewRand(nil))
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			spec := processSpec(t, token, script)
			if !strings.Contains(script, "hold_stdout") {
				spec.Options.Graces.Output = patience
			}
			s, err := rt.Open(ctx, spec)
			require.NoError(t, err)
			require.NotEmpty(t, withToken(t, token), "the token must be visible while the agent lives")
			turn, err := s.Send(ctx, userText("hi"))
			require.NoError(t, err)
			var got []string
			for m, err := range turn.Messages(ctx) {
				require.NoError(t, err)
				if text := protocol.TextOf(m); text != "" {
					got = append(got, text)
				}
			}
			assert.Contains(t, got, "hello")
			r, err := turn.Result(ctx)
			require.NoError(t, err)
			assert.Equal(t, "hello", r.Result)
			require.NoError(t, s.Close(ctx))
			assert.Empty(t, withToken(t, token), "no-orphans")
			require.NoError(t, rt.Shutdown(ctx))
		})
	}
}

// TestAgentDies kills the agent at each point of the protocol. The user gets a
// typed error with what the agent wrote before, and nothing is left.
func TestAgentDies(t *testing.T) {
	t.Parallel()
	tool := "turns: [{steps: [{text: a}, {tool_use: {name: Bash, gate: ask, result: ok}}, {text: b}]}]\n"
	for _, at := range []string{"before-init-response", "after-init-response", "mid-assistant", "pending-permission", "before-result"} {
		for _, how := range []string{"signal: KILL", "code: 0", "code: 3"} {
			t.Run(at+" "+how, func(t *testing.T) {
				t.Parallel()
				rt, err := runtime.New(runtime.Config{})
				require.NoError(t, err)
				token := "troupe-test-" + kernel.NewID(kernel.NewRand(nil))
				ctx, cancel := context.WithTimeout(context.Background(), patience)
				defer cancel()
				spec := processSpec(t, token, tool+fmt.Sprintf("misbehave: {die: {at: %s, %s}, children: [{token: TOKEN, session: true}]}", at, how))
				decided := make(chan struct{})
				spec.Options.CanUseTool = func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
					close(decided)
					<-ctx.Done() // this answer comes too late
					return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil
				}
				if at == "before-result" {
					spec.Options.CanUseTool = func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
						return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil
					}
				}
				exit := openAndFail(ctx, t, rt, spec)
				if strings.Contains(how, "KILL") {
					assert.Equal(t, "SIGKILL", exit.Status.Signal)
				} else {
					assert.Equal(t, how, fmt.Sprint("code: ", exit.Status.Code))
				}
				assert.Empty(t, withToken(t, token), "no-orphans")
				require.NoError(t, rt.Shutdown(ctx))
			})
		}
	}
}

// openAndFail runs a turn that the agent does not survive.
func openAndFail(ctx context.Context, t *testing.T, rt *runtime.Runtime, spec runtime.Spec) *session.ExitError {
	t.Helper()
	s, err := rt.Open(ctx, spec)
	if err == nil {
		var turn *runtime.Turn
		if turn, err = s.Send(ctx, userText("hi")); err == nil {
			for _, err = range turn.Messages(ctx) {
			}
			_, resultErr := turn.Result(ctx)
			require.ErrorAs(t, resultErr, new(*session.ExitError))
		}
		require.NoError(t, kernel.GoExecutor{}.Await(ctx, s.Done()))
		assert.Equal(t, session.StateFailed, s.State())
	}
	var exit *session.ExitError
	require.ErrorAs(t, err, &exit)
	return exit
}

func TestInitializeGoesWrong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault string
		limit time.Duration // 0: the default
		check func(*testing.T, error)
	}{
		"refused": {"{mode: refuse, error: not today, code: nope}", 0, func(t *testing.T, err error) {
			var refused *session.ControlError
			require.ErrorAs(t, err, &refused)
			assert.Equal(t, "nope", refused.Code)
			assert.ErrorContains(t, err, "not today")
		}},
		"never answered": {"{mode: never}", 2 * time.Second, func(t *testing.T, err error) {
			require.ErrorIs(t, err, context.DeadlineExceeded)
			assert.ErrorContains(t, err, "initialize: no answer within")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rt, err := runtime.New(runtime.Config{})
			require.NoError(t, err)
			token := "troupe-test-" + kernel.NewID(kernel.NewRand(nil))
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			spec := processSpec(t, token, hello+"misbehave: {initialize: "+c.fault+"}")
			spec.Options.Limits.Initialize = c.limit
			_, err = rt.Open(ctx, spec)
			c.check(t, err)
			assert.Empty(t, withToken(t, token), "no-orphans")
			require.NoError(t, rt.Shutdown(ctx))
		})
	}
}

func userText(s string) *protocol.UserMessage {
	return &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent(s)}}
}

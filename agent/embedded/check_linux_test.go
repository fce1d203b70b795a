package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/sdk"
)

// checked are options of an agent with a check.
func checked(t *testing.T, c *embedded.Check, steps ...modelapi.Step) (*sdk.Options, *bodies) {
	t.Helper()
	server, o := started(t, steps...)
	seen := &bodies{}
	o.Backend = embedded.New(embedded.Config{
		Name: "claude-sonnet-4-5", Dir: t.TempDir(), Check: c,
		Model: model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: server.URL() + "/v1", Client: &http.Client{Transport: seen}}}),
	})
	o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeBypassPermissions, true
	return o, seen
}

func sh(command string) modelapi.Step {
	return modelapi.Say(modelapi.ToolUse("Bash", map[string]any{"command": command}))
}

// ran is how often the check has run: each run writes a line.
func ran(t *testing.T, o *sdk.Options) int {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(o.Cwd, "ran"))
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	require.NoError(t, err)
	return strings.Count(string(b), "\n")
}

const wantsB = `echo x >>ran; test -e b || { echo "b is missing" >&2; exit 3; }`

// The output of a failed check goes back to the model, which corrects the fault.
func TestACheckThatFailsFirst(t *testing.T) {
	t.Parallel()
	o, seen := checked(t, &embedded.Check{Command: wantsB}, sh("touch a"), say("done"), sh("touch b"), say("now"), sh("cat a"), say("read"), say("talk"))
	c := open(t, o)
	r := ask(t, c, mine)
	assert.Equal(t, "now", r.Result)
	assert.Equal(t, "completed", r.TerminalReason)
	all := seen.messages()
	require.Len(t, all, 4)
	assert.Contains(t, all[2], "has ended with exit code 3.\\nb is missing\\n")
	assert.Equal(t, 2, ran(t, o))
	ask(t, c, more)
	ask(t, c, more)
	assert.Equal(t, 2, ran(t, o), "nothing has changed since it passed")
}

// After Rounds the turn ends, and the result says why. A check is not run twice if nothing was done.
func TestACheckThatNeverPasses(t *testing.T) {
	t.Parallel()
	o, seen := checked(t, &embedded.Check{Command: wantsB, Rounds: 2}, sh("touch a"), say("one"), say("two"), say("three"), say("four"), sh("touch b"), say("five"))
	c := open(t, o)
	r := ask(t, c, mine)
	assert.Equal(t, "three", r.Result)
	assert.False(t, r.IsError)
	assert.Equal(t, "check_failed", r.TerminalReason)
	var in struct {
		Output string `json:"check_output"`
	}
	require.NoError(t, json.Unmarshal(r.Raw(), &in))
	assert.Contains(t, in.Output, "b is missing")
	all := seen.messages()
	assert.Equal(t, 2, strings.Count(all[len(all)-1], "The check before the end"))
	assert.Equal(t, 1, ran(t, o))
	r = ask(t, c, more)
	assert.Equal(t, "four", r.Result, "a turn that changes nothing is not checked")
	assert.Equal(t, "completed", r.TerminalReason)
	r = ask(t, c, more)
	assert.Equal(t, "five", r.Result)
	assert.Equal(t, "completed", r.TerminalReason)
	assert.Equal(t, 2, ran(t, o))
}

// A function checks as a command does. Its error ends the turn, as a panic does.
func TestACheckByAFunction(t *testing.T) {
	t.Parallel()
	said, calls := []string{"it is not good", ""}, 0
	c := &embedded.Check{Func: func(_ context.Context, dir string) (string, error) {
		assert.FileExists(t, filepath.Join(dir, "a"))
		calls++
		return said[calls-1], nil
	}}
	o, seen := checked(t, c, sh("touch a"), say("one"), sh("touch c"), say("two"))
	assert.Equal(t, "two", ask(t, open(t, o), mine).Result)
	assert.Contains(t, strings.Join(seen.messages(), ""), "it is not good")
	assert.Equal(t, 2, calls)

	for name, fn := range map[string]func(context.Context, string) (string, error){
		"no judge": func(context.Context, string) (string, error) { return "", errors.New("no judge") },
		"oh":       func(context.Context, string) (string, error) { panic("oh") },
	} {
		o, _ := checked(t, &embedded.Check{Func: fn}, sh("touch a"), say("one"))
		_, err := sdk.Run(limited(t), mine, o)
		require.ErrorContains(t, err, "the check before the end of the turn")
		require.ErrorContains(t, err, name)
	}
}

// A check ends at its timeout, with an interrupt, and with the session, and leaves nothing behind.
func TestACheckThatHangs(t *testing.T) {
	t.Parallel()
	const hangs = `echo $$ >pid; echo started; sleep 1000`
	t.Run("timeout", func(t *testing.T) {
		t.Parallel()
		o, seen := checked(t, &embedded.Check{Command: hangs, Timeout: 4 * time.Second, Rounds: 1}, sh("touch a"), say("one"), say("two"))
		assert.Equal(t, "check_failed", ask(t, open(t, o), mine).TerminalReason)
		assert.Contains(t, seen.last(), "It has not ended after 4s.\\nstarted")
	})
	for name, end := range map[string]func(*testing.T, *sdk.Client){
		"interrupt": func(t *testing.T, c *sdk.Client) {
			t.Helper()
			_, err := c.Interrupt(limited(t))
			require.NoError(t, err)
		},
		"close": func(t *testing.T, c *sdk.Client) {
			t.Helper()
			require.NoError(t, c.Close(limited(t)))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, _ := checked(t, &embedded.Check{Command: hangs}, sh("touch a"), say("one"))
			c := open(t, o)
			turn, err := c.Send(limited(t), sdk.UserText(mine))
			require.NoError(t, err)
			pid := ""
			require.Eventually(t, func() bool {
				b, _ := os.ReadFile(filepath.Join(o.Cwd, "pid")) // it is not there yet
				pid = strings.TrimSpace(string(b))
				return pid != ""
			}, time.Minute, time.Millisecond)
			end(t, c)
			r, err := turn.Result(limited(t))
			if err == nil {
				assert.True(t, r.Failed())
			}
			assert.Eventually(t, func() bool { return !alive(t, pid) }, time.Minute, time.Millisecond)
		})
	}
}

// A deny rule holds for the check, too.
func TestACheckThatIsDenied(t *testing.T) {
	t.Parallel()
	o, _ := checked(t, &embedded.Check{Command: "make test"}, sh("touch a"), say("one"))
	o.DisallowedTools = []string{"Bash(make:*)"}
	_, err := sdk.Run(limited(t), mine, o)
	require.ErrorContains(t, err, "the check before the end of the turn was not run: Permission to use Bash with command make test has been denied.")
}

// A call that does not run changes nothing, so the turn is not checked.
func TestACheckBehindARefusal(t *testing.T) {
	t.Parallel()
	o, _ := checked(t, &embedded.Check{Command: wantsB}, sh("touch a"), say("one"))
	o.DisallowedTools = []string{"Bash(touch:*)"}
	r := ask(t, open(t, o), mine)
	assert.Equal(t, "one", r.Result)
	assert.Equal(t, "completed", r.TerminalReason)
	assert.Zero(t, ran(t, o))
}

func TestChecksThatCannotBe(t *testing.T) {
	t.Parallel()
	fn := func(context.Context, string) (string, error) { return "", nil }
	for want, c := range map[string]*embedded.Check{
		"neither Command nor Func": {Rounds: 1},
		"Command and Func":         {Command: "true", Func: fn},
		"-1 Rounds":                {Command: "true", Rounds: -1},
		"101 Rounds":               {Command: "true", Rounds: 101},
		"the Timeout -1s":          {Func: fn, Timeout: -time.Second},
	} {
		o, _ := checked(t, c)
		_, err := connect(t, o)
		var wrong *sdk.ConfigError
		require.ErrorAs(t, err, &wrong, want)
		assert.Contains(t, wrong.Problem, want)
	}
}

// A turn that the model's refusal has ended is over: it is not checked, nor asked for its structured output.
func TestATurnThatARefusalHasEnded(t *testing.T) {
	t.Parallel()
	refusal := func(modelapi.Call) modelapi.Reply {
		return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text("stopped")}, Stop: "refusal"}
	}
	o, seen := checked(t, &embedded.Check{Command: wantsB}, sh("touch a"), refusal, refusal, say("not asked"))
	o.OutputFormat = sdk.JSONSchema(json.RawMessage(`{"type":"object","properties":{"river":{"type":"string"}}}`))
	r := ask(t, open(t, o), mine)
	assert.True(t, r.IsError)
	assert.Len(t, seen.messages(), 3)
	assert.Zero(t, ran(t, o))
}

//go:build conformance

package conformance_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance"
	"github.com/agent-troupe/troupe/conformance/modelapi"
)

// turnLimit bounds one exchange with a real CLI; a turn takes well under 2 s.
const turnLimit = time.Minute

// testLimit bounds a test, which may have a dozen of them, on a busy machine.
const testLimit = 5 * turnLimit

// rawCLI is the real CLI on bare pipes: no Troupe between the test and it.
type rawCLI struct {
	stdin  io.WriteCloser
	lines  *bufio.Scanner
	stderr *bytes.Buffer
	cmd    *exec.Cmd
}

type frame struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`
	Result  string `json:"result"`
	IsError bool   `json:"is_error"`
	Request struct {
		Subtype string `json:"subtype"`
	} `json:"request"`
	Response struct {
		Subtype   string `json:"subtype"`
		RequestID string `json:"request_id"`
		Response  struct {
			Version string `json:"claude_code_version"`
		} `json:"response"`
	} `json:"response"`
}

func startRaw(t *testing.T, model *modelapi.Server, home string, args ...string) *rawCLI {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), turnLimit)
	argv := append([]string{"--output-format", "stream-json", "--verbose", "--input-format", "stream-json", "--setting-sources="}, args...)
	cmd := exec.CommandContext(ctx, conformance.Claude.CLI(t), argv...)
	cmd.Dir = t.TempDir()
	cmd.Env = conformance.OfflineEnv(model.URL(), home)
	c := &rawCLI{stderr: &bytes.Buffer{}, cmd: cmd}
	cmd.Stderr = c.stderr
	var err error
	c.stdin, err = cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	c.lines = bufio.NewScanner(stdout)
	c.lines.Buffer(nil, 16<<20)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cancel()
		_ = cmd.Wait()
	})
	return c
}

func (c *rawCLI) write(t *testing.T, line string) {
	t.Helper()
	_, err := io.WriteString(c.stdin, line+"\n")
	require.NoError(t, err)
}

// next reads up to and with the first frame of that type.
func (c *rawCLI) next(t *testing.T, kind string) frame {
	t.Helper()
	for c.lines.Scan() {
		var f frame
		require.NoError(t, json.Unmarshal(c.lines.Bytes(), &f), "not a frame: %s", c.lines.Text())
		if f.Type == kind {
			return f
		}
	}
	require.Fail(t, "the CLI ended before a "+kind+" frame", "read: %v\nstderr: %s", c.lines.Err(), c.stderr)
	return frame{}
}

// end closes stdin, reads what is left and waits for the exit.
func (c *rawCLI) end(t *testing.T) {
	t.Helper()
	require.NoError(t, c.stdin.Close())
	for c.lines.Scan() {
	}
	require.NoError(t, c.cmd.Wait(), "stderr: %s", c.stderr)
}

func userLine(t *testing.T, text string) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"type": "user", "session_id": "", "parent_tool_use_id": nil,
		"message": map[string]any{"role": "user", "content": text},
	})
	require.NoError(t, err)
	return string(raw)
}

const initialize = `{"type":"control_request","request_id":"init-1","request":{"subtype":"initialize","systemPrompt":[""]}}`

// slots caps how many agents run at once: each is a process that keeps a core
// busy while it starts.
var slots = make(chan struct{}, 2)

// startModel starts the model of one test, once the test has a slot. A test that took two
// could wait for the second without an end, as another one that has the other does.
func startModel(t *testing.T, c modelapi.Config) *modelapi.Server {
	t.Helper()
	slots <- struct{}{}
	t.Cleanup(func() { <-slots })
	model, err := modelapi.Start(c)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, model.Close()) })
	return model
}

func TestClaudeVersionIsThePinnedOne(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), conformance.Claude.CLI(t), "--version").Output()
	require.NoError(t, err)
	assert.Equal(t, conformance.Claude.Version(), strings.Fields(string(out))[0])
}

func TestClaudeTextTurn(t *testing.T) {
	t.Parallel()
	model := startModel(t, modelapi.Config{})
	cli := startRaw(t, model, t.TempDir())

	cli.write(t, initialize)
	cli.write(t, userLine(t, "say something [[scn:text]]"))

	ready := cli.next(t, "control_response")
	assert.Equal(t, "success", ready.Response.Subtype)
	assert.Equal(t, "init-1", ready.Response.RequestID)
	assert.Equal(t, conformance.Claude.Version(), ready.Response.Response.Version)
	result := cli.next(t, "result")
	assert.Equal(t, "success", result.Subtype)
	assert.False(t, result.IsError)
	assert.Equal(t, "Hello from the scripted model.", result.Result)

	cli.write(t, userLine(t, "and again [[scn:echo second turn]]"))
	assert.Equal(t, "second turn", cli.next(t, "result").Result)
	cli.end(t)

	for _, r := range model.Requests() {
		assert.NotEqual(t, modelapi.Unknown, r.Endpoint, "%s %s", r.Method, r.Path)
	}
}

func TestClaudeToolTurn(t *testing.T) {
	t.Parallel()
	model := startModel(t, modelapi.Config{})
	cli := startRaw(t, model, t.TempDir(), "--dangerously-skip-permissions")

	cli.write(t, initialize)
	cli.write(t, userLine(t, "touch it [[scn:bashwrite]]"))

	assert.Equal(t, "Bashwrite done.", cli.next(t, "result").Result)
	cli.end(t)
	_, err := os.Stat(cli.cmd.Dir + "/made-by-bash")
	require.NoError(t, err, "the tool really ran")
}

func TestClaudeRetriesWhatTheEndpointRefuses(t *testing.T) {
	t.Parallel()
	model := startModel(t, modelapi.Config{})
	cli := startRaw(t, model, t.TempDir())

	cli.write(t, initialize)
	cli.write(t, userLine(t, "try hard [[scn:err529]]"))

	assert.Equal(t, "Recovered from 529.", cli.next(t, "result").Result)
	cli.end(t)
	tries := 0
	for _, r := range model.Requests() {
		if r.Marker.Scenario == "err529" {
			tries++
		}
	}
	assert.Equal(t, 3, tries)
}

// Each scenario that needs no host on the other side of the pipe is played to
// its end: what the endpoint says is what the CLI understands.
func TestClaudePlaysTheScenarios(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"thinking":   "Thought it through.",
		"bashfail":   "Bashfail done.",
		"rwe":        "Files done.",
		"parallel":   "Parallel done.",
		"agentfg":    "Agent fg done.",
		"toolsearch": "ts done",
		"badtool":    "badtool done.",
		"badinput":   "badinput done.",
		"maxtok":     "Script over (maxtok step 1).",
		"partial":    "This answer broke off once.",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			require.NoError(t, os.WriteFile(filepath.Join(dir, "seed.txt"), []byte("seed"), 0o600))
			model := startModel(t, modelapi.Config{WorkDir: dir})
			cli := startRaw(t, model, t.TempDir(),
				"--dangerously-skip-permissions", "--add-dir="+dir, "--tools=default,Glob,Grep")

			cli.write(t, initialize)
			cli.write(t, userLine(t, "play [[scn:"+name+"]]"))
			result := cli.next(t, "result")
			assert.Equal(t, want, result.Result)
			assert.False(t, result.IsError)
			cli.end(t)
		})
	}
}

func TestClaudeInterruptedWhileTheModelHangs(t *testing.T) {
	t.Parallel()
	model := startModel(t, modelapi.Config{})
	cli := startRaw(t, model, t.TempDir())

	cli.write(t, initialize)
	cli.write(t, userLine(t, "wait for ever [[scn:hang]]"))
	_, err := model.Wait(t.Context(), func(r modelapi.Request) bool { return r.Marker.Scenario == "hang" })
	require.NoError(t, err)
	cli.write(t, `{"type":"control_request","request_id":"int-1","request":{"subtype":"interrupt"}}`)
	assert.Equal(t, "error_during_execution", cli.next(t, "result").Subtype)

	cli.write(t, userLine(t, "and now [[scn:text]]"))
	assert.Equal(t, "Hello from the scripted model.", cli.next(t, "result").Result, "the session goes on")
	cli.end(t)
}

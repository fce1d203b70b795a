package command

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// attended is a world with a person at stderr, who types on the returned pipe.
func attended(t *testing.T) (*world, io.WriteCloser) {
	t.Helper()
	w := newWorld()
	w.stderrTTY = true
	w.getenv = func(n string) string { return map[string]string{"TERM": "dumb", "NO_COLOR": "1"}[n] }
	in, typed := io.Pipe()
	t.Cleanup(func() { _ = typed.Close() })
	w.openTTY = func() (io.Reader, error) { return in, nil }
	return w, typed
}

const asks = `turns: [{steps: [{text: "I will look."}, {tool_use: {name: Bash, input: {command: "ls\nwc", zeal: [1, 2]}, gate: ask, result: done}}]}]`

const askedFor = `
The agent asks to use Bash
  command: ls
    wc
  zeal: [1,2]
  a allows until this session ends: Bash
Allow it? [y/n/a/?] `

func TestAsking(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"y\n": "← done", "YES \n": "← done",
		"n\n":             "✗ " + deniedByUser,
		"n use make\n":    "✗ " + deniedWithReason + "use make",
		"No, use make\n":  "✗ " + deniedWithReason + "use make",
		"not that one!\n": "✗ " + deniedWithReason + "not that one!",
	} {
		t.Run(strings.TrimSpace(typed), func(t *testing.T) {
			t.Parallel()
			w, keys := attended(t)
			code := w.start("run", "go", "-a", script(t, asks))
			w.err.await(t, askedFor)
			assert.Equal(t, "I will look.\n", w.out.String(), "what came before is shown before")
			_, _ = io.WriteString(keys, typed)
			assert.Equal(t, exitOK, <-code)
			assert.Equal(t, "  → Bash ls (and 1 more line)\n"+askedFor+"  "+want+"\n", w.err.String())
		})
	}
}

// An answer that is not clear is asked for again, and decides nothing.
func TestAskingAgain(t *testing.T) {
	t.Parallel()
	for typed, says := range map[string]string{
		"yse\n":      `"yse" is not an answer: write y, n, a, ?, or a sentence that says why not.`,
		"\x1b[2J\n":  `"\x1b[2J" is not an answer`,
		"y please\n": `"y please" is not an answer`,
		"yes, no\n":  `"yes, no" is not an answer`,
		"\n":         askedFor + allowQuestion,
		"?\n":        "  a  allow it, and until this session ends: Bash\n  ?  this text\n" + allowQuestion,
	} {
		t.Run(strings.TrimSpace(typed), func(t *testing.T) {
			t.Parallel()
			w, keys := attended(t)
			code := w.start("run", "go", "-a", script(t, asks))
			w.err.await(t, askedFor)
			_, _ = io.WriteString(keys, typed)
			w.err.await(t, says)
			_, _ = io.WriteString(keys, "y\n")
			assert.Equal(t, exitOK, <-code)
			assert.Contains(t, w.err.String(), "← done")
			assert.NotContains(t, w.err.String(), "\x1b")
		})
	}
}

// Without suggestions, "a" allows the same call in this session, and no other one.
func TestAlwaysIsTheSameCall(t *testing.T) {
	t.Parallel()
	w, keys := attended(t)
	d := newDecider(&settings{}, w.process, newConsole(w.process))
	over := make(chan struct{})
	go func() {
		defer close(over)
		for i, command := range []string{"ls", "ls", "rm", "ls"} {
			result, err := d.decide(t.Context(), &sdk.ToolPermissionRequest{ToolName: "Bash", Input: []byte(`{"command":"` + command + `"}`)})
			assert.NoError(t, err)
			assert.Equal(t, command == "ls", result.Allowed(), i)
		}
	}()
	w.err.await(t, "command: ls\n"+allowQuestion)
	_, _ = io.WriteString(keys, "a\n")
	w.err.await(t, "command: rm\n"+allowQuestion)
	_, _ = io.WriteString(keys, "n\n")
	<-over
	assert.Equal(t, 2, strings.Count(w.err.String(), allowQuestion), w.err)
}

// With suggestions, "a" gives the agent its rules, for this session alone; what must not be
// offered is asked about each time.
func TestAlwaysTakesTheRulesForTheSession(t *testing.T) {
	t.Parallel()
	rule := protocol.PermissionRule{ToolName: "Bash", RuleContent: "ls *"}
	ask := func(req *sdk.ToolPermissionRequest) (sdk.PermissionResult, *world) {
		w, keys := attended(t)
		d := newDecider(&settings{}, w.process, newConsole(w.process))
		decided := make(chan sdk.PermissionResult, 1)
		go func() {
			result, err := d.decide(t.Context(), req)
			assert.NoError(t, err)
			decided <- result
		}()
		w.err.await(t, allowQuestion)
		_, _ = io.WriteString(keys, "a\n")
		if req.SuppressAlwaysAllowRule || req.RequiresUserInteraction {
			w.err.await(t, "each time.\n"+allowQuestion)
			_, _ = io.WriteString(keys, "y\n")
		}
		return <-decided, w
	}
	req := &sdk.ToolPermissionRequest{ToolName: "Bash", Input: []byte(`{"command":"ls x"}`), PermissionSuggestions: []protocol.PermissionUpdate{
		{Type: protocol.AddRules, Behavior: protocol.BehaviorAllow, Rules: []protocol.PermissionRule{rule}, Destination: protocol.ToLocalSettings},
		{Type: protocol.RemoveRules, Behavior: protocol.BehaviorDeny, Rules: []protocol.PermissionRule{rule}},
	}}
	result, w := ask(req)
	assert.Contains(t, w.err.String(), "a allows until this session ends: Bash(ls *)\n")
	assert.Equal(t, []protocol.PermissionUpdate{{Type: protocol.AddRules, Behavior: protocol.BehaviorAllow, Rules: []protocol.PermissionRule{rule}, Destination: protocol.ToSession}}, result.UpdatedPermissions)
	assert.Equal(t, protocol.ToLocalSettings, req.PermissionSuggestions[0].Destination, "the request is as it was")

	for _, set := range []func(){func() { req.SuppressAlwaysAllowRule = true }, func() { req.SuppressAlwaysAllowRule, req.RequiresUserInteraction = false, true }} {
		set()
		result, w = ask(req)
		assert.True(t, result.Allowed())
		assert.Empty(t, result.UpdatedPermissions)
		assert.Contains(t, w.err.String(), "This call is asked about each time.\n")
		assert.NotContains(t, w.err.String(), "ls *")
	}
}

func TestAskingOnStdin(t *testing.T) {
	t.Parallel()
	w, _ := attended(t)
	w.stdinTTY, w.stdin = true, strings.NewReader("y\n")
	w.openTTY = nil
	assert.Equal(t, exitOK, w.run("run", "go", "-a", script(t, asks)))
	assert.Contains(t, w.err.String(), "← done")
}

func TestEndOfTheTerminalDenies(t *testing.T) {
	t.Parallel()
	w, keys := attended(t)
	require.NoError(t, keys.Close())
	two := strings.Replace(asks, "{text:", `{tool_use: {name: Write, gate: ask}}, {text:`, 1)
	assert.Equal(t, exitOK, w.run("run", "go", "-a", script(t, two)))
	assert.Equal(t, 2, strings.Count(w.err.String(), "✗ "+deniedByUser))
}

func TestQuestionTakenBack(t *testing.T) {
	t.Parallel()
	w, keys := attended(t)
	d := newDecider(&settings{}, w.process, newConsole(w.process))
	require.NoError(t, d.open())
	ctx, takeBack := context.WithCancel(context.Background())
	asked := make(chan error, 1)
	go func() {
		_, err := d.ask(ctx, "First? ")
		asked <- err
	}()
	w.err.await(t, "First? ")
	takeBack()
	require.ErrorIs(t, <-asked, context.Canceled)
	_, _ = io.WriteString(keys, "y\n")
	_, _ = keys.Write(nil) // until the next read: the line is done with

	answers := make(chan string, 1)
	go func() {
		answer, err := d.ask(context.Background(), "Second? ")
		assert.NoError(t, err)
		answers <- answer
	}()
	w.err.await(t, "First? (withdrawn)\nSecond? ")
	_, _ = io.WriteString(keys, "n\n")
	assert.Equal(t, "n", <-answers, "the line typed in between answers nothing")
}

func TestCallTakenBackBeforeItIsAsked(t *testing.T) {
	t.Parallel()
	w, _ := attended(t)
	d := newDecider(&settings{}, w.process, newConsole(w.process))
	ctx, takeBack := context.WithCancel(context.Background())
	takeBack()
	res, err := d.canUseTool(ctx, &sdk.ToolPermissionRequest{ToolName: "Bash", ToolUseID: "never printed"})
	require.ErrorIs(t, err, context.Canceled)
	assert.False(t, res.Allowed())
	assert.Empty(t, w.err.String())
}

func TestNobodyToAsk(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*world){
		"stderr is no terminal": func(w *world) { w.stderrTTY = false },
		"there is none":         func(w *world) { w.openTTY = func() (io.Reader, error) { return nil, os.ErrNotExist } },
	} {
		w, _ := attended(t)
		set(w)
		assert.Equal(t, exitOK, w.run("run", "go", "-a", script(t, asks)), name)
		assert.Contains(t, w.err.String(), "troupe: denied Bash: there is no terminal to ask on; --yes or --allowed-tools Bash allows it\n", name)
		assert.Contains(t, w.err.String(), "✗ "+deniedUnasked, name)
	}
}

// The name is the agent's: it steers no terminal.
func TestADeniedNameIsPrintable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	d := &decider{console: &console{err: &out}}
	d.printed.printed("")
	_, err := d.canUseTool(t.Context(), &sdk.ToolPermissionRequest{ToolName: "x\x1b[2Jy"})
	require.NoError(t, err)
	assert.Contains(t, out.String(), `--allowed-tools x\x1b[2Jy allows it`)
	assert.NotContains(t, out.String(), "\x1b")
}

func TestAllowedByRule(t *testing.T) {
	t.Parallel()
	w := newWorld()
	assert.Equal(t, exitOK, w.run("run", "go", "-a", script(t, asks), "--allowed-tools", "Bash"))
	assert.Equal(t, "  → Bash ls (and 1 more line)\n  ← done\n", w.err.String(), "and no warning about what is meant")
}

const questions = `{"questions": [
	{"question": "Which color?", "header": "Color", "options": [{"label": "Red", "description": "warm"}, {"label": "Blue"}]},
	{"question": "Which sizes?", "multiSelect": true, "options": [{"label": "S"}, {"label": "M"}, {"label": "L"}]}]}`

func TestQuestions(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ first, color, second, sizes string }{
		{"2", "Blue", "1, 3", "S, L"},
		{"mauve ", "mauve", "2", "M"},
		{"3", "3", "9 1", "9 1"},
		{"1 2", "1 2", "1 2 3", "S, M, L"},
	} {
		w, keys := attended(t)
		d := newDecider(&settings{yes: true}, w.process, newConsole(w.process)) // --yes is no answer
		d.printed.printed("t")
		decided := make(chan sdk.PermissionResult, 1)
		go func() {
			res, err := d.canUseTool(context.Background(), &sdk.ToolPermissionRequest{ToolName: "AskUserQuestion", ToolUseID: "t", Input: []byte(questions)})
			assert.NoError(t, err)
			decided <- res
		}()
		w.err.await(t, "\nWhich color?\n  1  Red (warm)\n  2  Blue\nA number, or your own answer: ")
		_, _ = io.WriteString(keys, c.first+"\n")
		w.err.await(t, "\nWhich sizes?\n  1  S\n  2  M\n  3  L\nNumbers, or your own answer: ")
		_, _ = io.WriteString(keys, c.second+"\n")
		res := <-decided
		require.True(t, res.Allowed())
		var got struct {
			Questions json.RawMessage   `json:"questions"`
			Answers   map[string]string `json:"answers"`
		}
		require.NoError(t, json.Unmarshal(res.UpdatedInput, &got))
		assert.Equal(t, map[string]string{"Which color?": c.color, "Which sizes?": c.sizes}, got.Answers)
		assert.NotEmpty(t, got.Questions)
	}
}

func TestQuestionsUnanswered(t *testing.T) {
	t.Parallel()
	w, keys := attended(t)
	require.NoError(t, keys.Close())
	d := newDecider(&settings{}, w.process, newConsole(w.process))
	req := &sdk.ToolPermissionRequest{ToolName: "AskUserQuestion", ToolUseID: "t", Input: []byte(questions)}
	d.printed.printed("t")
	res, err := d.canUseTool(context.Background(), req)
	require.NoError(t, err)
	assert.False(t, res.Allowed())

	d.attended = false
	res, err = d.canUseTool(context.Background(), req)
	require.NoError(t, err)
	assert.Equal(t, sdk.Deny(deniedQuestions), res)

	d.attended = true
	req.Input = []byte(`{"questions": 1}`)
	res, err = d.canUseTool(context.Background(), req)
	assert.Error(t, err)
	assert.False(t, res.Allowed())
}

func TestLongInputsAreShownWhole(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	input, err := json.Marshal(map[string]string{"content": strings.Repeat("é", 5000)})
	require.NoError(t, err)
	writeInput(&b, input)
	assert.Equal(t, "  content: "+strings.Repeat("é", 5000)+"\n", b.String())

	b.Reset()
	writeInput(&b, []byte(`["odd"]`))
	assert.Equal(t, "  input: [\"odd\"]\n", b.String())
	assert.Empty(t, subject([]byte(`["odd"]`)))
	assert.Equal(t, ` {"n":1}`, subject([]byte(`{"n":1}`)))
}

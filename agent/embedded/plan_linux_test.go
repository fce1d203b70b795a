package embedded_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/sdk"
)

var planPath = regexp.MustCompile(`Write your plan to (\S+), the only file`)

// plans is a session in plan mode. Its model writes plan to the plan file, asks for approval, and
// then writes a file.
func plans(t *testing.T, plan string, answer func(r *sdk.ToolPermissionRequest) sdk.PermissionResult) *scripted {
	t.Helper()
	s := script(t)
	s.server.Script = func(r *modeltest.Request) *modeltest.Answer {
		m := planPath.FindStringSubmatch(string(r.Body))
		switch {
		case m == nil:
			return modeltest.Say(modeltest.Text("no plan file"))
		case r.N == 1:
			return modeltest.Say(modeltest.Call("Write", map[string]any{"file_path": m[1], "content": plan}))
		case r.N == 2:
			return modeltest.Say(modeltest.Call("ExitPlanMode", map[string]any{}))
		case r.N == 3:
			return modeltest.Say(modeltest.Call("Write", map[string]any{"file_path": "made.txt", "content": "x"}))
		}
		return modeltest.Say(modeltest.Text("done"))
	}
	s.o.PermissionMode, s.o.AllowDangerouslySkipPermissions = sdk.ModePlan, false
	if answer != nil {
		s.o.CanUseTool = func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return answer(r), nil
		}
	}
	return s
}

func TestAPlanIsApproved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		set  func(*sdk.Options)
		file string // what the user makes of the plan; "": it stays
	}{
		"as it is":          {func(*sdk.Options) {}, ""},
		"changed":           {func(*sdk.Options) {}, "# Another plan\n"},
		"nothing is stored": {func(o *sdk.Options) { o.PersistSession = sdk.Some(false) }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			const plan = "# Plan\n"
			var asked []string
			s := plans(t, plan, func(r *sdk.ToolPermissionRequest) sdk.PermissionResult {
				asked = append(asked, r.ToolName)
				if r.ToolName == "ExitPlanMode" {
					var in map[string]any
					assert.NoError(t, json.Unmarshal(r.Input, &in))
					assert.Equal(t, plan, in["plan"])
					if c.file != "" {
						in["plan"] = c.file
						changed, _ := json.Marshal(in)
						return sdk.AllowInput(changed)
					}
				}
				return sdk.Allow()
			})
			c.set(s.o)
			s.open(t)
			assert.Equal(t, "done", result(t, s).Result)
			assert.Equal(t, []string{"ExitPlanMode", "Write"}, asked, "the plan file is written without a question")
			requests := s.requests(t, 4)
			at := planPath.FindStringSubmatch(string(requests[0].Body))[1]
			want := plan
			if c.file != "" {
				want = c.file
			}
			assert.Contains(t, says(t, requests[2]), "## Approved Plan:\n"+want)
			content, err := os.ReadFile(at)
			require.NoError(t, err)
			assert.Equal(t, want, string(content))
			assert.Contains(t, string(requests[2].Body), "You have exited plan mode. You can now make edits, run tools, and take actions. The plan file is located at "+at)
			assert.Equal(t, 1, strings.Count(string(requests[3].Body), "You have exited plan mode."), "it is said once")
			assert.FileExists(t, s.o.Cwd+"/made.txt")
		})
	}
}

func TestAPlanIsNotApproved(t *testing.T) {
	t.Parallel()
	s := plans(t, "# Plan\n", func(r *sdk.ToolPermissionRequest) sdk.PermissionResult {
		if r.ToolName == "ExitPlanMode" {
			return sdk.Deny("Add tests first.")
		}
		return sdk.Deny("The mode is still plan.")
	}).open(t)
	assert.Equal(t, "done", result(t, s).Result)
	requests := s.requests(t, 4)
	assert.Equal(t, "Add tests first.", says(t, requests[2]))
	assert.Equal(t, "The mode is still plan.", says(t, requests[3]))
	assert.NotContains(t, string(requests[3].Body), "You have exited plan mode")
	assert.NoFileExists(t, s.o.Cwd+"/made.txt")
}

// If no callback can answer, the tools that ask are not there, and plan mode ends with the turn.
func TestPlanModeWithNobody(t *testing.T) {
	t.Parallel()
	s := plans(t, "x", nil)
	s.o.PlanModeInstructions = "Think of the tests."
	s.open(t)
	result(t, s)
	requests := s.requests(t, 3)
	for _, name := range []string{"AskUserQuestion", "EnterPlanMode", "ExitPlanMode"} {
		assert.NotContains(t, requests[0].Tools, name)
	}
	assert.Contains(t, string(requests[0].Body), "Think of the tests.")
	assert.Contains(t, says(t, requests[2]), "ExitPlanMode is disabled for this session")
}

// The model reads once of a mode that the host sets, also in a session that is resumed.
func TestAModeThatTheHostSets(t *testing.T) {
	t.Parallel()
	s := script(t)
	s.o.AllowDangerouslySkipPermissions, s.o.PermissionMode = false, ""
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := open(t, s.o)
	ask(t, c, "Go.")
	body := func() string {
		all := s.server.Requests()
		return string(all[len(all)-1].Body)
	}
	assert.NotContains(t, body(), "Plan mode")
	require.NoError(t, c.SetPermissionMode(ctx, sdk.ModePlan))
	ask(t, c, "Go on.")
	assert.Equal(t, 1, strings.Count(body(), "Plan mode is active."))
	ask(t, c, "Go on.")
	assert.Equal(t, 1, strings.Count(body(), "Plan mode is active."))
	id := c.SessionID()
	require.NoError(t, c.Close(ctx))

	again := *s.o
	again.Resume, again.PermissionMode = id, sdk.ModePlan
	c = open(t, &again)
	ask(t, c, "Go on.")
	assert.Equal(t, 1, strings.Count(body(), "Plan mode is active."), "it was said before")
	require.NoError(t, c.SetPermissionMode(ctx, sdk.ModeDefault))
	ask(t, c, "Go on.")
	assert.Equal(t, 1, strings.Count(body(), "You have exited plan mode."))
}

// A session that is resumed in plan mode has its plan file, and a fork another one: both are written
// without a question.
func TestThePlanOfALaterLife(t *testing.T) {
	t.Parallel()
	for _, fork := range []bool{false, true} {
		s := script(t)
		s.o.AllowDangerouslySkipPermissions, s.o.PermissionMode = false, sdk.ModePlan
		s.o.CanUseTool = func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			assert.Fail(t, "a question", "%s", r.Input)
			return sdk.Deny("no"), nil
		}
		var named []string
		s.server.Script = func(r *modeltest.Request) *modeltest.Answer {
			named = nil
			for _, m := range planPath.FindAllStringSubmatch(string(r.Body), -1) {
				named = append(named, m[1])
			}
			if r.N == 2 {
				return modeltest.Say(modeltest.Call("Write", map[string]any{"file_path": named[len(named)-1], "content": "# Plan"}))
			}
			return modeltest.Say(modeltest.Text("done"))
		}
		c := open(t, s.o)
		ask(t, c, "Go.")
		id := c.SessionID()
		require.NoError(t, c.Close(t.Context()))
		again := *s.o
		again.Resume, again.ForkSession = id, fork
		ask(t, open(t, &again), "Go on.")
		require.Len(t, named, map[bool]int{false: 1, true: 2}[fork], "each file is named once")
		assert.FileExists(t, named[len(named)-1])
		if fork {
			assert.NotEqual(t, named[0], named[1])
			assert.NoFileExists(t, named[0])
		}
	}
}

// The host may set plan mode while the model answers, so that the model ends it before it has
// read of it.
func TestPlanModeInTheMiddleOfAnAnswer(t *testing.T) {
	t.Parallel()
	s := script(t)
	s.o.AllowDangerouslySkipPermissions, s.o.PermissionMode = false, ""
	s.o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		return sdk.Allow(), nil
	}
	s.server.Script = func(r *modeltest.Request) *modeltest.Answer {
		if r.N > 1 {
			return modeltest.Say(modeltest.Text("done"))
		}
		assert.NoError(t, s.c.SetPermissionMode(t.Context(), sdk.ModePlan))
		return modeltest.Say(modeltest.Call("ExitPlanMode", map[string]any{"plan": "The file counts, and there is no file."}))
	}
	s.open(t)
	assert.Equal(t, "done", result(t, s).Result)
	assert.Equal(t, "User has approved exiting plan mode. You can now proceed.", says(t, s.requests(t, 2)[1]))
}

// In plan mode one file is written without a question, and in no other mode. A deny rule holds for
// it, too, and a link in its place leads nowhere.
func TestOnlyThePlanIsWritten(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		before func(t *testing.T, s *scripted, plan string)
		deny   []string
		writes bool
		asks   bool // about the plan
	}{
		"plan mode": {writes: true},
		"another mode": {before: func(t *testing.T, s *scripted, _ string) {
			t.Helper()
			assert.NoError(t, s.c.SetPermissionMode(t.Context(), sdk.ModeDefault))
		}, asks: true},
		"a deny rule": {deny: []string{"Edit(//**/plans/**)"}},
		"a link": {before: func(t *testing.T, s *scripted, plan string) {
			t.Helper()
			assert.NoError(t, os.MkdirAll(filepath.Dir(plan), 0o700))
			assert.NoError(t, os.Symlink(filepath.Join(s.o.Cwd, "aim.txt"), plan))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := script(t)
			s.o.PermissionMode, s.o.AllowDangerouslySkipPermissions, s.o.DisallowedTools = sdk.ModePlan, false, c.deny
			var mu sync.Mutex
			asked := map[string]bool{}
			s.o.CanUseTool = func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				var in struct {
					Path string `json:"file_path"`
				}
				assert.NoError(t, json.Unmarshal(r.Input, &in))
				mu.Lock()
				defer mu.Unlock()
				asked[filepath.Clean(in.Path)] = true
				return sdk.Deny("no"), nil
			}
			var plan string
			var others []string
			s.server.Script = func(r *modeltest.Request) *modeltest.Answer {
				if r.N > 1 {
					return modeltest.Say(modeltest.Text("done"))
				}
				plan = planPath.FindStringSubmatch(string(r.Body))[1]
				if c.before != nil {
					c.before(t, s, plan)
				}
				dir, base := filepath.Split(plan)
				others = []string{filepath.Join(s.o.Cwd, base), plan + ".bak", dir + "x" + base, dir + "other.md"}
				var calls []model.Block
				for _, path := range append([]string{dir + "../plans/" + base}, others...) {
					calls = append(calls, modeltest.Call("Write", map[string]any{"file_path": path, "content": "x"}))
				}
				return modeltest.Say(calls...)
			}
			s.open(t)
			result(t, s)
			s.requests(t, 2)
			mu.Lock()
			defer mu.Unlock()
			assert.Equal(t, c.asks, asked[plan], "the plan")
			_, err := os.Stat(plan) // of a link, what it leads to
			assert.Equal(t, c.writes, err == nil)
			for _, path := range others {
				assert.True(t, asked[path] || c.deny != nil, "%s", path)
				assert.NoFileExists(t, path)
			}
		})
	}
}

// A summary does not say that plan mode is active, so the model reads it again, in the next request.
func TestPlanModeAfterACompaction(t *testing.T) {
	t.Parallel()
	for _, manual := range []bool{false, true} {
		l := longTalk(t, "anthropic", func(r *modeltest.Request) *modeltest.Answer {
			if r.N == 2 && !manual {
				return bashes("ls", 11_900)
			} else if r.N <= 2 {
				return bashes("pwd", 100)
			}
			return tells("done", 100)
		})
		l.o.PermissionMode, l.o.AllowDangerouslySkipPermissions = sdk.ModePlan, false
		c := open(t, l.o)
		l.ask(t, c, "Go.")
		if manual {
			l.ask(t, c, "/compact")
			l.ask(t, c, "Go on.")
		}
		l.says(t, "compacting", "success", "boundary")
		sent := l.sent()
		last := sent[len(sent)-1]
		assert.Contains(t, last, "being continued from a previous conversation")
		assert.Equal(t, 1, strings.Count(last, "Plan mode is active."), last)
	}
}

package simtests_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/simtests"
)

// refusal is the result of a call that a rule, or a mode, has refused.
var refusal = regexp.MustCompile(`has been denied|denied by your permission settings|plan mode|classifier|safety check|^Dangerous`)

// Each permission mode lets calls run, asks about them, or refuses them. Rules deny
// secret.txt and the command forbid, and allow ship.
func TestEmbeddedInEachMode(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(10), Cost: 5, Twice: -1}, modesWork)
}

// A model that makes the same call with the same result again and again reads a note about it, and later its turn ends.
func TestAModelThatRepeatsItself(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: 2, Twice: 1}, repetitiveWork)
}

// TestPlantedBugsOfModes is for tools/simmutate.
func TestPlantedBugsOfModes(t *testing.T) {
	t.Parallel()
	planted(t, 5, func(w *simtests.World) {
		if w.Rand().IntN(4) == 0 {
			repetitiveWork(w)
			return
		}
		modesWork(w)
	})
}

func repetitiveWork(w *simtests.World) {
	s := &modeltest.Server{Script: func(*modeltest.Request) *modeltest.Answer {
		return modeltest.Say(modeltest.Call("Read", map[string]any{"file_path": "none.txt"}))
	}}
	c := w.OpenEmbedded(&sdk.Options{Cwd: workplace(w)}, &simtests.Embedded{Server: s, OpenAI: w.Rand().IntN(2) == 0})
	turn, err := c.Send(w.Context(), sdk.UserText("work"))
	require.NoError(w, err)
	r, err := turn.Result(w.Context())
	require.NoError(w, err)
	require.NoError(w, c.Close(w.Context()))
	assert.True(w, r.Failed())
	told := 0
	for i, r := range s.Requests() {
		if told == 0 && strings.Contains(string(r.Body), "You have made the same call of Read 5 times") {
			told = i
		}
	}
	assert.Equal(w, 5, told, "calls before the note")
	assert.Len(w, s.Requests(), 15)
}

func modesWork(w *simtests.World) {
	type row map[sdk.PermissionMode]string
	all := func(what string) row {
		return row{sdk.ModeDefault: what, sdk.ModeAcceptEdits: what, sdk.ModeBypassPermissions: what, sdk.ModePlan: what}
	}
	calls := []struct {
		call model.Block
		want row
	}{
		{modeltest.Call("Read", map[string]any{"file_path": "a.txt"}), all("runs")},
		{modeltest.Call("Bash", map[string]any{"command": "cat a.txt"}), all("runs")},
		{modeltest.Call("Bash", map[string]any{"command": "ship 1"}), all("runs")},
		{modeltest.Call("Read", map[string]any{"file_path": "secret.txt"}), all("refused")},
		{modeltest.Call("Bash", map[string]any{"command": "forbid 1"}), all("refused")},
		{modeltest.Call("Bash", map[string]any{"command": "cat secret.txt"}), all("refused")},
		{modeltest.Call("Bash", map[string]any{"command": "pay 1"}), row{sdk.ModeDefault: "asked", sdk.ModeAcceptEdits: "asked", sdk.ModeBypassPermissions: "runs", sdk.ModePlan: "refused"}},
		{modeltest.Call("Bash", map[string]any{"command": "rm -rf /"}), row{sdk.ModeDefault: "asked", sdk.ModeAcceptEdits: "asked", sdk.ModeBypassPermissions: "asked", sdk.ModePlan: "refused"}},
		{modeltest.Call("Bash", map[string]any{"command": "mkdir sub"}), row{sdk.ModeDefault: "asked", sdk.ModeAcceptEdits: "runs", sdk.ModeBypassPermissions: "runs", sdk.ModePlan: "refused"}},
		{modeltest.Call("Write", map[string]any{"file_path": "new.txt", "content": "new\n"}), row{sdk.ModeDefault: "asked", sdk.ModeAcceptEdits: "runs", sdk.ModeBypassPermissions: "runs", sdk.ModePlan: "asked"}},
		{modeltest.Call("Edit", map[string]any{"file_path": "a.txt", "old_string": "one", "new_string": "two"}), row{sdk.ModeDefault: "asked", sdk.ModeAcceptEdits: "runs", sdk.ModeBypassPermissions: "runs", sdk.ModePlan: "asked"}},
		{modeltest.Call("Write", map[string]any{"file_path": "../out.txt", "content": "out\n"}), row{sdk.ModeDefault: "asked", sdk.ModeAcceptEdits: "asked", sdk.ModeBypassPermissions: "runs", sdk.ModePlan: "asked"}},
	}
	modes := []sdk.PermissionMode{sdk.ModeDefault, sdk.ModeAcceptEdits, sdk.ModeBypassPermissions, sdk.ModePlan}
	mode := modes[w.Rand().IntN(len(modes))]
	dir := workplace(w)
	require.NoError(w, os.WriteFile(filepath.Join(dir, "secret.txt"), []byte("hidden\n"), 0o600))
	s := &modeltest.Server{Script: func(r *modeltest.Request) *modeltest.Answer {
		n := 0
		for _, m := range r.Messages {
			if m.Role == model.Assistant {
				n++
			}
		}
		if n < len(calls) {
			return modeltest.Say(calls[n].call)
		}
		return modeltest.Say(modeltest.Text("done"))
	}}
	asked := map[string]bool{}
	c := w.OpenEmbedded(&sdk.Options{
		Cwd: dir, PermissionMode: mode, AllowDangerouslySkipPermissions: mode == sdk.ModeBypassPermissions, DisallowedTools: []string{"Read(./secret.txt)", "Bash(forbid:*)"}, AllowedTools: []string{"Bash(ship:*)"},
		CanUseTool: func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			asked[r.ToolUseID] = true
			return sdk.Allow(), nil
		},
	}, &simtests.Embedded{Server: s, OpenAI: w.Rand().IntN(2) == 0})
	turn, err := c.Send(w.Context(), sdk.UserText("work"))
	require.NoError(w, err)
	r, err := turn.Result(w.Context())
	require.NoError(w, err)
	assert.Equal(w, "done", r.Result)
	last := s.Requests()[len(s.Requests())-1]
	for i, made := range calls {
		id := fmt.Sprintf("toolu_%d_0", i+1)
		result, there := last.Result(id)
		require.True(w, there, "the call %d, %s", i, made.call.Input)
		ran := !refusal.MatchString(result.Text)
		got := "refused"
		switch {
		case ran && asked[id]:
			got = "asked"
		case ran:
			got = "runs"
		case asked[id]:
			got = "asked, and refused: " + result.Text
		}
		if want := made.want[mode]; got != want {
			w.Errorf("gated: in the mode %s the call %s %s is %s, and must be %s: %s", mode, made.call.Name, made.call.Input, got, want, result.Text)
		}
	}
	require.NoError(w, c.Close(w.Context()))
}

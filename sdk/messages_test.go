package sdk_test

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol/tools"
	"github.com/agent-troupe/troupe/protocol/view"
	"github.com/agent-troupe/troupe/sdk"
)

// kept are the messages that users never see.
var kept = map[string]bool{"KeepAliveMessage": true, "TranscriptMirrorMessage": true}

// Every message, block, event and delta of the protocol has its name here, so
// that a type switch needs no other package.
func TestMessagesHaveNames(t *testing.T) {
	t.Parallel()
	var aliases strings.Builder
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		require.NoError(t, err)
		aliases.Write(b)
	}
	files, err = filepath.Glob("../protocol/*.go")
	require.NoError(t, err)
	n := 0
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), f, nil, 0)
		require.NoError(t, err)
		for _, decl := range parsed.Decls {
			d, ok := decl.(*ast.GenDecl)
			if !ok || d.Tok != token.TYPE {
				continue
			}
			name := d.Specs[0].(*ast.TypeSpec).Name.Name
			if !ast.IsExported(name) || !strings.HasSuffix(name, "Message") && !strings.HasSuffix(name, "Block") && !strings.HasPrefix(name, "Delta") || kept[name] {
				continue
			}
			n++
			assert.Contains(t, aliases.String(), " = protocol."+name+"\n", "package sdk has no name for %s", name)
		}
	}
	assert.Greater(t, n, 60)
}

func TestErrorsHaveNames(t *testing.T) {
	t.Parallel()
	crash := &sdk.PanicError{Value: errors.New("boom"), Message: "hook"}
	failed := fmt.Errorf("session failed: %w", &sdk.SupervisorError{Supervisor: "session", Child: "router", Reason: crash})
	var p *sdk.PanicError
	require.ErrorAs(t, failed, &p)
	assert.Equal(t, "hook", p.Message)
	var s *sdk.SupervisorError
	require.ErrorAs(t, failed, &s)
	assert.Equal(t, "router", s.Child)
	assert.NotErrorIs(t, failed, sdk.ErrNoRoom)
}

func allowed(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
	return sdk.Allow(), nil
}

// What the views make of a session that runs.
func TestViewsOfASession(t *testing.T) {
	t.Parallel()
	in(t, func(w *world) {
		o := w.options(turn(
			&scripted.Partial{Chunks: []string{"Let me ", "look."}},
			&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "ls"}, Result: "a.txt"},
			scripted.Text("There is a file.")))
		o.IncludePartialMessages = true
		o.CanUseTool = allowed
		var drafts view.Drafts
		var calls view.ToolCalls
		var costs view.Costs
		for m, err := range sdk.Query(w.Context(), sdk.Input("What is here?"), o) {
			require.NoError(w, err)
			drafts.Add(m)
			calls.Add(m)
			costs.Add(m)
			assert.False(w, view.Replayed(m))
		}
		var text []string
		for _, d := range drafts.All() {
			if s := d.Content().Text(); s != "" {
				text = append(text, s)
			}
		}
		assert.Equal(w, []string{"Let me look.", "There is a file."}, text)
		require.Len(w, calls.All(), 1)
		call := calls.All()[0]
		assert.Equal(w, view.CallDone, call.State)
		bash, err := call.Input()
		require.NoError(w, err)
		assert.Equal(w, "ls", bash.(*tools.BashInput).Command)
		assert.Len(w, costs.Turns(), 1)
		assert.Zero(w, costs.Gap())
	})
}

package docs_test

import (
	"context"
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// exportedErrors are the names of package sdk that look like errors.
func exportedErrors(t *testing.T) []string {
	t.Helper()
	names := map[string]bool{}
	sentinel, kind := regexp.MustCompile(`^Err[A-Z]`), regexp.MustCompile(`^[A-Z].*Error$`)
	entries, err := os.ReadDir("../sdk")
	require.NoError(t, err)
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), "../sdk/"+e.Name(), nil, 0)
		require.NoError(t, err)
		for _, d := range file.Decls {
			decl, ok := d.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range decl.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					names[spec.Name.Name] = kind.MatchString(spec.Name.Name)
				case *ast.ValueSpec:
					for _, name := range spec.Names {
						names[name.Name] = sentinel.MatchString(name.Name)
					}
				}
			}
		}
	}
	maps.DeleteFunc(names, func(_ string, isError bool) bool { return !isError })
	return slices.Sorted(maps.Keys(names))
}

// printed are errors whose text the document shows.
func printed() map[string]error {
	result := &sdk.ResultMessage{Subtype: "error_max_turns", Errors: []string{"Reached maximum number of turns (3)"}}
	return map[string]error{
		"AuthError":               &sdk.AuthError{Backend: "claude", Err: errors.New("…")},
		"ConfigError":             &sdk.ConfigError{Option: "MaxTurns", Backend: "claude", Problem: "is -1", Fix: "a limit is not negative"},
		"ControlError":            &sdk.ControlError{Request: "set_permission_mode", Code: "invalid_mode", Message: "…"},
		"ErrAnswerSkipped":        sdk.ErrAnswerSkipped,
		"ErrBusy":                 sdk.ErrBusy,
		"ErrClaimTaken":           sdk.ErrClaimTaken,
		"ErrClaimUnsure":          sdk.ErrClaimUnsure,
		"ErrClosed":               sdk.ErrClosed,
		"ErrConsumerStalled":      sdk.ErrConsumerStalled,
		"ErrMCPServerClosed":      sdk.ErrMCPServerClosed,
		"ErrNoRoom":               sdk.ErrNoRoom,
		"ErrNotConnected":         sdk.ErrNotConnected,
		"ErrNotRun":               sdk.ErrNotRun,
		"ErrResultSkipped":        sdk.ErrResultSkipped,
		"ErrResultBroken":         sdk.ErrResultBroken,
		"ErrAnswerBroken":         sdk.ErrAnswerBroken,
		"EchoError":               &sdk.EchoError{},
		"OversizeError":           &sdk.OversizeError{Length: 70000000, Ceiling: 67108864},
		"UnreadableResultError":   &sdk.UnreadableResultError{Err: errors.New("…")},
		"ErrShutdown":             sdk.ErrShutdown,
		"ErrTooLarge":             sdk.ErrTooLarge,
		"ErrTransportClosed":      sdk.ErrTransportClosed,
		"LoadError":               &sdk.LoadError{File: "options.yaml", Line: 3, Column: 1, Key: "max_turns", Problem: "is not known", Fix: "did you mean maxTurns?"},
		"KilledError":             &sdk.KilledError{},
		"WritesLostError":         &sdk.WritesLostError{Code: "ENOSPC", Lost: []string{"transcript"}},
		"LeftoverError":           &sdk.LeftoverError{Processes: []session.ProcInfo{{PID: 4711, Command: "node"}}},
		"ModelPolicyTimeoutError": &sdk.ModelPolicyTimeoutError{Limit: 500 * time.Millisecond},
		"PanicError":              &sdk.PanicError{Message: "PreToolUse", Value: "boom"},
		"ProtocolError":           &sdk.ProtocolError{Kind: protocol.NotJSON, Head: []byte("oops"), Len: 4},
		"ProtocolVersionError":    &sdk.ProtocolVersionError{Backend: "qoder", Version: "2.0", Major: "1"},
		"ResultError":             &sdk.ResultError{Result: result},
		"StructuredOutputError":   &sdk.StructuredOutputError{Err: errors.New(`A: expected integer, got "x"`)},
		"TimeoutError":            &sdk.TimeoutError{What: "control request set_model", Limit: time.Minute, SetBy: "Limits.Control"},
		"UnfinishedError": &sdk.UnfinishedError{
			Doing: "run", State: session.StateAwaitingHost, Err: context.DeadlineExceeded,
			Waits: []sdk.Wait{
				{What: "permission request Bash", ID: "req_1", Age: 12 * time.Second},
				{What: "turn written", ID: "6f…", Age: 15 * time.Second},
			},
			Tools: []sdk.RunningTool{{ID: "toolu_1", Name: "Bash", Age: 12 * time.Second}}, Called: 3, Messages: 14, Text: "Let me look",
		},
		"UnsupportedCapabilityError": &sdk.UnsupportedCapabilityError{Backend: "claude", Request: "set_goal_max_turns"},
		"GatesOffError":              &sdk.GatesOffError{Seen: "system/init"},
		"ExitError":                  &sdk.ExitError{During: "a turn", Status: session.ExitStatus{Code: 3}, StderrTail: "something broke"},
		"StartError":                 &sdk.StartError{Err: errors.New(`lookup "claude": file does not exist (searched /usr/bin, /bin): install it, or give its path`)},
		"StreamError":                nil, // no Go error
		"SupervisorError":            nil, // its text names an actor
	}
}

func TestEveryErrorIsExplained(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("troubleshooting.md")
	require.NoError(t, err)
	document := string(raw)
	texts := printed()
	assert.Equal(t, exportedErrors(t), slices.Sorted(maps.Keys(texts)), "errors of package sdk, and those that this test knows")
	for _, name := range exportedErrors(t) {
		want := "`" + name + "`"
		if e := texts[name]; e != nil {
			want = "**" + want + "** `" + e.Error() + "`"
		}
		assert.Contains(t, document, want)
	}
}

// Links inside the documents lead somewhere.
func TestLinks(t *testing.T) {
	t.Parallel()
	heading := regexp.MustCompile(`(?m)^#+ (.*)$`)
	anchors := func(file string) map[string]bool {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		all := map[string]bool{"": true}
		for _, h := range heading.FindAllStringSubmatch(string(raw), -1) {
			kept := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(h[1]), "")
			all[strings.ReplaceAll(kept, " ", "-")] = true
		}
		return all
	}
	files, err := fs.Glob(os.DirFS("."), "*.md")
	require.NoError(t, err)
	for _, file := range files {
		raw, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, link := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(string(raw), -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			to, anchor, _ := strings.Cut(link[1], "#")
			if to == "" {
				to = file
			}
			if !strings.HasSuffix(to, ".md") {
				assert.FileExists(t, to, file)
				continue
			}
			assert.True(t, anchors(to)[anchor], "%s: %s", file, link[1])
		}
	}
}

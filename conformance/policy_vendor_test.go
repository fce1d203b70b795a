//go:build conformance

// It compares with the real CLI, which runs commands in a POSIX shell.

package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// vendorGroup is a list of calls under one list of rules, each a decision of the
// agent's, a tool and its argument. Package policy holds its own decisions
// against the same table.
type vendorGroup struct {
	Name  string
	Cwd   string
	Mode  sdk.PermissionMode // "" is the default one
	Allow []string
	Ask   []string
	Deny  []string
	Calls [][3]string
}

const vendorTable = "../policy/testdata/vendor.json"

// The recorded decisions of the agent's own rules are those that it still makes.
// The test takes every third call of every ninth group, as each group starts an
// agent; all with TROUPE_FULL=1. With TROUPE_RECORD=1 they are recorded anew.
func TestVendorDecisions(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(vendorTable)
	require.NoError(t, err)
	var groups []vendorGroup
	require.NoError(t, json.Unmarshal(raw, &groups))
	record := os.Getenv("TROUPE_RECORD") != ""
	if !record && os.Getenv("TROUPE_FULL") == "" {
		groups = everyThird(everyThird(groups, 0), 0)
		for i := range groups {
			groups[i].Calls = everyThird(groups[i].Calls, i)
		}
	}
	t.Cleanup(func() {
		if record {
			assert.NoError(t, os.WriteFile(vendorTable, vendorText(t, groups), 0o600))
		}
	})
	for i := range groups {
		g := &groups[i]
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			for j, decision := range newRig(t).vendor(g) {
				if record {
					g.Calls[j][0] = decision
					continue
				}
				assert.Equal(t, g.Calls[j][0], decision, "%v", g.Calls[j][1:])
			}
		})
	}
}

// everyThird is every third of a list from the one at start on, or on from the
// start of a list that is shorter. It is never empty.
func everyThird[T any](all []T, start int) []T {
	var some []T
	for i := start % min(3, len(all)); i < len(all); i += 3 {
		some = append(some, all[i])
	}
	return some
}

// vendorText is the table with one call a line.
func vendorText(t *testing.T, groups []vendorGroup) []byte {
	t.Helper()
	var b strings.Builder
	line := func(v any) string {
		var one strings.Builder
		e := json.NewEncoder(&one)
		e.SetEscapeHTML(false)
		assert.NoError(t, e.Encode(v))
		return strings.TrimSpace(one.String())
	}
	for i, g := range groups {
		b.WriteString(map[bool]string{true: "[", false: ",\n"}[i == 0])
		b.WriteString(`{"Name": ` + line(g.Name) + `, "Cwd": ` + line(g.Cwd))
		if g.Mode != "" {
			b.WriteString(`, "Mode": ` + line(g.Mode))
		}
		for _, list := range []struct {
			name  string
			rules []string
		}{{"Allow", g.Allow}, {"Ask", g.Ask}, {"Deny", g.Deny}} {
			if list.rules != nil {
				b.WriteString(`, "` + list.name + `": ` + line(list.rules))
			}
		}
		b.WriteString(", \"Calls\": [\n")
		for j, call := range g.Calls {
			b.WriteString(map[bool]string{true: "  ", false: ",\n  "}[j == 0] + line(call))
		}
		b.WriteString("]}")
	}
	return []byte(b.String() + "]\n")
}

// In the mode plan the agent holds back calls that its rules allow, so a policy leaves
// what it allows to the mode. No call runs that the agent alone would not run; what its
// classifier would decide may be asked about instead.
func TestPolicyLeavesPlansToTheMode(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(vendorTable)
	require.NoError(t, err)
	var groups []vendorGroup
	require.NoError(t, json.Unmarshal(raw, &groups))
	groups = slices.DeleteFunc(groups, func(g vendorGroup) bool { return g.Mode != sdk.ModePlan || g.Allow == nil })
	require.NotEmpty(t, groups)
	if os.Getenv("TROUPE_FULL") == "" {
		for i := range groups {
			groups[i].Calls = everyThird(groups[i].Calls, i)
		}
	}
	strict := map[string]int{"allow": 0, "ask": 1, "classifier": 1, "deny": 2}
	for _, g := range groups {
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			o := r.options()
			o.Policy = &sdk.Policy{Allow: g.Allow}
			for i, ours := range r.decisions(o, &g) {
				vendors := g.Calls[i][0]
				if vendors == "error" || ours == "error" {
					assert.Equal(t, vendors, ours, "%v", g.Calls[i][1:])
					continue
				}
				assert.GreaterOrEqual(t, strict[ours], strict[vendors], "%v: %s, the agent alone: %s", g.Calls[i][1:], ours, vendors)
			}
		})
	}
}

// vendor is what the agent decides about the calls by its own rules: allow, ask,
// outside (it asks because a path leads out of its directories), classifier (it would
// have the vendor's server decide, which a test has not, and so denies), deny, or error
// when it refused the call for another reason.
func (r *rig) vendor(g *vendorGroup) []string {
	rules := map[string][]string{} // a list that is null would make the agent ignore all of them
	for name, list := range map[string][]string{"allow": g.Allow, "ask": g.Ask, "deny": g.Deny} {
		if list != nil {
			rules[name] = list
		}
	}
	settings, err := json.Marshal(map[string]any{"permissions": rules})
	require.NoError(r.t, err)
	o := r.options()
	o.Settings = settings
	return r.decisions(o, g)
}

// decisions is vendor under other options than the group's rules.
func (r *rig) decisions(o *sdk.Options, g *vendorGroup) []string {
	t := r.t
	for name, text := range map[string]string{"secrets/key": "k", ".env": "e", "a/secrets/key": "k", "a/.env": "e", "src/a": "x", "src/b.go": "x", "ok": "x", "a/ok": "x", ".husky/y": "x"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(r.at(name)), 0o700))
		require.NoError(t, os.WriteFile(r.at(name), []byte(text), 0o600))
	}
	require.NoError(t, os.Symlink("secrets", r.at("s")))
	require.NoError(t, os.Symlink("secrets/key", r.at("k")))
	require.NoError(t, os.Symlink(".husky", r.at("h")))
	require.NoError(t, os.Symlink(".bashrc", r.at("rc")))
	var mu sync.Mutex
	asked := map[string]string{}
	r.runNothing(o, g.Cwd)
	o.PermissionMode, o.AllowDangerouslySkipPermissions = g.Mode, g.Mode == sdk.ModeBypassPermissions
	o.Tools = sdk.Only("Bash", "Read", "Write", "Edit", "MultiEdit", "NotebookEdit", "Grep", "Glob", "WebFetch", "Skill", "Agent", "ExitPlanMode")
	o.SDKMCPServers = vendorServers(t)
	o.CanUseTool = func(_ context.Context, ask *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		mu.Lock()
		defer mu.Unlock()
		asked[ask.ToolUseID] = "ask"
		if ask.DecisionReasonType == "workingDir" {
			asked[ask.ToolUseID] = "outside"
		}
		return sdk.Deny("asked"), nil
	}
	var steps []modelapi.Step
	if g.Cwd != "" {
		steps = append(steps, modelapi.Say(shell("cd "+g.Cwd)))
	}
	for _, call := range g.Calls {
		r.staysInside(call[1], call[2])
		steps = append(steps, modelapi.Say(modelapi.ToolUse(call[1], r.vendorInput(call[1], call[2]))))
	}
	r.model.Script("vendor", append(steps, modelapi.Say(modelapi.Text("done")))...)
	all, result := r.once(o, "go [[scn:vendor]]")
	denied := map[string]bool{}
	for _, d := range result.PermissionDenials {
		denied[d.ToolUseID] = true
	}
	var decisions []string
	for _, m := range all {
		if m.Meta().ParentToolUseID != "" {
			continue
		}
		if m, is := m.(*protocol.PermissionDeniedMessage); is && m.DecisionReasonType == "classifier" {
			asked[m.ToolUseID] = "classifier"
		}
		for _, one := range sdk.ToolResults(m) {
			switch {
			case asked[one.ToolUseID] != "":
				decisions = append(decisions, asked[one.ToolUseID])
			case denied[one.ToolUseID]:
				decisions = append(decisions, "deny")
			case strings.Contains(one.Content.Text(), "<tool_use_error>"):
				decisions = append(decisions, "error")
			default:
				decisions = append(decisions, "allow")
			}
		}
	}
	if g.Cwd != "" {
		decisions = decisions[1:]
	}
	require.Len(t, decisions, len(g.Calls))
	return decisions
}

// runNothing gives the agent a shell that runs no command: what the agent allows
// it runs, as the user of the test and with no sandbox. The shell only follows
// the cd that leads to the group's directory.
func (r *rig) runNothing(o *sdk.Options, cwd string) {
	shell := filepath.Join(r.root, "bin", "bash")
	require.NoError(r.t, os.MkdirAll(filepath.Dir(shell), 0o700))
	script := "#!/bin/sh\n"
	if cwd != "" {
		script += fmt.Sprintf("case \"$*\" in *\"eval 'cd %s' \"*) printf '%%s\\n' '%s' >\"${*##*>| }\" ;; esac\n", cwd, r.at(cwd))
	}
	require.NoError(r.t, os.WriteFile(shell, []byte(script), 0o700))
	o.Env["SHELL"], o.Env["CLAUDE_CODE_SHELL"] = shell, shell
}

// staysInside refuses a call of a tool that writes by itself unless its path is
// in the rig, or below a file, where nothing can be made.
func (r *rig) staysInside(tool, arg string) {
	if tool != "Write" && tool != "Edit" && tool != "MultiEdit" && tool != "NotebookEdit" {
		return
	}
	path := r.vendorPath(arg)
	if rest, home := strings.CutPrefix(path, "~"); home {
		path = r.home + rest
	}
	if !filepath.IsAbs(path) {
		path = r.at(path)
	}
	path = filepath.Clean(path)
	require.True(r.t, strings.HasPrefix(path, r.root+"/") || strings.HasPrefix(path, "/etc/hostname/"), "%s(%s) could write outside of the test", tool, arg)
}

// The recorder asks about calls that would do harm. None of them may run.
func TestVendorCallsDoNotRun(t *testing.T) {
	t.Parallel()
	for _, cwd := range []string{"", "a"} {
		t.Run("in "+cwd, func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			g := &vendorGroup{Cwd: cwd, Allow: []string{"Bash"}, Calls: [][3]string{
				{"", "Bash", "touch {dir}/made"}, {"", "Bash", "echo x > {dir}/made"}, {"", "Bash", "touch {dir}/made &"}, {"", "Bash", "rm {dir}/ok"},
			}}
			assert.Equal(t, []string{"allow", "allow", "allow", "allow"}, r.vendor(g))
			assert.NoFileExists(t, r.at("made"))
			assert.FileExists(t, r.at("ok"))
		})
	}
}

func vendorServers(t *testing.T) []*sdk.MCPServer {
	t.Helper()
	var all []*sdk.MCPServer
	for _, name := range []string{"one", "two"} {
		act := func(context.Context, struct{}) (*sdk.ToolResult, error) { return sdk.Text("acted"), nil }
		server, err := sdk.NewMCPServer(name, "1", sdk.NewTool("get_a", "Gets.", act), sdk.NewTool("set_a", "Sets.", act))
		require.NoError(t, err)
		all = append(all, server)
	}
	return all
}

// vendorPath is an argument with the directories of the rig in it.
func (r *rig) vendorPath(arg string) string {
	return strings.NewReplacer("{dir}", r.dir, "{home}", r.home).Replace(arg)
}

// vendorInput is the input of a call with one argument.
func (r *rig) vendorInput(tool, arg string) modelapi.Args {
	arg = r.vendorPath(arg)
	switch tool {
	case "Bash":
		return modelapi.Args{"command": arg, "description": "x"}
	case "Read":
		return modelapi.Args{"file_path": arg}
	case "Write":
		return modelapi.Args{"file_path": arg, "content": "x"}
	case "Edit":
		return modelapi.Args{"file_path": arg, "old_string": "x", "new_string": "y"}
	case "MultiEdit":
		return modelapi.Args{"file_path": arg, "edits": []any{map[string]string{"old_string": "x", "new_string": "y"}}}
	case "ExitPlanMode":
		return modelapi.Args{"plan": "p"}
	case "NotebookEdit":
		return modelapi.Args{"notebook_path": arg, "new_source": "x", "cell_id": "c", "edit_mode": "insert"}
	case "Grep", "Glob":
		return modelapi.Args{"pattern": "*", "path": arg}
	case "WebFetch":
		return modelapi.Args{"url": arg, "prompt": "x"}
	case "Skill":
		return modelapi.Args{"skill": arg}
	case "Agent":
		return modelapi.Args{"description": "x", "prompt": "x", "subagent_type": arg, "run_in_background": false}
	}
	return modelapi.Args{}
}

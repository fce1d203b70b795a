//go:build conformance

package conformance_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/sdk"
)

const doubleTable = "../agent/testdata/decisions.json"

// The scripted agent asks about the calls that the real one asks about: package
// scripted holds it to this table, and this test holds the real one to it. Every third
// call is tried; all with TROUPE_FULL=1. TROUPE_RECORD=1 records the table anew.
func TestDecisionsOfTheDouble(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(doubleTable)
	require.NoError(t, err)
	var groups []vendorGroup
	require.NoError(t, json.Unmarshal(raw, &groups))
	record := os.Getenv("TROUPE_RECORD") != ""
	if !record && os.Getenv("TROUPE_FULL") == "" {
		for i := range groups {
			groups[i].Calls = everyThird(groups[i].Calls, i)
		}
	}
	t.Cleanup(func() {
		if record {
			assert.NoError(t, os.WriteFile(doubleTable, vendorText(t, groups), 0o600))
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

const doubleDenials = "../agent/testdata/denials.json"

// denial is a call that is denied, and what the model reads of it.
type denial struct {
	Tool       string
	Arg        string             `json:",omitempty"`
	Mode       sdk.PermissionMode `json:",omitempty"`
	Disallowed string             `json:",omitempty"`
	// Callback is what denies: CanUseTool with deny, stop or fail, or a PreToolUse hook;
	// "" is nobody.
	Callback string `json:",omitempty"`
	Text     string
}

// The scripted agent says of a denied call what the real one says; package scripted
// holds it to the same table. Every third denial is tried; all with TROUPE_FULL=1.
// TROUPE_RECORD=1 records it anew.
func TestDenialsOfTheDouble(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(doubleDenials)
	require.NoError(t, err)
	var all []denial
	require.NoError(t, json.Unmarshal(raw, &all))
	record := os.Getenv("TROUPE_RECORD") != ""
	if !record && os.Getenv("TROUPE_FULL") == "" {
		all = everyThird(all, 0)
	}
	t.Cleanup(func() {
		if !record {
			return
		}
		var lines []string
		for _, d := range all {
			line, err := json.Marshal(d)
			assert.NoError(t, err)
			lines = append(lines, "  "+string(line))
		}
		assert.NoError(t, os.WriteFile(doubleDenials, []byte("[\n"+strings.Join(lines, ",\n")+"\n]\n"), 0o600))
	})
	for i := range all {
		d := &all[i]
		t.Run(fmt.Sprint(i, d.Tool, d.Mode, d.Callback), func(t *testing.T) {
			t.Parallel()
			r := newRig(t)
			o := r.options()
			r.runNothing(o, "")
			o.SDKMCPServers = vendorServers(t)
			o.PermissionMode = d.Mode
			if d.Disallowed != "" {
				o.DisallowedTools = []string{d.Disallowed}
			}
			o.CanUseTool, o.Hooks = callbackOf(d.Callback)
			r.model.Script("denied", modelapi.Say(modelapi.ToolUse(d.Tool, r.vendorInput(d.Tool, d.Arg))), modelapi.Say(modelapi.Text("done")))
			messages, _ := r.once(o, "go [[scn:denied]]")
			text := strings.ReplaceAll(r.toolResult(messages).Content.Text(), r.dir, "{dir}")
			if record {
				d.Text = text
				return
			}
			assert.Equal(t, d.Text, text)
		})
	}
}

func callbackOf(kind string) (sdk.CanUseTool, []sdk.Hook) {
	ask := func(r sdk.PermissionResult, err error) sdk.CanUseTool {
		return func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) { return r, err }
	}
	switch kind {
	case "deny":
		return ask(sdk.Deny("not now"), nil), nil
	case "stop":
		return ask(sdk.DenyAndStop("enough"), nil), nil
	case "fail":
		return ask(sdk.PermissionResult{}, errors.New("broken")), nil
	case "hook":
		return nil, []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			return sdk.DenyPreToolUse("not now"), nil
		})}
	}
	return nil, nil
}

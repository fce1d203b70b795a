package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/examples/internal/choice"
	"github.com/agent-troupe/troupe/session"
)

func Example() {
	agent, done := choice.ForTest()
	defer done()
	if err := run(context.Background(), agent, "Read cases.txt, delete the directory build, and say hi from a shell.", new(bytes.Buffer)); err != nil {
		fmt.Println(err)
	}
	// Output:
	// reads cases.txt
	// gets 1	# number of words, and the text
	// 2	2 hello world
	// 3	6 to be or not to be
	// 4
	// runs rm -rf build
	// gets PreToolUse:Bash hook error: Nothing is deleted here (deny: the deny rule Bash(rm:*) is about "rm -rf build").
	// runs echo hi
	// gets hi
	// says The demonstration has done this:
	// - cases.txt has 3 lines.
	// - To delete build did not work: PreToolUse:Bash hook error: Nothing is deleted here (deny: the deny rule Bash(rm:*) is about "rm -rf build").
	// - echo hi has ended.
}

func TestTheAuditHasWhatRan(t *testing.T) {
	t.Parallel()
	agent, done := choice.ForTest()
	defer done()
	var log bytes.Buffer
	require.NoError(t, run(t.Context(), agent, "Read README.md, delete the directory build, and say hi from a shell.", &log))
	var ran []string
	for d := json.NewDecoder(&log); d.More(); {
		var line struct{ Msg, Command, Path string }
		require.NoError(t, d.Decode(&line))
		ran = append(ran, line.Msg+" "+line.Command+line.Path)
	}
	assert.Equal(t, []string{"Read README.md", "Bash echo hi"}, ran)
}

func TestWhatDeletesIsDenied(t *testing.T) {
	t.Parallel()
	gate, err := noDeletion()
	require.NoError(t, err)
	for command, denied := range map[string]bool{
		"rm x":                      true,
		"git status; sudo rm -f x":  true,
		"true && (cd /; rm x)":      true,
		"echo $(rm x)":              true,
		"bash -c 'rm x'":            true,
		`r"m" x`:                    true,
		"find . | xargs rm":         true,
		"echo rm x":                 false,
		"git commit -m 'rm -rf it'": false,
		"ls /tmp/rm":                false,
	} {
		input, err := json.Marshal(map[string]any{
			"hook_event_name": "PreToolUse", "cwd": "/repo", "tool_name": "Bash", "tool_input": map[string]string{"command": command},
		})
		require.NoError(t, err)
		answer, err := gate.Func(t.Context(), &session.HookCall{Event: gate.Event, Input: input})
		require.NoError(t, err)
		assert.Equal(t, denied, strings.Contains(string(answer), `"permissionDecision":"deny"`), command)
	}
}

package differential

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/agent-troupe/troupe/conformance/modelapi"
)

// Recorded is the suite that holds the embedded agent to recordings.
func Recorded(t *testing.T) *Suite {
	t.Helper()
	tools, err := Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &Suite{
		Run: "recorded", Workers: 8, Tools: append(tools, "Skill", "WebFetch"), // which a case is given if it calls them
		Want: func(_ *testing.T, c *Case) (*Observation, error) { return c.Recording() },
		Got: func(t *testing.T, c *Case, want *Observation) (*Observation, error) {
			t.Helper()
			o, err := Play(t.Context(), c, Agent{Bare: true, Results: max(1, len(want.Results))})
			if err != nil {
				return nil, err
			}
			return o.like(want), nil
		},
	}
}

// Live is the suite that holds the embedded agent to the Claude Code at path, which plays
// each case first.
func Live(t *testing.T, path string) *Suite {
	t.Helper()
	tools, err := Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &Suite{
		Run: "live", Workers: 2, Tools: tools,
		Want: func(t *testing.T, c *Case) (*Observation, error) {
			t.Helper()
			return Play(t.Context(), c, Agent{CLI: path, Tools: tools})
		},
		Got: func(t *testing.T, c *Case, want *Observation) (*Observation, error) {
			t.Helper()
			return Play(t.Context(), c, Agent{Tools: tools, Results: max(1, len(want.Results))})
		},
	}
}

// Scenarios are the built-in scenarios of modelapi as cases.
func Scenarios() ([]*Case, error) {
	var all []*Case
	for _, name := range slices.Sorted(maps.Keys(modelapi.Builtin())) {
		more := ""
		switch name {
		case "hang", "slowbash", "agentslow": // they do not end, or not soon
			more = `,"events":[{"after":{"type":"system","subtype":"init"},"do":"interrupt","delay":3}]`
		case "reset", "err401", "err500forever", "empty", "garbage", "html": // ten retries take minutes
			more = `,"env":{"CLAUDE_CODE_MAX_RETRIES":"2"}`
		case "mcp", "mcpboom", "mcpslow":
			more = `,"host_tools":true`
		}
		arg := ""
		if name == "run" {
			arg = " echo run"
		}
		c, err := decode(fmt.Appendf(nil, `{"name":"scenario-%s","mode":"default","prompts":["please [[scn:%s%s]]"],"files":[{"path":"seed.txt","text":"one\ntwo\n"}]%s}`, name, name, arg, more))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

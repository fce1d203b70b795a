package differential

import (
	"testing"
)

// Recorded is the suite that holds the embedded agent to recordings.
func Recorded(t *testing.T) *Suite {
	t.Helper()
	tools, err := Tools(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return &Suite{
		Run: "recorded", Workers: 8, Tools: tools,
		Want: func(_ *testing.T, c *Case) (*Observation, error) { return c.Recording() },
		Got: func(t *testing.T, c *Case, want *Observation) (*Observation, error) {
			t.Helper()
			o, err := Play(t.Context(), c, Agent{Results: max(1, len(want.Results))})
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

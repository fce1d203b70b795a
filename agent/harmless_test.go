package agent

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The decisions were recorded from Claude Code 2.1.329, without any rules
// (conformance.TestDecisionsOfTheDouble). The agent here makes the same ones.
func TestDecisionsAreTheRealOnes(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/decisions.json")
	require.NoError(t, err)
	var groups []struct {
		Name, Mode string
		Calls      [][3]string
	}
	require.NoError(t, json.Unmarshal(raw, &groups))
	require.Len(t, groups, 3)
	const dir = "/work/repo"
	for _, g := range groups {
		p := permissions{mode: g.Mode}
		for _, row := range g.Calls {
			arg := strings.NewReplacer("{dir}", dir, "{home}", "/home/u").Replace(row[2])
			key := map[string]string{"Bash": "command", "Read": "file_path", "Write": "file_path", "Edit": "file_path", "Grep": "path", "Glob": "path"}[row[1]]
			c := &call{ToolCall: ToolCall{Name: row[1]}, input: Object{key: arg}}
			allow, ask, _ := p.decide(c, places{cwd: dir})
			got := "deny"
			switch {
			case allow:
				got = "allow"
			case ask && c.outside != "":
				got = "outside"
			case ask:
				got = "ask"
			}
			assert.Equal(t, row[0], got, "%s: %s %s", g.Name, row[1], row[2])
		}
	}
}

package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/examples/internal/choice"
	"github.com/agent-troupe/troupe/sdk"
)

func Example() {
	agent, done := choice.ForTest()
	defer done()
	if err := run(context.Background(), agent, "Import 3 records from the crm, then count them.", time.Millisecond); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// calls mcp__records__import {"records":3,"source":"crm"}
	// progress: 1 of 3 records
	// progress: 2 of 3 records
	// progress: 3 of 3 records
	// gets {"copied":3,"source":"crm"}
	// calls mcp__records__count {}
	// gets {"crm":3}
	// says The demonstration has done this:
	// - mcp__records__import says: {"copied":3,"source":"crm"}
	// - mcp__records__count says: {"crm":3}
}

// An agent that gives up ends the import.
func TestAnImportThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	s := &store{pause: 5 * time.Millisecond, records: map[string]int{}}
	server, err := s.server()
	require.NoError(t, err)
	result, err := sdk.Run(t.Context(), "go", &sdk.Options{
		SDKMCPServers: []*sdk.MCPServer{server}, AllowedTools: []string{"mcp__records"},
		Backend: scripted.New(scripted.WithTurns(scripted.Turn{Steps: scripted.Steps{
			&scripted.MCPCall{Server: "records", Tool: "import", Arguments: map[string]any{"source": "shop", "records": 1_000_000}, Limit: 50 * time.Millisecond},
			&scripted.MCPCall{Server: "records", Tool: "import", Arguments: map[string]any{"source": "crm", "records": 1}}, // waits for its turn
			scripted.Text("Done."),
		}})),
	})
	require.NoError(t, err)
	assert.Equal(t, "Done.", result.Text())
	s.mu.Lock()
	defer s.mu.Unlock()
	assert.Equal(t, 1, s.records["crm"])
	assert.Less(t, s.records["shop"], 1_000_000)
}

func TestUnknownAgent(t *testing.T) {
	t.Parallel()
	err := run(t.Context(), &choice.Agent{Name: "nobody"}, "", time.Millisecond)
	require.ErrorContains(t, err, "nobody")
}

package main

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
)

func Example() {
	if err := run(context.Background(), "scripted", "Import the records.", time.Millisecond); err != nil {
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
	// says There are three records, all from the crm.
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
	err := run(t.Context(), "nobody", "", time.Millisecond)
	require.ErrorContains(t, err, "nobody")
}

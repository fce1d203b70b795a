// Command toolserver gives the agent a slow tool. The tool reports its progress,
// stops when the agent cancels the call, and never runs twice at a time.
//
//	go run ./examples/toolserver                 # a demonstration, no account
//	go run ./examples/toolserver -agent claude   # Claude Code; or qoder; -model: the embedded agent
//
// Look for: import copies records one by one. Each step reports progress to the agent
// and restarts the tool's time limit, so a long import is fine as long as it makes
// progress. count only reads, so it does not wait for an import.
package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/examples/internal/choice"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// store holds the records that the tools use.
type store struct {
	pause time.Duration // for one record

	mu      sync.Mutex
	records map[string]int
}

type importInput struct {
	Source  string `json:"source" jsonschema:"where the records are" enum:"crm,shop"`
	Records int    `json:"records" jsonschema:"how many to copy"`
}

// load copies records until all are copied or ctx ends.
func (s *store) load(ctx context.Context, in importInput) (*sdk.ToolResult, error) {
	step := time.NewTicker(s.pause)
	defer step.Stop()
	for i := range in.Records {
		select {
		case <-step.C:
		case <-ctx.Done(): // the agent cancelled, there was no progress for too long, or the session ended
			return sdk.ErrorText(fmt.Sprintf("stopped after %d records", i)), nil
		}
		s.mu.Lock()
		s.records[in.Source]++
		s.mu.Unlock()
		message := fmt.Sprintf("%d of %d records", i+1, in.Records)
		if sdk.Progress(ctx, float64(i+1), float64(in.Records), message) {
			fmt.Println("progress:", message)
		}
	}
	return sdk.JSONResult(map[string]any{"source": in.Source, "copied": in.Records}), nil
}

// count returns the number of records by source.
func (s *store) count(context.Context, struct{}) (*sdk.ToolResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sdk.JSONResult(s.records), nil
}

// server is the MCP server. With Sequential only one writing tool runs at a time;
// read-only tools do not wait.
func (s *store) server() (*sdk.MCPServer, error) {
	server, err := sdk.NewMCPServer("records", "1.0.0",
		sdk.NewTool("import", "Copies records from a source into the store; slow. Returns how many were copied.", s.load,
			sdk.ToolTimeout(30*time.Second), sdk.Destructive(false), sdk.AlwaysLoad()),
		sdk.NewTool("count", "Counts the records in the store, by source; returns JSON.", s.count, sdk.ReadOnly(), sdk.AlwaysLoad()),
	)
	if err != nil {
		return nil, err
	}
	return server.Sequential(), nil
}

func main() {
	choice.Main("Import 3 records from the crm, then tell me how many records there are.", func(ctx context.Context, agent *choice.Agent, prompt string) error {
		return run(ctx, agent, prompt, 200*time.Millisecond)
	})
}

func run(ctx context.Context, agent *choice.Agent, prompt string, pause time.Duration) error {
	s := &store{pause: pause, records: map[string]int{}}
	server, err := s.server()
	if err != nil {
		return err
	}
	opts, err := agent.Options()
	if err != nil {
		return err
	}
	opts.SDKMCPServers = []*sdk.MCPServer{server}
	opts.AllowedTools = []string{protocol.MCPToolName("records", "import"), protocol.MCPToolName("records", "count")} // run without a permission request
	for m, err := range sdk.Query(ctx, prompt, opts) {
		if err != nil {
			return err
		}
		for _, call := range sdk.ToolUses(m) {
			fmt.Printf("calls %s %s\n", call.Name, call.Input)
		}
		for _, result := range sdk.ToolResults(m) {
			fmt.Println("gets", result.Content.Text())
		}
		if answer, ok := m.(*sdk.ResultMessage); ok {
			fmt.Println("says", answer.Text())
		}
	}
	return nil
}

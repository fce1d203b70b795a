// Command toolserver gives the agent a slow tool: it tells how far it has come,
// stops when the agent gives up, and never runs twice at a time.
//
//	go run ./examples/toolserver                 # a scripted agent, no account
//	go run ./examples/toolserver -agent claude   # Claude Code; or qoder
//
// What to see: import copies records one by one. Each step is a line of progress
// to the agent and starts the tool's deadline anew, so that the import may take
// as long as it likes but not stand still. count only reads, and need not wait for
// an import.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/sdk"
)

// store is what the tools work on.
type store struct {
	pause time.Duration // for one record

	mu      sync.Mutex
	records map[string]int
}

type importInput struct {
	Source  string `json:"source" jsonschema:"where the records are" enum:"crm,shop"`
	Records int    `json:"records" jsonschema:"how many to copy"`
}

// load copies records until it is done or nobody wants them any more.
func (s *store) load(ctx context.Context, in importInput) (*sdk.ToolResult, error) {
	step := time.NewTicker(s.pause)
	defer step.Stop()
	for i := range in.Records {
		select {
		case <-step.C:
		case <-ctx.Done(): // the agent cancelled, the tool stood still too long, or the session ended
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

// count reads.
func (s *store) count(context.Context, struct{}) (*sdk.ToolResult, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return sdk.JSONResult(s.records), nil
}

// server is the MCP server. Sequential lets one tool at a time write; those that
// only read do not wait.
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
	agent := flag.String("agent", "scripted", "scripted, claude or qoder")
	flag.Parse()
	prompt := "Import 3 records from the crm, then tell me how many records there are."
	if flag.NArg() > 0 {
		prompt = strings.Join(flag.Args(), " ")
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *agent, prompt, 200*time.Millisecond); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, agent, prompt string, pause time.Duration) error {
	s := &store{pause: pause, records: map[string]int{}}
	server, err := s.server()
	if err != nil {
		return err
	}
	opts, err := options(agent)
	if err != nil {
		return err
	}
	opts.SDKMCPServers = []*sdk.MCPServer{server}
	opts.AllowedTools = []string{sdk.MCPToolName("records", "import"), sdk.MCPToolName("records", "count")} // without asking
	for m, err := range sdk.Query(ctx, sdk.Input(prompt), opts) {
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

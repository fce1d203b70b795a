// Command customtool gives the agent a new tool: a Go function with a typed input,
// served over MCP from inside this process.
//
//	go run ./examples/customtool                 # a demonstration, no account
//	go run ./examples/customtool -agent claude   # Claude Code; or qoder; -model: the embedded agent
//
// Look for: the agent calls mcp__orders__lookup with an order's number, gets its status
// as JSON, and answers. A call whose input does not fit the schema never reaches the
// function.
package main

import (
	"context"
	"fmt"

	"github.com/agent-troupe/troupe/examples/internal/choice"
	"github.com/agent-troupe/troupe/sdk"
)

// lookupInput is the tool's input. Its JSON schema comes from the type and its
// tags; fields without omitempty are required.
type lookupInput struct {
	OrderID string `json:"order_id" jsonschema:"the number on the receipt, such as O-1001"`
	Detail  string `json:"detail,omitempty" jsonschema:"how much to tell" enum:"status,full"`
}

func lookup(_ context.Context, in lookupInput) (*sdk.ToolResult, error) {
	if in.OrderID != "O-1001" {
		return sdk.ErrorText("there is no order " + in.OrderID), nil // the model reads it and may try another
	}
	order := map[string]any{"order_id": in.OrderID, "status": "shipped"}
	if in.Detail == "full" {
		order["items"] = []string{"a kettle", "two cups"}
	}
	return sdk.JSONResult(order), nil
}

func main() { choice.Main("What is the status of order O-1001?", run) }

func run(ctx context.Context, agent *choice.Agent, prompt string) error {
	orders, err := sdk.NewMCPServer("orders", "1.0.0",
		sdk.NewTool("lookup", "Looks up an order by its number; returns its status as JSON.", lookup, sdk.ReadOnly(), sdk.AlwaysLoad()),
	)
	if err != nil {
		return err
	}
	opts, err := agent.Options()
	if err != nil {
		return err
	}
	opts.SDKMCPServers = []*sdk.MCPServer{orders}
	opts.AllowedTools = []string{"mcp__orders__lookup"} // runs without a permission request
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

package sdk_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/agent-troupe/troupe/sdk"
)

type lookupInput struct {
	OrderID string `json:"order_id" jsonschema:"the number on the receipt, such as O-1001"`
	Detail  string `json:"detail,omitempty" jsonschema:"how much to tell" enum:"status,full"`
}

func lookup(_ context.Context, in lookupInput) (*sdk.ToolResult, error) {
	if in.OrderID != "O-1001" {
		return sdk.ErrorText("there is no order " + in.OrderID), nil
	}
	return sdk.JSONResult(map[string]string{"order_id": in.OrderID, "status": "shipped"}), nil
}

func ExampleNewTool() {
	tool := sdk.NewTool("lookup_order", "Look up an order by its number; returns its status as JSON.", lookup, sdk.ReadOnly())
	orders, err := sdk.NewMCPServer("orders", "1.0.0", tool)
	if err != nil {
		fmt.Println(err)
		return
	}
	// The arguments that the agent sends when the model calls
	// mcp__orders__lookup_order.
	for _, arguments := range []string{`{"order_id":"O-1001"}`, `{"order_id":"O-7"}`, `{"detail":"all"}`} {
		result, err := orders.Handle(context.Background(), "tools/call", json.RawMessage(`{"name":"lookup_order","arguments":`+arguments+`}`))
		if err != nil {
			fmt.Println(err)
			return
		}
		var r sdk.ToolResult
		if err := json.Unmarshal(result, &r); err != nil {
			fmt.Println(err)
			return
		}
		text, _ := json.Marshal(r.Content[0])
		fmt.Println(r.IsError, string(text))
	}
	// Output:
	// false {"type":"text","text":"{\"order_id\":\"O-1001\",\"status\":\"shipped\"}"}
	// true {"type":"text","text":"there is no order O-7"}
	// true {"type":"text","text":"MCP error -32602: Input validation error: Invalid arguments for tool lookup_order: order_id: missing, expected string; detail: expected one of \"status\", \"full\", got \"all\""}
}

func ExampleNewMCPServer() {
	_, err := sdk.NewMCPServer("orders", "1.0.0",
		sdk.NewTool("lookup", "Look up an order.", lookup),
		sdk.NewTool("lookup", "", lookup),
	)
	fmt.Println(err)
	// Output:
	// option SDKMCPServers["orders"].Tools[1] (lookup): the tool has no description; tell the model when to use it and what it returns
	// option SDKMCPServers["orders"].Tools[1] (lookup): another tool of the server has the same name; rename one of them
}

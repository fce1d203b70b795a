package main

import (
	"context"
	"fmt"

	"github.com/agent-troupe/troupe/examples/internal/choice"
)

func Example() {
	agent, done := choice.ForTest()
	defer done()
	if err := run(context.Background(), agent, "What is the status of order O-1001?"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// calls mcp__orders__lookup {"order_id":"O-1001"}
	// gets {"order_id":"O-1001","status":"shipped"}
	// says The demonstration has done this:
	// - mcp__orders__lookup says: {"order_id":"O-1001","status":"shipped"}
}

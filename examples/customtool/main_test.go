package main

import (
	"context"
	"fmt"
)

func Example() {
	if err := run(context.Background(), "scripted", "Where is O-1001?"); err != nil {
		fmt.Println(err)
	}
	// Output:
	// calls mcp__orders__lookup {"order_id":"O-1001"}
	// gets {"order_id":"O-1001","status":"shipped"}
	// says It has been shipped.
}

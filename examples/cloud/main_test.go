package main

import (
	"context"
	"fmt"
)

func Example() {
	if err := run(context.Background(), options(""), "good morning"); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// -- cloud: created session sess_2 with created agent agent_1
	// user.message
	// -- the stream broke, and is opened again: connection reset by peer
	// agent.message
	// span.model_request_end
	// session.status_idle
	// answer to good morning in turn_1 ($0.25)
}

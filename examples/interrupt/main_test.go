package main

import (
	"context"
	"fmt"

	"github.com/agent-troupe/troupe/examples/internal/choice"
)

func Example() {
	agent, done := choice.ForTest()
	defer done()
	if err := run(context.Background(), agent, "Sleep 20 seconds."); err != nil {
		fmt.Println(err)
	}
	// Output:
	// calls Bash {"command":"sleep 20","description":"Wait"}
	// -- interrupted; messages that still wait: 0
	// -- result: error_during_execution (aborted_tools)
	// You interrupted me, so I stopped. The session continues.
}

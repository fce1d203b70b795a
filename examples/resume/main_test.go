package main

import (
	"context"
	"fmt"

	"github.com/agent-troupe/troupe/examples/internal/choice"
)

func Example() {
	if err := run(context.Background(), &choice.Agent{}, "Sleep, then say good morning."); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// -- the agent died with 1 message under way; policy: continue
	// -- the next process got: continuation, because the agent had accepted the message
	// Good morning. (recovered: true)
}

package main

import (
	"context"
	"fmt"

	"github.com/agent-troupe/troupe/examples/internal/choice"
)

func Example() {
	agent, done := choice.ForTest()
	defer done()
	if err := run(context.Background(), agent, "Say good morning."); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// recorder: starts
	// recorder: turn 1
	// recorder: prompt: Say good morning.
	// recorder: answer: The demonstration has done this:
	// -- recorder failed: the disk is jammed
	// -- restart of recorder: a new one may do better
	// recorder: starts
	// recorder: this one waits
	// recorder: and this one
	// -- recorder failed: the disk is full
	// -- escalated: no restart empties a disk
	// -- the session ended, because of recorder: the disk is full
}

package main

import (
	"context"
	"fmt"
	"strings"
)

func Example() {
	if err := run(context.Background(), "scripted", "Go.", strings.NewReader("test it, too\nyes\n")); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// calls ExitPlanMode
	// 1. Write hello.go.
	// is this the plan? (yes, or what to change)
	// gets The user wants the plan changed: test it, too
	// calls ExitPlanMode
	// 1. Write hello.go.
	// 2. Write its test.
	// is this the plan? (yes, or what to change)
	// gets approved
	// calls Write
	// gets written
	// says So be it. (success)
}

func Example_nobody() {
	if err := run(context.Background(), "scripted", "Go.", strings.NewReader("")); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// calls ExitPlanMode
	// 1. Write hello.go.
	// is this the plan? (yes, or what to change)
	// gets The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed.
	// says  (error_during_execution)
}

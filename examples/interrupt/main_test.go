package main

import (
	"context"
	"fmt"
)

func Example() {
	if err := run(context.Background(), "scripted", "Count."); err != nil {
		fmt.Println(err)
	}
	// Output:
	// 1, 2, 3, 4, 5
	// -- interrupted; messages that still wait: 0
	// -- result: error_during_execution (aborted_streaming)
	// Because you interrupted me.
}

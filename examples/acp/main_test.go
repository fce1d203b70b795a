package main

import (
	"context"
	"fmt"
	"os"
	"testing"
)

// TestMain is the agent, too: the example starts its own program.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == asAgent {
		if err := serve(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func Example() {
	if err := run(context.Background(), nil); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// I look first.
	// Now I clean up.
	// -- the agent asks for Bash: {"command":"rm -r build"}; denied
	// You wanted to keep it, so I leave it.
	// -- success, 1 call denied
}

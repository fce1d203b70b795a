package main

import (
	"context"
	"fmt"
	"strings"
)

func Example_nobody() {
	if err := run(context.Background(), "scripted", "Go.", "/scratch", strings.NewReader("")); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// calls Read {"file_path":"/repo/go.mod"}
	// gets module example
	// calls Write {"content":"A module.","file_path":"/repo/notes.txt"}
	// gets wrote {"content":"A module.","file_path":"/scratch/notes.txt"}
	// calls Bash {"command":"go test ./..."}
	// may it use Bash with {"command":"go test ./..."}? (y or n)
	// gets The user said no. Do without it.
	// says That is how far you let me go. (1 calls denied)
}

func Example_person() {
	if err := run(context.Background(), "scripted", "Go.", "/scratch", strings.NewReader("y\n")); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// calls Read {"file_path":"/repo/go.mod"}
	// gets module example
	// calls Write {"content":"A module.","file_path":"/repo/notes.txt"}
	// gets wrote {"content":"A module.","file_path":"/scratch/notes.txt"}
	// calls Bash {"command":"go test ./..."}
	// may it use Bash with {"command":"go test ./..."}? (y or n)
	// gets ok
	// says That is how far you let me go. (0 calls denied)
}

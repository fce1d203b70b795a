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
	// calls AskUserQuestion {"questions":[{"header":"Tests","options":[{"label":"all"},{"label":"short"}],"question":"Which tests?"}]}
	// Which tests? [1] all [2] short
	// gets Nobody is there to ask.
	// calls Bash {"command":"go test ./..."}
	// may it use Bash with {"command":"go test ./..."}? (yes, always, no why, stop)
	// gets Nobody is there to ask.
	// says That is how far you let me go. (denied calls: 2)
}

func Example_person() {
	if err := run(context.Background(), "scripted", "Go.", "/scratch", strings.NewReader("2\nyes\n")); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// calls Read {"file_path":"/repo/go.mod"}
	// gets module example
	// calls Write {"content":"A module.","file_path":"/repo/notes.txt"}
	// gets wrote {"content":"A module.","file_path":"/scratch/notes.txt"}
	// calls AskUserQuestion {"questions":[{"header":"Tests","options":[{"label":"all"},{"label":"short"}],"question":"Which tests?"}]}
	// Which tests? [1] all [2] short
	// gets answered {"answers":{"Which tests?":"short"},"questions":[{"header":"Tests","options":[{"label":"all"},{"label":"short"}],"question":"Which tests?"}]}
	// calls Bash {"command":"go test ./..."}
	// may it use Bash with {"command":"go test ./..."}? (yes, always, no why, stop)
	// gets ok
	// says That is how far you let me go. (denied calls: 0)
}

func Example_no() {
	if err := run(context.Background(), "scripted", "Go.", "/scratch", strings.NewReader("neither\nno It takes too long.\n")); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// calls Read {"file_path":"/repo/go.mod"}
	// gets module example
	// calls Write {"content":"A module.","file_path":"/repo/notes.txt"}
	// gets wrote {"content":"A module.","file_path":"/scratch/notes.txt"}
	// calls AskUserQuestion {"questions":[{"header":"Tests","options":[{"label":"all"},{"label":"short"}],"question":"Which tests?"}]}
	// Which tests? [1] all [2] short
	// gets answered {"answers":{"Which tests?":"neither"},"questions":[{"header":"Tests","options":[{"label":"all"},{"label":"short"}],"question":"Which tests?"}]}
	// calls Bash {"command":"go test ./..."}
	// may it use Bash with {"command":"go test ./..."}? (yes, always, no why, stop)
	// gets The user said no. It takes too long.
	// says That is how far you let me go. (denied calls: 1)
}

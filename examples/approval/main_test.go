package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/agent-troupe/troupe/examples/internal/choice"
)

// play runs the scripted agent before a person with those answers.
func play(answers string, plan bool) error {
	opts, err := options(&choice.Agent{}, plan)
	if err != nil {
		return err
	}
	setUp(opts, "/scratch", plan, newPerson(strings.NewReader(answers)))
	return run(context.Background(), opts, "Go.")
}

func Example_nobody() {
	if err := play("", false); err != nil {
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
	if err := play("2\nyes\n", false); err != nil {
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
	if err := play("neither\nno It takes too long.\n", false); err != nil {
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

func Example_plan() {
	if err := play("test it, too\nyes\n", true); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// calls ExitPlanMode {"plan":"1. Write hello.go."}
	// 1. Write hello.go.
	// is this the plan? (yes, or what to change)
	// gets The user wants the plan changed: test it, too
	// calls ExitPlanMode {"plan":"1. Write hello.go. 2. Write its test."}
	// 1. Write hello.go. 2. Write its test.
	// is this the plan? (yes, or what to change)
	// gets approved
	// calls Write {"content":"package hello","file_path":"hello.go"}
	// gets written
	// says So be it. (denied calls: 1)
}

func Example_planForNobody() {
	if err := play("", true); err != nil {
		fmt.Println(err)
	}
	// Unordered output:
	// calls ExitPlanMode {"plan":"1. Write hello.go."}
	// 1. Write hello.go.
	// is this the plan? (yes, or what to change)
	// gets The user doesn't want to proceed with this tool use. The tool use was rejected (eg. if it was a file edit, the new_string was NOT written to the file). STOP what you are doing and wait for the user to tell you how to proceed.
	// says  (denied calls: 1)
}

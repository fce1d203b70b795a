package modeltest_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
)

// A model that reads a file and says what is in it. Its first answer is cut off.
func Example() {
	server := &modeltest.Server{
		Script: func(r *modeltest.Request) *modeltest.Answer {
			if results := r.Results(); len(results) > 0 {
				return modeltest.Say(modeltest.Text("It says " + results[0].Text + "."))
			}
			return modeltest.Say(modeltest.Text("I look."), modeltest.Call("Read", map[string]any{"file_path": "a.txt"}))
		},
		Fault: func(r *modeltest.Request) *modeltest.Fault {
			if r.N == 1 {
				return &modeltest.Fault{BreakAt: 400}
			}
			return nil
		},
	}
	m := server.Anthropic(model.Config{})
	messages := [][]byte{m.Codec().Message(&model.Message{Role: model.User, Blocks: []model.Block{modeltest.Text("What is in a.txt?")}})}
	for range 2 {
		err := m.Stream(context.Background(), &model.Request{Model: "m", Messages: messages}, func(e *model.Event) bool {
			if e.Kind == model.Done {
				fmt.Printf("%s %s%s%s\n", e.Block.Kind, e.Block.Text, e.Block.Name, e.Block.Input)
			}
			return true
		})
		var failed *model.Error
		if errors.As(err, &failed) {
			fmt.Println("failed:", failed.Class)
		}
	}
	// Output:
	// failed: network
	// text I look.
	// tool_use Read{"file_path":"a.txt"}
}

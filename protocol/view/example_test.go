package view_test

import (
	"context"
	"fmt"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol/tools"
	"github.com/agent-troupe/troupe/protocol/view"
	"github.com/agent-troupe/troupe/sdk"
)

func ExampleToolCalls() {
	opts := &sdk.Options{
		Backend: scripted.New(scripted.WithScript(&scripted.Script{Default: scripted.Steps{
			&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "make"}, Result: "built"},
			scripted.Text("It builds."),
		}})),
		CanUseTool: func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.Allow(), nil
		},
	}
	var calls view.ToolCalls
	for m, err := range sdk.Query(context.Background(), "Build it.", opts) {
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, call := range calls.Add(m) {
			in, err := call.Input()
			if err != nil {
				continue // the model wrote something else
			}
			if bash, ok := in.(*tools.BashInput); ok {
				fmt.Println(bash.Command, call.State)
			}
		}
	}
	// Output:
	// make running
	// make done
}

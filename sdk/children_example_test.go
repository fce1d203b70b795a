package sdk_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// A child of your own lives in the session's supervision tree. Here it counts answers, and
// is started again after a failure.
func ExampleClientOf() {
	total := 0
	counter, answers := session.NewChild(supervisor.Child{Name: "counter"}, func() session.Behavior[string] {
		return session.Behavior[string]{
			Handle: func(ctx context.Context, text string) error {
				if text == "" {
					return errors.New("an empty answer") // the supervisor starts the child again
				}
				total++
				fmt.Println(total, text, sdk.ClientOf(ctx).SessionID() != "")
				return nil
			},
			Stop: func(_ context.Context, why error) error {
				fmt.Println("stops:", why)
				return nil
			},
		}
	})
	opts := &sdk.Options{
		Backend:  played(scripted.Text("The tests pass.")),
		Children: []*session.Child{counter},
	}
	client := sdk.NewClient(opts)
	ctx := context.Background()
	if err := client.Connect(ctx); err != nil {
		fmt.Println(err)
		return
	}
	turn, err := client.Send(ctx, sdk.UserText("Do the tests pass?"))
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := turn.Result(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	_ = answers.Send(result.Text())
	fmt.Println("closed:", client.Close(ctx))
	// Output:
	// 1 The tests pass. true
	// stops: <nil>
	// closed: <nil>
}

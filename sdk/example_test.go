package sdk_test

import (
	"context"
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// played is an agent from a script, so that the examples need no CLI. Leave
// Options.Backend out to talk to the one that is installed.
func played(steps ...scripted.Step) sdk.Backend {
	return scripted.New(scripted.WithTurns(scripted.Turn{Steps: steps}))
}

func ExampleQuery() {
	opts := &sdk.Options{Backend: played(scripted.Text("A module for agents."))}
	for m, err := range sdk.Query(context.Background(), "What is in this repo?", opts) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch m := m.(type) {
		case *sdk.AssistantMessage:
			fmt.Println("agent:", sdk.TextOf(m))
		case *sdk.ResultMessage:
			fmt.Println("done:", m.Subtype)
		}
	}
	// Output:
	// agent: A module for agents.
	// done: success
}

func ExampleRun() {
	result, err := sdk.Run(context.Background(), "What is 6 times 7?", &sdk.Options{Backend: played(scripted.Text("42"))})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Result)
	// Output: 42
}

func ExampleRunAs() {
	type report struct {
		City    string `json:"city"`
		Celsius int    `json:"celsius" jsonschema:"the temperature now"`
	}
	opts := &sdk.Options{Backend: played(&scripted.Result{Structured: map[string]any{"city": "Bonn", "celsius": 21}})}
	r, _, err := sdk.RunAs[report](context.Background(), "How warm is it in Bonn?", opts)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d degrees in %s\n", r.Celsius, r.City)
	// Output: 21 degrees in Bonn
}

// AskAs is RunAs for a conversation: the client gets the shape when it is made.
func ExampleAskAs() {
	type report struct {
		City    string `json:"city"`
		Celsius int    `json:"celsius"`
	}
	ctx := context.Background()
	format, err := sdk.OutputFormatOf[report]()
	if err != nil {
		fmt.Println(err)
		return
	}
	client := sdk.NewClient(&sdk.Options{
		Backend:      played(&scripted.Result{Structured: map[string]any{"city": "Bonn", "celsius": 21}}),
		OutputFormat: format,
	})
	if err := client.Connect(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)
	r, _, err := sdk.AskAs[report](ctx, client, "How warm is it in Bonn?")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%d degrees in %s\n", r.Celsius, r.City)
	// Output: 21 degrees in Bonn
}

// The first model is overloaded, and what that attempt cost is not in the result.
func ExampleRetry() {
	failed := true
	agents := []sdk.Backend{
		played(&scripted.Result{IsError: &failed, APIErrorStatus: 529, Cost: 0.01}),
		played(scripted.Text("42")),
	}
	policy := sdk.RetryPolicy{
		Attempts: 3,
		Backoff:  supervisor.Backoff{Initial: time.Millisecond},
		OnFailure: func(a sdk.Attempt) {
			fmt.Printf("attempt %d failed for $%.2f\n", a.Number, a.CostUSD())
		},
	}
	result, attempts, err := sdk.Retry(context.Background(), policy, func(ctx context.Context) (*sdk.ResultMessage, error) {
		agent := agents[0]
		agents = agents[1:]
		return sdk.Run(ctx, "What is 6 times 7?", &sdk.Options{Backend: agent})
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Printf("%s, after $%.2f\n", result.Result, attempts.CostUSD())
	// Output:
	// attempt 1 failed for $0.01
	// 42, after $0.01
}

// A run shows its messages to OnMessage.
func ExampleRun_onMessage() {
	opts := &sdk.Options{
		Backend: played(scripted.Text("42")),
		OnMessage: func(m sdk.Message) {
			if m, ok := m.(*sdk.AssistantMessage); ok {
				fmt.Println("agent:", sdk.TextOf(m))
			}
		},
	}
	if _, err := sdk.Run(context.Background(), "What is 6 times 7?", opts); err != nil {
		fmt.Println(err)
	}
	// Output: agent: 42
}

func ExampleTexts() {
	opts := &sdk.Options{
		Backend:                played(&scripted.Partial{Chunks: []string{"Once ", "upon ", "a time"}}),
		IncludePartialMessages: true,
	}
	for text, err := range sdk.Texts(sdk.Query(context.Background(), "Tell me a story.", opts)) {
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Print(text)
	}
	// Output: Once upon a time
}

func ExampleClient() {
	ctx := context.Background()
	echo := scripted.New(scripted.WithScript(&scripted.Script{})) // says everything back
	client := sdk.NewClient(&sdk.Options{Backend: echo})
	if err := client.Connect(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)
	for _, text := range []string{"Hello.", "And goodbye."} {
		turn, err := client.Send(ctx, sdk.UserText(text))
		if err != nil {
			fmt.Println(err)
			return
		}
		result, err := turn.Result(ctx)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(result.Result)
	}
	// Output:
	// Hello.
	// And goodbye.
}

// A drain lets the turn under way end, and refuses what is sent afterwards.
func ExampleClient_Drain() {
	ctx := context.Background()
	client := sdk.NewClient(&sdk.Options{Backend: played(scripted.Text("Done."))})
	if err := client.Connect(ctx); err != nil {
		fmt.Println(err)
		return
	}
	turn, err := client.Send(ctx, sdk.UserText("Finish this."))
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := client.Drain(ctx); err != nil {
		client.Close(ctx) // ctx ended first: do not wait any longer
	}
	result, err := turn.Result(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Result)
	_, err = client.Send(ctx, sdk.UserText("And this."))
	fmt.Println(err)
	// Output:
	// Done.
	// the session is closed
}

// An idle session gives up its process, and the next message starts another one.
func ExampleClient_Passivate() {
	ctx := context.Background()
	client := sdk.NewClient(&sdk.Options{Backend: played(scripted.Text("Done."))})
	if err := client.Connect(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)
	ask := func(prompt string) {
		turn, err := client.Send(ctx, sdk.UserText(prompt))
		if err != nil {
			fmt.Println(err)
			return
		}
		if result, err := turn.Result(ctx); err != nil {
			fmt.Println(err)
		} else {
			fmt.Println(result.Result)
		}
	}
	ask("Do this.")
	if err := client.Passivate(ctx); err != nil {
		fmt.Println(err) // a *session.PassivateError says what the process is needed for
	}
	fmt.Println(client.State())
	ask("And this.")
	// Output:
	// Done.
	// passivated
	// Done.
}

// The running turn is stopped, and the message behind it with it.
func ExampleClient_Stop() {
	ctx := context.Background()
	client := sdk.NewClient(&sdk.Options{Backend: played(scripted.Delay(time.Hour))})
	if err := client.Connect(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)
	for _, prompt := range []string{"Work for an hour.", "Then go on."} {
		if _, err := client.Send(ctx, sdk.UserText(prompt)); err != nil {
			fmt.Println(err)
			return
		}
	}
	receipt, err := client.Stop(ctx, session.StopScope{Queued: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("stopped:", receipt.Turn != "", "cancelled:", len(receipt.Cancelled))
	fmt.Println("still running:", receipt.Running != "", "queued:", len(receipt.Queued))
	// Output:
	// stopped: true cancelled: 1
	// still running: false queued: 0
}

// A request that the client has no method for.
func ExampleCall() {
	ctx := context.Background()
	client := sdk.NewClient(&sdk.Options{Backend: played(scripted.Text("Done."))})
	if err := client.Connect(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)
	version, err := sdk.Call[protocol.BinaryVersionResponse](ctx, client, protocol.BinaryVersionRequest{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(version.Version)
	// Output: 2.1.329
}

// One loop shows messages and answers questions.
func ExampleInteractive() {
	ctx := context.Background()
	client := sdk.NewInteractive(&sdk.Options{Backend: played(
		&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "make today"}, Result: "Monday"},
		scripted.Text("It is Monday."),
	)})
	if err := client.Connect(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer client.Close(ctx)
	if _, err := client.Send(ctx, sdk.UserText("Which day is it?")); err != nil {
		fmt.Println(err)
		return
	}
	for u, err := range client.Updates(ctx) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if question := u.Permission; question != nil {
			fmt.Println("allowed:", question.Request.ToolName)
			question.Answer(sdk.Allow())
		}
		switch m := u.Message.(type) {
		case *sdk.AssistantMessage:
			if text := sdk.TextOf(m); text != "" {
				fmt.Println("agent:", text)
			}
		case *sdk.ResultMessage:
			return
		}
	}
	// Output:
	// allowed: Bash
	// agent: It is Monday.
}

func ExampleOnPreToolUse() {
	noDeletion := sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		var input struct {
			Command string `json:"command"`
		}
		if err := in.Decode(&input); err != nil {
			return sdk.PreToolUseOutput{}, err // the call is denied
		}
		if input.Command == "rm -rf ." {
			return sdk.DenyPreToolUse("nothing is deleted here"), nil
		}
		return sdk.PreToolUseOutput{}, nil // continues
	}, sdk.Match("Bash"))

	opts := &sdk.Options{
		Backend: played(&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "rm -rf ."}}),
		Hooks:   []sdk.Hook{noDeletion},
	}
	for m, err := range sdk.Query(context.Background(), "Clean up.", opts) {
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, r := range sdk.ToolResults(m) {
			fmt.Println(r.Content.Text())
		}
	}
	// Output: PreToolUse:Bash hook error: nothing is deleted here
}

func ExampleCanUseTool() {
	opts := &sdk.Options{
		Backend: played(&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "make"}, Result: "built"}),
		CanUseTool: func(_ context.Context, r *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			fmt.Println("may it use", r.ToolName, "with", string(r.Input))
			return sdk.Allow(), nil
		},
	}
	for m, err := range sdk.Query(context.Background(), "Build it.", opts) {
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, r := range sdk.ToolResults(m) {
			fmt.Println(r.Content.Text())
		}
	}
	// Output:
	// may it use Bash with {"command":"make"}
	// built
}

// A Claude Code that is started before anybody knows where it will work.
func ExamplePrewarm() {
	ctx := context.Background()
	spare, err := sdk.Prewarm(ctx, &sdk.Options{Backend: scripted.New()}) // usually sdk.Claude
	if err != nil {
		fmt.Println(err)
		return
	}
	defer spare.Close(ctx)

	// Later, when the user has chosen a directory:
	if _, err := spare.Claim(ctx, sdk.Claim{Cwd: "/repo", PermissionMode: sdk.ModePlan}); err != nil {
		fmt.Println(err) // it stays parked; a session of its own may do
		return
	}
	turn, err := spare.Send(ctx, sdk.UserText("Say hello."))
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := turn.Result(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Subtype)
	// Output: success
}

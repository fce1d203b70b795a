package sdk_test

import (
	"context"
	"fmt"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// A session with a private configuration directory. The event says what it got; without an
// API key it would say why the directory is shared.
func Example_isolation() {
	ctx := context.Background()
	rt, err := runtime.New(runtime.Config{})
	if err != nil {
		panic(err)
	}
	defer func() { _ = rt.Shutdown(ctx) }() // removes the directory
	opts := &sdk.Options{
		Runtime: rt, Backend: scripted.New(),
		Isolation: session.IsolationPrivate,
		CleanEnv:  true, Env: map[string]string{"ANTHROPIC_API_KEY": "sk-…"},
		OnEvent: func(r sdk.EventRecord) {
			if e, ok := r.Event.(*session.Isolated); ok {
				fmt.Println("private:", e.Shared == "", "copied:", e.Copied)
			}
		},
	}
	if _, err := sdk.Run(ctx, "hello", opts); err != nil {
		panic(err)
	}
	// Output: private: true copied: []
}

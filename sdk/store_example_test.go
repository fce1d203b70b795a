package sdk_test

import (
	"context"
	"fmt"
	"os"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/transcript/store"
)

// A session begins on one machine and continues on another one; both share a directory.
// The scripted agent repeats what it remembers.
func Example_sessionStore() {
	ctx := context.Background()
	shared, err := os.MkdirTemp("", "sessions")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(shared) }()
	machine := func(resume, prompt string) *sdk.ResultMessage {
		home, err := os.MkdirTemp("", "home")
		if err != nil {
			panic(err)
		}
		defer func() { _ = os.RemoveAll(home) }()
		r, err := sdk.Run(ctx, prompt, &sdk.Options{
			Backend: scripted.New(scripted.WithScript(&scripted.Script{Transcript: true, Default: scripted.Steps{scripted.Text("${history}")}})),
			Cwd:     "/", Env: map[string]string{"HOME": home},
			SessionStore: store.NewDir(shared), Resume: resume,
		})
		if err != nil {
			panic(err)
		}
		return r
	}
	first := machine("", "my name is Ada")
	fmt.Println(machine(first.SessionID, "who am I?").Result)
	// Output: my name is Ada | who am I?
}

package inspect_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// A program opens its runtime to troupe ps and troupe top, and looks into it itself.
func Example() {
	ctx := context.Background()
	rt, err := runtime.New(runtime.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = rt.Shutdown(ctx) }()

	dir, err := os.MkdirTemp("", "troupe") // leave Socket empty for the one that troupe ps finds
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	server, err := inspect.Listen(rt, inspect.Config{Socket: filepath.Join(dir, "example.sock")})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = server.Close() }()
	go func() { _ = server.Serve() }() // returns after Close

	client := sdk.NewInteractive(&sdk.Options{Runtime: rt, Backend: scripted.New()})
	if err := client.Connect(ctx); err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = client.Close(ctx) }()

	report, err := inspect.Fetch(ctx, server.Addr())
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, s := range report.Tree.Sessions {
		fmt.Printf("%s agent: %v, %d unread\n", s.Backend, s.State, s.Unread)
	}
	// Output: claude agent: ready, 0 unread
}

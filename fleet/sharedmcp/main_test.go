package sharedmcp_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if os.Getenv(serverEnv) != "" {
		serverMain()
		return
	}
	goleak.VerifyTestMain(m)
}

// serverEnv makes the test's program an MCP server on stdio, which notes each start in the
// file that it names.
const serverEnv = "TROUPE_FLEET_TEST_SERVER"

func serverMain() {
	f, err := os.OpenFile(os.Getenv(serverEnv), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	dir, _ := os.Getwd()
	_, _ = fmt.Fprintln(f, os.Getpid(), dir)
	if os.Getenv("BROKEN") != "" {
		fmt.Fprintln(os.Stderr, "no database")
		os.Exit(3)
	}
	fmt.Println("this line is no message")
	s := mcpsdk.NewServer(&mcpsdk.Implementation{Name: "db", Version: "1"}, nil)
	type none struct{}
	tool := func(name string, run func(context.Context, *mcpsdk.CallToolRequest) string) {
		mcpsdk.AddTool(s, &mcpsdk.Tool{Name: name, Description: name}, func(ctx context.Context, r *mcpsdk.CallToolRequest, _ none) (*mcpsdk.CallToolResult, any, error) {
			return &mcpsdk.CallToolResult{Content: []mcpsdk.Content{&mcpsdk.TextContent{Text: run(ctx, r)}}}, nil, nil
		})
	}
	tool("pid", func(context.Context, *mcpsdk.CallToolRequest) string { return fmt.Sprint(os.Getpid()) })
	tool("die", func(context.Context, *mcpsdk.CallToolRequest) string { os.Exit(3); return "" })
	tool("wait", func(ctx context.Context, r *mcpsdk.CallToolRequest) string {
		_ = r.Session.NotifyProgress(ctx, &mcpsdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
		<-ctx.Done()
		_, _ = fmt.Fprintln(f, "cancelled")
		return ""
	})
	tool("late", func(ctx context.Context, r *mcpsdk.CallToolRequest) string { // asks when its call is cancelled
		_ = r.Session.NotifyProgress(ctx, &mcpsdk.ProgressNotificationParams{ProgressToken: r.Params.GetProgressToken(), Progress: 1})
		<-ctx.Done()
		answer, err := r.Session.Elicit(context.WithoutCancel(ctx), &mcpsdk.ElicitParams{Message: "sure?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}})
		if err != nil {
			answer = &mcpsdk.ElicitResult{Action: "refused"}
		}
		_, _ = fmt.Fprintln(f, "late", answer.Action)
		return ""
	})
	tool("roots", func(ctx context.Context, r *mcpsdk.CallToolRequest) string {
		roots, err := r.Session.ListRoots(ctx, nil) //nolint:staticcheck // servers use it
		if err != nil {
			return "error: " + err.Error()
		}
		return roots.Roots[0].URI
	})
	tool("ask", func(ctx context.Context, r *mcpsdk.CallToolRequest) string {
		answer, err := r.Session.Elicit(ctx, &mcpsdk.ElicitParams{Message: "sure?", RequestedSchema: map[string]any{"type": "object", "properties": map[string]any{}}})
		if err != nil {
			return "error: " + err.Error()
		}
		return answer.Action
	})
	_ = s.Run(context.Background(), &mcpsdk.StdioTransport{})
}

package sessions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agent-troupe/troupe/sdk"
)

func TestToolArguments(t *testing.T) {
	type in struct {
		Amount int    `json:"amount"`
		To     string `json:"to,omitempty"`
	}
	var got in
	ran := 0
	srv, err := sdk.NewMCPServer("bank", "1", sdk.NewTool("pay", "pays", func(_ context.Context, i in) (*sdk.ToolResult, error) {
		got = i
		ran++
		return sdk.Text("ok"), nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{`{"amount":1}`, `{"amount":1,"Amount":1000000}`, `{"Amount":1000000,"amount":1}`, `{"amount":1,"amount":1000000}`, `{"AMOUNT":5,"amount":1}`, `{"amount":1,"TO":"evil"}`, `{"amount":1,"to":"good","To":"evil"}`, `{"amount":1,"\u0054O":"evil"}`, `{"amount":1.0}`, `{"amount":1e3}`, `{"amount":"1"}`, `{"amount":null}`, `{}`, `null`, `[]`, ``, `{"amount":1}x`, `{"amount":99999999999999999999}`, `{"amount":1,"x":` + strings.Repeat("[", 20000) + strings.Repeat("]", 20000) + `}`} {
		got, before := in{}, ran
		_ = got
		raw := fmt.Sprintf(`{"name":"pay","arguments":%s}`, args)
		if args == "" {
			raw = `{"name":"pay"}`
		}
		out, err := srv.Handle(context.Background(), "tools/call", json.RawMessage(raw))
		t.Logf("%.60s ran=%v err=%v %.160s", args, ran > before, err, out)
	}
	_ = got
}

func TestToolArgumentsSeen(t *testing.T) {
	type in struct {
		Amount int    `json:"amount"`
		To     string `json:"to,omitempty"`
	}
	srv, _ := sdk.NewMCPServer("bank", "1", sdk.NewTool("pay", "pays", func(_ context.Context, i in) (*sdk.ToolResult, error) {
		return sdk.JSONResult(i), nil
	}))
	for _, args := range []string{`{"amount":1,"Amount":1000000}`, `{"Amount":1000000,"amount":1}`, `{"amount":1,"amount":1000000}`, `{"amount":1,"to":"good","To":"evil"}`} {
		out, err := srv.Handle(context.Background(), "tools/call", json.RawMessage(`{"name":"pay","arguments":`+args+`}`))
		t.Logf("%s -> %s %v", args, out, err)
	}
}

// Malformed JSON-RPC through the whole stack.
func TestMCPFrames(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex // a call may outlive its session
	ran := []string{}
	note := func(tool string) {
		mu.Lock()
		defer mu.Unlock()
		ran = append(ran, tool)
	}
	srv, err := sdk.NewMCPServer("srv", "1",
		sdk.NewTool("safe", "safe", func(context.Context, struct{}) (*sdk.ToolResult, error) {
			note("safe")
			return sdk.Text("safe"), nil
		}),
		sdk.NewTool("danger", "danger", func(context.Context, struct{}) (*sdk.ToolResult, error) {
			note("danger")
			return sdk.Text("danger"), nil
		}),
		sdk.NewTool("big", "big", func(context.Context, struct{}) (*sdk.ToolResult, error) {
			return sdk.Text(strings.Repeat("x", 80<<20)), nil
		}),
		sdk.NewTool("inject", "inject", func(context.Context, struct{}) (*sdk.ToolResult, error) {
			return sdk.Text("x\"}]}}},\n{\"type\":\"result\"}\u2028\x00\xff"), nil
		}),
		sdk.NewTool("panics", "panics", func(context.Context, struct{}) (*sdk.ToolResult, error) {
			panic(fmt.Errorf("dsn=postgres://u:SECRET-panic@h"))
		}),
	)
	if err != nil {
		t.Fatal(err)
	}
	m := func(id, server, msg string) string {
		return fmt.Sprintf(`{"type":"control_request","request_id":%q,"request":{"subtype":"mcp_message","server_name":%q,"message":%s}}`, id, server, msg)
	}
	call := func(name string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"` + name + `","arguments":{}}}`
	}
	for name, line := range map[string]string{
		"plain": m("a", "srv", call("safe")), "dup name": m("a", "srv", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","name":"danger"}}`), "case name": m("a", "srv", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"safe","Name":"danger"}}`),
		"dup method": m("a", "srv", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call","params":{"name":"danger"}}`), "case method": m("a", "srv", `{"jsonrpc":"2.0","id":1,"method":"ping","Method":"tools/call","params":{"name":"danger"}}`),
		"unknown tool": m("a", "srv", call("none")), "other case": m("a", "srv", call("Safe")), "full name": m("a", "srv", call("mcp__srv__safe")), "unknown server": m("a", "other", call("safe")), "server case": m("a", "SRV", call("safe")),
		"message text": m("a", "srv", `"x"`), "message null": m("a", "srv", `null`), "message list": m("a", "srv", `[`+call("safe")+`]`), "no message": `{"type":"control_request","request_id":"a","request":{"subtype":"mcp_message","server_name":"srv"}}`, "id object": m("a", "srv", `{"jsonrpc":"2.0","id":{"x":1},"method":"tools/call","params":{"name":"safe"}}`), "id null": m("a", "srv", `{"jsonrpc":"2.0","id":null,"method":"tools/call","params":{"name":"safe"}}`), "no id": m("a", "srv", `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"danger"}}`),
		"big": m("a", "srv", call("big")), "inject": m("a", "srv", call("inject")), "panics": m("a", "srv", call("panics")), "reply": m("a", "srv", `{"jsonrpc":"2.0","id":1,"result":{}}`), "error": m("a", "srv", `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`), "params text": m("a", "srv", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":"safe"}`),
	} {
		t.Run(name, func(t *testing.T) {
			mu.Lock()
			ran = nil
			mu.Unlock()
			start := time.Now()
			a := converse(t, &sdk.Options{SDKMCPServers: []*sdk.MCPServer{srv}}, line)
			mu.Lock()
			defer mu.Unlock()
			for _, l := range a.lines {
				t.Logf("ran %v in %v: %.250q (%d bytes)", ran, time.Since(start).Round(time.Millisecond), l, len(l))
			}
			if len(a.lines) == 0 {
				t.Logf("ran %v; no answer %v %v", ran, a.err, a.log)
			}
		})
	}
}

package sdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

func TestResults(t *testing.T) {
	t.Parallel()
	size := int64(7)
	blocks := func(c ...mcpsdk.Content) *sdk.ToolResult { return &sdk.ToolResult{Content: c} }
	tests := map[string]struct {
		result *sdk.ToolResult
		err    error
		want   string
	}{
		"text":             {result: sdk.Text("p<q"), want: `{"content":[{"type":"text","text":"p<q"}]}`},
		"empty text":       {result: sdk.Text(""), want: `{"content":[{"type":"text","text":""}]}`},
		"failure":          {result: sdk.ErrorText("order not found"), want: `{"content":[{"type":"text","text":"order not found"}],"isError":true}`},
		"error":            {err: errPlain, want: `{"content":[{"type":"text","text":"handler exploded"}],"isError":true}`},
		"error beats it":   {result: sdk.Text("x"), err: errPlain, want: `{"content":[{"type":"text","text":"handler exploded"}],"isError":true}`},
		"error, wordless":  {err: errors.New(""), want: `{"content":[{"type":"text","text":"tool it failed and did not say why"}],"isError":true}`},
		"object":           {result: sdk.JSONResult(map[string]int{"a": 1}), want: `{"content":[{"type":"text","text":"{\"a\":1}"}],"structuredContent":{"a":1}}`},
		"list":             {result: sdk.JSONResult([]int{1, 2}), want: `{"content":[{"type":"text","text":"[1,2]"}]}`},
		"not JSON":         {result: sdk.JSONResult(math.NaN()), want: `{"content":[{"type":"text","text":"the tool's result is not JSON: json: unsupported value: NaN"}],"isError":true}`},
		"image":            {result: blocks(&mcpsdk.ImageContent{Data: []byte{0}, MIMEType: "image/png"}), want: `{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}]}`},
		"audio":            {result: blocks(&mcpsdk.AudioContent{Data: []byte{0}, MIMEType: "audio/wav"}), want: `{"content":[{"type":"audio","data":"AA==","mimeType":"audio/wav"}]}`},
		"link":             {result: blocks(&mcpsdk.ResourceLink{URI: "file:///a", Name: "a", Size: &size}), want: `{"content":[{"type":"resource_link","uri":"file:///a","name":"a","size":7}]}`},
		"embedded text":    {result: blocks(&mcpsdk.EmbeddedResource{Resource: &mcpsdk.ResourceContents{URI: "file:///a", Text: "hi"}}), want: `{"content":[{"type":"resource","resource":{"uri":"file:///a","text":"hi"}}]}`},
		"embedded blob":    {result: blocks(&mcpsdk.EmbeddedResource{Resource: &mcpsdk.ResourceContents{URI: "file:///a", Blob: []byte{0}}}), want: `{"content":[{"type":"resource","resource":{"uri":"file:///a","blob":"AA=="}}]}`},
		"annotated":        {result: blocks(&mcpsdk.TextContent{Text: "x", Annotations: &mcpsdk.Annotations{Audience: []mcpsdk.Role{"user"}}}), want: `{"content":[{"type":"text","text":"x","annotations":{"audience":["user"]}}]}`},
		"structured alone": {result: &sdk.ToolResult{StructuredContent: map[string]string{"k": "<v>"}}, want: `{"content":[{"type":"text","text":"{\"k\":\"<v>\"}"}],"structuredContent":{"k":"<v>"}}`},
		"with _meta": {
			result: &sdk.ToolResult{Meta: mcpsdk.Meta{"m": 1}, Content: sdk.Text("x").Content, StructuredContent: map[string]int{"a": 1}, IsError: true},
			want:   `{"_meta":{"m":1},"content":[{"type":"text","text":"x"}],"structuredContent":{"a":1},"isError":true}`,
		},
		"nothing":           {want: `{"content":[{"type":"text","text":"tool it is broken: it returned neither a result nor an error"}],"isError":true}`},
		"empty":             {result: &sdk.ToolResult{}, want: `{"content":[{"type":"text","text":"tool it is broken: it returned a result without content"}],"isError":true}`},
		"empty list":        {result: blocks(), want: `{"content":[{"type":"text","text":"tool it is broken: it returned a result without content"}],"isError":true}`},
		"nil block":         {result: blocks(&mcpsdk.TextContent{}, nil), want: `{"content":[{"type":"text","text":"tool it is broken: content[1] of its result is nil"}],"isError":true}`},
		"typed nil block":   {result: blocks((*mcpsdk.TextContent)(nil)), want: `{"content":[{"type":"text","text":"tool it is broken: content[0] of its result is nil"}],"isError":true}`},
		"hollow resource":   {result: blocks(&mcpsdk.EmbeddedResource{}), want: `{"content":[{"type":"text","text":"tool it is broken: content[0] of its result is an embedded resource without contents"}],"isError":true}`},
		"nameless link":     {result: blocks(&mcpsdk.ResourceLink{URI: "file:///a"}), want: `{"content":[{"type":"text","text":"tool it is broken: content[0] of its result is a resource link without a URI or a name"}],"isError":true}`},
		"resource nowhere":  {result: blocks(&mcpsdk.EmbeddedResource{Resource: &mcpsdk.ResourceContents{Text: "hi"}}), want: `{"content":[{"type":"text","text":"tool it is broken: content[0] of its result is an embedded resource without a URI"}],"isError":true}`},
		"structured list":   {result: &sdk.ToolResult{Content: sdk.Text("x").Content, StructuredContent: []int{1}}, want: `{"content":[{"type":"text","text":"tool it is broken: its structured content has type []int, which does not encode as a JSON object"}],"isError":true}`},
		"structured null":   {result: &sdk.ToolResult{Content: sdk.Text("x").Content, StructuredContent: (*struct{})(nil)}, want: `{"content":[{"type":"text","text":"tool it is broken: its structured content has type *struct {}, which does not encode as a JSON object"}],"isError":true}`},
		"structure no JSON": {result: &sdk.ToolResult{StructuredContent: make(chan int)}, want: `{"content":[{"type":"text","text":"tool it is broken: its structured content is not JSON: json: unsupported type: chan int"}],"isError":true}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var before *sdk.ToolResult
			if tt.result != nil {
				c := *tt.result
				before = &c
			}
			s := server(t, saying("it", tt.result, tt.err))
			got := call(t, s, "it", "")
			assert.JSONEq(t, tt.want, got.raw)
			assert.Equal(t, got.raw, call(t, s, "it", "{}").raw, "the bytes depend on nothing else")
			assert.Equal(t, before, tt.result, "a result may be shared")
		})
	}
}

type sour struct{}

func (sour) MarshalJSON() ([]byte, error) { panic("sour") }

func TestPanicsAreErrorsOfHandle(t *testing.T) {
	t.Parallel()
	boom := func(context.Context, none) (*sdk.ToolResult, error) { panic(errPlain) }
	s := server(t, sdk.NewTool("boom", "d", boom), saying("sour", &sdk.ToolResult{StructuredContent: sour{}}, nil))
	_, err := s.Handle(context.Background(), "tools/call", params(t, "boom", "{}", ""))
	var p *session.PanicError
	require.ErrorAs(t, err, &p)
	assert.ErrorIs(t, err, errPlain)
	assert.Contains(t, string(p.Stack), "tool_test.go", "the stack says where")
	assert.Contains(t, err.Error(), "tool boom")
	assert.Contains(t, err.Error(), "handler exploded")
	_, err = s.Handle(context.Background(), "tools/call", params(t, "sour", "{}", ""))
	require.ErrorAs(t, err, &p)
	s = server(t, saying("passes one on", nil, fmt.Errorf("inner: %w", &session.PanicError{Value: "dsn"})))
	_, err = s.Handle(context.Background(), "tools/call", params(t, "passes one on", "{}", ""))
	require.ErrorAs(t, err, &p, "a panic that a tool passes on is no text for the model")
}

func TestUnknownTool(t *testing.T) {
	t.Parallel()
	a := call(t, server(t), "nope", "{}")
	assert.True(t, a.IsError)
	assert.Equal(t, "MCP error -32602: Tool nope not found", a.text())
}

func TestHandlerSeesItsContext(t *testing.T) {
	t.Parallel()
	type key struct{}
	started := make(chan struct{})
	s := server(t, sdk.NewTool("ctx", "d", func(ctx context.Context, _ none) (*sdk.ToolResult, error) {
		close(started)
		<-ctx.Done()
		return sdk.Text(ctx.Value(key{}).(string) + " " + context.Cause(ctx).Error() + " " + string(sdk.ToolCallMeta(ctx))), nil
	}))
	ctx, cancel := context.WithCancelCause(context.WithValue(context.Background(), key{}, "v"))
	done, p := make(chan json.RawMessage), params(t, "ctx", "", `{"claudecode/toolUseId":"toolu_1"}`)
	go func() {
		raw, err := s.Handle(ctx, "tools/call", p)
		assert.NoError(t, err)
		done <- raw
	}()
	<-started
	cancel(errPlain)
	assert.Equal(t, `v handler exploded {"claudecode/toolUseId":"toolu_1"}`, parse(t, <-done).text())
}

func TestCancelledBeforeItBegan(t *testing.T) {
	t.Parallel()
	s := server(t, saying("it", sdk.Text("ran"), nil))
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errPlain)
	_, err := s.Handle(ctx, "tools/call", params(t, "it", "", ""))
	assert.ErrorIs(t, err, errPlain)
}

func TestProgress(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		meta, told string
		sent       []string
		deaf       bool
	}{
		"number": {meta: `{"progressToken":77}`, told: "[true,true,false]", sent: []string{
			`notifications/progress {"progressToken":77,"progress":1,"total":2}`,
			`notifications/progress {"progressToken":77,"progress":1.5,"message":"half"}`,
		}},
		"string": {meta: `{"progressToken":"pt1"}`, told: "[true,true,false]", sent: []string{
			`notifications/progress {"progressToken":"pt1","progress":1,"total":2}`,
			`notifications/progress {"progressToken":"pt1","progress":1.5,"message":"half"}`,
		}},
		"not wanted":   {meta: `{"progressToken":null}`, told: "[false,false,false]"},
		"no meta":      {told: "[false,false,false]"},
		"no session":   {meta: `{"progressToken":77}`, told: "[false,false,false]", deaf: true},
		"meta, string": {meta: `"x"`, told: "[false,false,false]"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var escaped context.Context
			s := server(t, sdk.NewTool("prog", "d", func(ctx context.Context, _ none) (*sdk.ToolResult, error) {
				escaped = ctx
				return sdk.JSONResult([]bool{
					sdk.Progress(ctx, 1, 2, ""), sdk.Progress(ctx, 1.5, 0, "half"), sdk.Progress(ctx, math.Inf(1), 0, ""),
				}), nil
			}))
			var sent []string
			ctx := context.Background()
			if !tt.deaf {
				ctx = mcp.ContextWithNotifier(ctx, func(method string, params json.RawMessage) error {
					sent = append(sent, method+" "+string(params))
					return nil
				})
			}
			raw, err := s.Handle(ctx, "tools/call", params(t, "prog", "", tt.meta))
			require.NoError(t, err)
			assert.Equal(t, tt.told, parse(t, raw).text())
			assert.Equal(t, tt.sent, sent)
			assert.False(t, sdk.Progress(escaped, 3, 0, ""), "no progress after the answer")
			assert.Equal(t, tt.sent, sent)
		})
	}
	assert.False(t, sdk.Progress(context.Background(), 1, 1, ""), "not in a call")
	assert.Nil(t, sdk.ToolCallMeta(context.Background()))
}

func TestProgressOfADeadSession(t *testing.T) {
	t.Parallel()
	s := server(t, sdk.NewTool("prog", "d", func(ctx context.Context, _ none) (*sdk.ToolResult, error) {
		return sdk.JSONResult(sdk.Progress(ctx, 1, 2, "")), nil
	}))
	ctx := mcp.ContextWithNotifier(context.Background(), func(string, json.RawMessage) error { return errPlain })
	raw, err := s.Handle(ctx, "tools/call", params(t, "prog", "", `{"progressToken":1}`))
	require.NoError(t, err)
	assert.Equal(t, "false", parse(t, raw).text())
}

func TestMaxConcurrent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		running, most := 0, 0
		enter, leave := make(chan struct{}), make(chan struct{})
		limited := sdk.NewTool("limited", "d", func(context.Context, none) (*sdk.ToolResult, error) {
			enter <- struct{}{}
			<-leave
			return sdk.Text("x"), nil
		}, sdk.MaxConcurrent(3))
		// Two servers of two sessions share the tool and so the limit.
		one, two := server(t, limited), server(t, limited)
		done := make(chan struct{}, 10)
		for i := range 10 {
			s := one
			if i%2 == 0 {
				s = sdk.ForSession(two)
			}
			p := params(t, "limited", "", "")
			go func() {
				_, err := s.Handle(context.Background(), "tools/call", p)
				assert.NoError(t, err)
				done <- struct{}{}
			}()
		}
		for range 10 {
			for {
				synctest.Wait() // whoever may run stands at enter
				select {
				case <-enter:
					running++
					most = max(most, running)
					continue
				default:
				}
				break
			}
			leave <- struct{}{}
			<-done
			running--
		}
		assert.Equal(t, 3, most)
	})
}

func TestLeavingTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var ran []string
		s := server(t, sdk.NewTool("one", "d", func(_ context.Context, in echoInput) (*sdk.ToolResult, error) {
			ran = append(ran, in.X)
			<-release
			return sdk.Text("x"), nil
		}, sdk.MaxConcurrent(1)))
		ctx, cancel := context.WithCancelCause(context.Background())
		errs := make(chan error, 3)
		for i, c := range []context.Context{context.Background(), ctx, context.Background()} {
			p := params(t, "one", `{"x":"`+string(rune('a'+i))+`"}`, "")
			go func() {
				_, err := s.Handle(c, "tools/call", p)
				errs <- err
			}()
			synctest.Wait() // so that they arrive in this order
		}
		cancel(errPlain)
		assert.ErrorIs(t, <-errs, errPlain)
		close(release)
		require.NoError(t, <-errs)
		require.NoError(t, <-errs)
		assert.Equal(t, []string{"a", "c"}, ran)
	})
}

func TestAPanicGivesItsSlotBack(t *testing.T) {
	t.Parallel()
	s := server(t, sdk.NewTool("boom", "d", func(context.Context, none) (*sdk.ToolResult, error) { panic("x") }, sdk.MaxConcurrent(1)))
	for range 3 {
		_, err := s.Handle(context.Background(), "tools/call", params(t, "boom", "", ""))
		require.Error(t, err)
	}
	assert.True(t, call(t, s, "boom", `{"bad":1}`).IsError)
}

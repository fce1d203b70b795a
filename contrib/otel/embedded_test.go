package troupeotel_test

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// The embedded agent has the spans of other agents: its session, its turns, and its calls.
func TestTheEmbeddedAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	server := &modeltest.Server{Script: func(in *modeltest.Request) *modeltest.Answer {
		if in.N == 1 {
			return modeltest.Say(modeltest.Call("Read", map[string]any{"file_path": "a.txt"}), modeltest.Call("Read", map[string]any{"file_path": "none.txt"}))
		}
		return modeltest.Say(modeltest.Text("done"))
	}}
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.txt"), []byte("one\n"), 0o600))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := sdk.NewClient(&sdk.Options{
		Backend: embedded.New(embedded.Config{Model: server.Anthropic(model.Config{}), Name: "m", Dir: t.TempDir()}),
		Runtime: rt, Cwd: dir, Tracer: r.Session,
	})
	require.NoError(t, c.Connect(ctx))
	for range 2 {
		turn, err := c.Send(ctx, sdk.UserText("go"))
		require.NoError(t, err)
		_, err = turn.Result(ctx)
		require.NoError(t, err)
	}
	require.NoError(t, c.Close(ctx))
	require.NoError(t, rt.Shutdown(ctx))
	r.whole(t)
	spans := r.spans.GetSpans()
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int { return cmp.Compare(a.Name, b.Name) })
	var names []string
	for _, s := range spans {
		names = append(names, s.Name)
	}
	assert.Equal(t, []string{"execute_tool Read", "execute_tool Read", "invoke_agent embedded", "invoke_agent embedded", "session embedded"}, names)
}

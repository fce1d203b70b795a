package callback_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/actors/callback/callbacktest"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

const modelPolicyAsk = `{"type":"control_request","request_id":"m","request":{"subtype":"get_model_policy","purpose":"subagent","models":[]}}`

func policy(t *testing.T, d dialect.Dialect, resolve session.ResolveModel, limit time.Duration) *callbacktest.Rig {
	t.Helper()
	return callbacktest.New(t,
		func(*callbacktest.Rig) *callback.Actor {
			return &callback.Actor{Kind: session.KindModelPolicy, Refuses: true, Prepare: callback.PrepareModelPolicy(d, resolve, limit)}
		},
		func(_ protocol.Frame, reason string) ([]byte, string) { return nil, reason })
}

func TestTheUserChoosesAModel(t *testing.T) {
	t.Parallel()
	model := "fast"
	var seen *protocol.ModelPolicyRequest
	r := policy(t, qoder.New(), func(_ context.Context, q *protocol.ModelPolicyRequest) (protocol.ModelPolicyReply, error) {
		seen = q
		return protocol.ModelPolicyReply{Model: &model}, nil
	}, 0)
	r.Ask(modelPolicyAsk, 0)
	assert.Contains(t, r.Answer(), `"model":"fast"`)
	assert.Equal(t, "subagent", seen.Purpose)
	assert.Empty(t, r.Failed)
}

func TestAChoiceThatFails(t *testing.T) {
	t.Parallel()
	odd := errors.New("odd")
	choose := func(err error) session.ResolveModel {
		return func(context.Context, *protocol.ModelPolicyRequest) (protocol.ModelPolicyReply, error) {
			return protocol.ModelPolicyReply{}, err
		}
	}
	for name, c := range map[string]struct {
		dialect dialect.Dialect
		resolve session.ResolveModel
		is      error
	}{
		"an error":             {qoder.New(), choose(odd), odd},
		"a panic":              {qoder.New(), func(context.Context, *protocol.ModelPolicyRequest) (protocol.ModelPolicyReply, error) { panic(odd) }, odd},
		"nobody is named":      {qoder.New(), nil, session.ErrNoResolveModel},
		"an agent that cannot": {claude.New(), choose(nil), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := policy(t, c.dialect, c.resolve, 0)
			r.Ask(modelPolicyAsk, 0)
			require.Len(t, r.Lines, 1)
			assert.Contains(t, r.Lines[0], `"subtype":"error"`)
			assert.NotContains(t, r.Answer(), "odd")
			require.Len(t, r.Failed, 1)
			if c.is != nil {
				require.ErrorIs(t, r.Failed[0], c.is)
			}
		})
	}
}

func TestAChoiceThatTakesTooLong(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limit, after time.Duration // after zero: never
		text         string
	}{
		"by default": {0, 500 * time.Millisecond, "resolveModel did not return within 500ms"},
		"a limit":    {2 * time.Second, 2 * time.Second, "resolveModel did not return within 2000ms"},
		"none":       {-1, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var r *callbacktest.Rig
			r = policy(t, qoder.New(), func(ctx context.Context, _ *protocol.ModelPolicyRequest) (protocol.ModelPolicyReply, error) {
				return protocol.ModelPolicyReply{}, r.Sched.Await(ctx, make(chan struct{}))
			}, c.limit)
			if c.after == 0 {
				r.Ask(modelPolicyAsk, 1000*time.Hour)
				assert.Empty(t, r.Lines)
				return
			}
			r.Ask(modelPolicyAsk, c.after-1)
			require.Empty(t, r.Lines)
			r.Pass(1)
			assert.Contains(t, r.Answer(), c.text)
			var timeout *session.ModelPolicyTimeoutError
			require.ErrorAs(t, r.Failed[0], &timeout)
			require.ErrorIs(t, r.Failed[0], context.DeadlineExceeded)
			assert.Equal(t, c.after, timeout.Limit)
		})
	}
}

func TestAModelRequestThatCannotBeRead(t *testing.T) {
	t.Parallel()
	r := policy(t, qoder.New(), nil, 0)
	r.Ask(`{"type":"control_request","request_id":"m","request":{"subtype":"get_model_policy","purpose":7}}`, 0)
	assert.Contains(t, r.Lines[0], `"subtype":"error"`)
	require.ErrorContains(t, r.Failed[0], "get_model_policy request")
}

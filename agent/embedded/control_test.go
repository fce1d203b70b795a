package embedded_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// The models that can be used are the session's, the fallbacks, and those of the endpoint.
func TestCurrentModels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		answer string
		want   []string
	}{
		"a list": {200, `{"data":[{"id":"x"},{"id":"m"}]}`, []string{"m", "b", "x"}},
		"none":   {404, `{"error":{"message":"no such path"}}`, []string{"m", "b"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.answer))
			}))
			t.Cleanup(server.Close)
			m := model.NewOpenAI(model.OpenAIConfig{Config: model.Config{URL: server.URL + "/v1"}})
			client := open(t, &sdk.Options{Backend: embedded.New(embedded.Config{Model: m, Name: "m", Dir: t.TempDir()}), Cwd: t.TempDir(), FallbackModel: "b"})
			all, err := client.CurrentModels(t.Context())
			require.NoError(t, err)
			var names []string
			for _, m := range all {
				names = append(names, m.Value)
			}
			assert.Equal(t, c.want, names)
		})
	}
}

// A request is answered with what is so, or is unsupported: nothing is made up.
func TestRequestsAboutTheConversation(t *testing.T) {
	t.Parallel()
	_, o := plays(t, messagesAPI(), saying("x"))
	o.Backend = embedded.New(embedded.Config{Model: &played{codec: messagesAPI(), answers: []reply{saying("x")}}, Name: "m", Dir: t.TempDir(), Window: 50_000})
	c := open(t, o)
	ask(t, c, mine)
	usage, err := c.ContextUsage(t.Context())
	require.NoError(t, err)
	assert.Equal(t, "m", usage.Model)
	assert.EqualValues(t, 50_000, usage.MaxTokens)
	assert.Positive(t, usage.TotalTokens)
	assert.Less(t, usage.TotalTokens, int64(10_000))
	_, err = sdk.Call[protocol.SideQuestionResponse](t.Context(), c, protocol.SideQuestionRequest{Question: "q"})
	require.ErrorContains(t, err, "side_question")
}

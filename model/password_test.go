package model_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
)

// A password in the URL is in no error, also if the URL cannot be read.
func TestAPasswordInTheURL(t *testing.T) {
	t.Parallel()
	html := http.Header{"Content-Type": {"text/html"}}
	for url, text := range map[string]string{
		"http://u:hunter2@h.example/v1":   "http://u:xxxxx@h.example/v1",
		"http://u:hunter2@h.exam ple/v1":  "the API's URL cannot be read",
		"http://u:hunter2/x@h.example/v1": "the API's URL cannot be read", // the rest would be a port
		"http://u:hunter2%zz@h.example":   "the API's URL cannot be read",
		"u:hunter2@h.example/v1":          "",
		"u x:hunter2@h.example/v1":        "the API's URL cannot be read",
	} {
		for _, m := range []*model.Client{
			model.NewOpenAI(model.OpenAIConfig{Config: model.Config{URL: url, Client: answering(http.StatusOK, html, []byte("<html>"), 10)}}),
			model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: url, Client: answering(http.StatusOK, html, []byte("<html>"), 10)}}),
		} {
			assert.NotContains(t, m.Endpoint(), "hunter2")
			err := m.Stream(t.Context(), &model.Request{Model: "m"}, all)
			require.ErrorContains(t, err, text)
			wrong := []error{err}
			_, err = m.Models(t.Context())
			wrong = append(wrong, err)
			_, err = m.CountTokens(t.Context(), "m", "x")
			wrong = append(wrong, err)
			_, err = m.Batch(t.Context(), "b")
			wrong = append(wrong, err)
			_, _, err = m.SubmitBatch(t.Context(), "tag", []model.BatchRequest{{ID: "a", Body: []byte("{}")}})
			for _, err := range append(wrong, err) {
				require.Error(t, err)
				assert.NotContains(t, err.Error(), "hunter2")
			}
		}
		_, err := model.ParseRef(url + "#m")
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "hunter2")
	}
	wrong := model.NewOpenAI(model.OpenAIConfig{Config: model.Config{URL: "http://h.exam ple/v1"}})
	require.ErrorContains(t, wrong.Stream(t.Context(), &model.Request{}, all), `invalid character " " in host name`)
}

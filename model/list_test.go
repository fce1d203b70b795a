package model_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
)

func TestModels(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status int
		answer string
		want   []string
		class  model.Class
		text   string
	}{
		"two":      {200, `{"object":"list","data":[{"id":"b"},{"id":"a","display_name":"A"}]}`, []string{"b", "a"}, "", ""},
		"none":     {200, `{"data":[]}`, nil, "", ""},
		"no list":  {404, `{"error":{"message":"no such endpoint"}}`, nil, model.Invalid, "no such endpoint"},
		"the key":  {401, `{"error":{"message":"bad key sk-secret"}}`, nil, model.Auth, "bad key [key]"},
		"a page":   {200, `<html>`, nil, model.Broken, "in place of a list of models"},
		"no names": {200, `{"models":["x"]}`, nil, model.Broken, "in place of a list of models"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				assert.Equal(t, "GET /v1/models", r.Method+" "+r.URL.Path)
				assert.Equal(t, "sk-secret", r.Header.Get("X-Api-Key")+r.Header.Get("Authorization")[min(len("Bearer "), len(r.Header.Get("Authorization"))):])
				w.WriteHeader(c.status)
				_, _ = w.Write([]byte(c.answer))
			}))
			t.Cleanup(server.Close)
			config := model.Config{URL: server.URL + "/v1", Key: func(context.Context) (string, error) { return "sk-secret", nil }}
			for _, m := range []*model.Client{
				model.NewAnthropic(model.AnthropicConfig{Config: config}), model.NewOpenAI(model.OpenAIConfig{Config: config}),
			} {
				names, err := m.Models(t.Context())
				assert.Equal(t, c.want, names)
				if c.text == "" {
					require.NoError(t, err)
					continue
				}
				var e *model.Error
				require.ErrorAs(t, err, &e)
				assert.Equal(t, c.class, e.Class)
				assert.ErrorContains(t, err, c.text)
			}
		})
	}
}

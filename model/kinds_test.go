package model_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
)

// An error that comes after the request was accepted is the provider's, unless it says that the
// request is wrong.
func TestKindsOfErrorsInAStream(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]model.Class{
		`{"type":"error","error":{"type":"timeout_error","message":"Request timed out"}}`:        model.Server,
		`{"type":"error","error":{"type":"of_next_year","message":"x"}}`:                         model.Server,
		`{"type":"error","error":{"type":"invalid_request_error","message":"x"}}`:                model.Invalid,
		`{"type":"error","error":{"type":"not_found_error","message":"x"}}`:                      model.Invalid,
		`{"type":"error","error":{"type":"request_too_large","message":"x"}}`:                    model.TooLong,
		`{"error":{"type":"InternalServerError","message":"engine died"}}`:                       model.Server,
		`{"error":{"type":"internal_server_error","message":"x"}}`:                               model.Server,
		`{"error":{"code":"engine_error","message":"x"}}`:                                        model.Server,
		`{"error":{"status":"DEADLINE_EXCEEDED","message":"x"}}`:                                 model.Server,
		`{"error":{"status":"INVALID_ARGUMENT","message":"x"}}`:                                  model.Invalid,
		`{"error":{"type":"BadRequestError","message":"x"}}`:                                     model.Invalid,
		`{"error":{"type":"invalid_request_error","code":"model_not_found","message":"x"}}`:      model.Invalid,
		`{"error":{"code":"content_filter","message":"x"}}`:                                      model.Invalid,
		`{"error":{"code":"429","message":"x"}}`:                                                 model.Rate,
		`{"error":{"type":"too_fast","code":"429","message":"x"}}`:                               model.Rate,
		`{"error":{"code":"503","message":"x"}}`:                                                 model.Overload,
		`{"error":{"code":"400","message":"x"}}`:                                                 model.Invalid,
		`{"error":{"code":408,"message":"x"}}`:                                                   model.Server,
		`{"error":{"code":409,"message":"x"}}`:                                                   model.Server,
		`{"error":{"code":7,"message":"x"}}`:                                                     model.Server,
		`{"error":{"code":"20031","message":"x"}}`:                                               model.Server,
		`{"error":{"type":"invalid_request_error","code":"insufficient_quota","message":"pay"}}`: model.Quota,
	} {
		api := "openai"
		if strings.HasPrefix(body, `{"type"`) {
			api = "anthropic"
		}
		_, err := decode(t, api, isStream(), sse(body), 1<<20, false)
		var e *model.Error
		require.ErrorAs(t, err, &e)
		assert.Equal(t, want, e.Class, body)
		assert.Equal(t, want == model.Server || want == model.Rate || want == model.Overload, e.Temporary(), body)
	}
}

// So is an error of a request of a batch. A batch that is refused as a whole is wrong, unless the
// endpoint says that it has failed.
func TestKindsOfErrorsInABatch(t *testing.T) {
	t.Parallel()
	answers := func(body string) *http.Client {
		return &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
		})}
	}
	const over = `{"id":"b","processing_status":"ended","created_at":"2026-11-27T10:00:00Z"}`
	for line, want := range map[string]model.Class{
		`{"custom_id":"a","result":{"type":"errored","error":{"type":"error","error":{"type":"timeout_error","message":"x"}}}}`:         model.Server,
		`{"custom_id":"a","result":{"type":"errored","error":{"type":"error","error":{"type":"invalid_request_error","message":"x"}}}}`: model.Invalid,
		`{"custom_id":"a","error":{"code":"of_next_year","message":"x"}}`:                                                               model.Server,
		`{"custom_id":"a","error":{"code":"invalid_url","message":"x"}}`:                                                                model.Invalid,
	} {
		api, state := "openai", `{"id":"b","status":"completed","output_file_id":"f"}`
		if strings.Contains(line, "result") {
			api, state = "anthropic", over
		}
		b, err := open(api, answers(state), model.Quirks{}).Batch(t.Context(), "b")
		require.NoError(t, err)
		n := 0
		require.NoError(t, open(api, answers(line), model.Quirks{}).BatchResults(t.Context(), b, func(a *model.BatchAnswer) bool {
			n++
			return assert.Equal(t, want, a.Err.Class, line)
		}))
		assert.Equal(t, 1, n)
	}
	for kind, want := range map[string]model.Class{
		"invalid_json_line": model.Invalid, "mismatched_model": model.Invalid, "empty_file": model.Invalid,
		"server_error": model.Server, "token_limit_exceeded": model.Rate,
	} {
		b, err := open("openai", answers(`{"id":"b","status":"failed","errors":{"data":[{"code":"`+kind+`","message":"x"}]}}`), model.Quirks{}).Batch(t.Context(), "b")
		require.NoError(t, err)
		assert.Equal(t, want, b.Err.Class, kind)
	}
}

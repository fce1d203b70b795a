package model_test

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
)

// roundTripper is an endpoint without a network.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// answering is a client of an endpoint that gives this answer in chunks of that size.
func answering(status int, header http.Header, body []byte, chunk int) *http.Client {
	return &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(&chunks{body, chunk}), ProtoMajor: 1, ProtoMinor: 1}, nil
	})}
}

// chunks is a body of which a read gets at most so many bytes.
type chunks struct {
	left []byte
	n    int
}

func (c *chunks) Read(p []byte) (int, error) {
	if len(c.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(len(p), c.n)], c.left)
	c.left = c.left[n:]
	return n, nil
}

func isStream() http.Header {
	return http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}, "Request-Id": {"req_1"}}
}

func isJSON() http.Header {
	return http.Header{"Content-Type": {"application/json"}, "Request-Id": {"req_1"}}
}

// open is a client for either API.
func open(api string, client *http.Client, q model.Quirks) *model.Client {
	c := model.Config{URL: "http://host.example/v1", Client: client}
	if api == "anthropic" {
		return model.NewAnthropic(model.AnthropicConfig{Config: c})
	}
	return model.NewOpenAI(model.OpenAIConfig{Config: c, Quirks: q})
}

// decode gives the events of an answer, and its error.
func decode(t testing.TB, api string, header http.Header, body []byte, chunk int, raw bool) ([]*model.Event, error) {
	t.Helper()
	var events []*model.Event
	m := open(api, answering(http.StatusOK, header, body, chunk), model.Quirks{})
	err := m.Stream(t.Context(), &model.Request{Model: "m", Raw: raw}, func(e *model.Event) bool {
		events = append(events, e)
		return true
	})
	var known *model.Error
	require.True(t, err == nil || errors.As(err, &known), "an error of another type: %v", err)
	return events, err
}

// blocks are the blocks of an answer that must be whole.
func blocks(t testing.TB, events []*model.Event) []model.Block {
	t.Helper()
	require.NotEmpty(t, events)
	require.Equal(t, model.Start, events[0].Kind)
	require.Equal(t, model.Stop, events[len(events)-1].Kind)
	var all []model.Block
	for _, e := range events[1 : len(events)-1] {
		switch e.Kind {
		case model.Done:
			all = append(all, *e.Block)
		case model.Delta:
			require.NotNil(t, e.Raw)
		default:
			require.Fail(t, "an event in the middle", "kind %s", e.Kind)
		}
	}
	return all
}

// sse makes a stream of events of lines of data.
func sse(data ...string) []byte {
	var b bytes.Buffer
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.Bytes()
}

package modelapi_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
)

// at posts a body to a path, and returns the answer.
func at(t *testing.T, s *modelapi.Server, path, body string) string {
	t.Helper()
	resp, err := http.Post(s.URL()+path, "application/json", strings.NewReader(body))
	require.NoError(t, err)
	defer func() { _ = resp.Body.Close() }()
	all, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, "%s", all)
	return string(all)
}

// datas are the data of the events of a stream.
func datas(stream string) []string {
	var all []string
	for line := range strings.Lines(stream) {
		if data, ok := strings.CutPrefix(strings.TrimSpace(line), "data: "); ok {
			all = append(all, data)
		}
	}
	return all
}

func TestResponses(t *testing.T) {
	t.Parallel()
	s := start(t, modelapi.Config{})
	const head = `{"model":"m","stream":true,"instructions":"Be short.","tools":[{"type":"function","name":"Bash"},{"type":"web_search"}],"input":[
		{"type":"message","role":"developer","content":[{"type":"input_text","text":"Be kind."}]},
		{"type":"message","role":"user","content":[{"type":"input_text","text":"go [[scn:bash]]"}]}`
	var kinds []string
	var call, last struct {
		Item struct {
			Type, Name, Arguments string
			CallID                string `json:"call_id"`
		}
		Response struct {
			Status string
			Usage  struct {
				TotalTokens int `json:"total_tokens"`
			}
		}
	}
	for i, data := range datas(at(t, s, "/v1/responses", head+"]}")) {
		var e struct {
			Type           string
			SequenceNumber int `json:"sequence_number"`
			Delta          string
		}
		require.NoError(t, json.Unmarshal([]byte(data), &e))
		assert.Equal(t, i, e.SequenceNumber)
		kinds = append(kinds, e.Type+" "+e.Delta)
		if strings.Contains(data, "function_call") && e.Type == "response.output_item.done" {
			require.NoError(t, json.Unmarshal([]byte(data), &call))
		}
		if e.Type == "response.completed" {
			require.NoError(t, json.Unmarshal([]byte(data), &last))
		}
	}
	assert.Equal(t, []string{
		"response.created ", "response.output_item.added ", "response.output_text.delta I will run ", "response.output_text.delta a command.",
		"response.output_item.done ", "response.output_item.added ", "response.output_item.done ", "response.completed ",
	}, kinds)
	assert.Equal(t, "Bash", call.Item.Name)
	assert.JSONEq(t, `{"command":"echo hi-from-bash","description":"say hi"}`, call.Item.Arguments)
	assert.Equal(t, "completed", last.Response.Status)
	assert.Equal(t, 15, last.Response.Usage.TotalTokens)

	second := strings.Replace(head, `"stream":true`, `"stream":false`, 1) + `,{"type":"function_call","call_id":"a","name":"Bash","arguments":"{}"},
		{"type":"function_call_output","call_id":"a","output":"hi"}]}`
	assert.Contains(t, at(t, s, "/v1/responses", second), `"content":[{"type":"output_text","text":"Bash done.","annotations":[]}]`)

	log := s.Requests()
	require.Len(t, log, 2)
	assert.Equal(t, modelapi.Responses, log[0].Endpoint)
	assert.Equal(t, []string{"Be short.", "Be kind."}, log[0].System)
	assert.Equal(t, []string{"Bash"}, log[0].Tools)
	assert.Equal(t, modelapi.Marker{Scenario: "bash", Step: 1}, log[1].Marker)
	results := log[1].ToolResults()
	require.Len(t, results, 1)
	assert.Equal(t, "a", results[0].ToolUseID)
	assert.Equal(t, "hi", results[0].Text)
}

func TestGemini(t *testing.T) {
	t.Parallel()
	s := start(t, modelapi.Config{})
	const head = `{"systemInstruction":{"parts":[{"text":"Be short."}]},"tools":[{"functionDeclarations":[{"name":"Bash"}]}],"contents":[
		{"role":"user","parts":[{"text":"go [[scn:bash]]"}]}`
	got := datas(at(t, s, "/v1beta/models/m:streamGenerateContent?alt=sse", head+"]}"))
	require.Len(t, got, 4)
	assert.Contains(t, got[0], `"parts":[{"text":"I will run "}]`)
	assert.Contains(t, got[2], `"functionCall":{"id":"toolu_msg_1_1","name":"Bash","args":{"command":"echo hi-from-bash","description":"say hi"}}`)
	assert.NotContains(t, got[2], "finishReason")
	assert.Contains(t, got[3], `"finishReason":"STOP"`)
	assert.Contains(t, got[3], `"totalTokenCount":15`)

	second := head + `,{"role":"model","parts":[{"functionCall":{"id":"a","name":"Bash","args":{}}}]},
		{"role":"user","parts":[{"functionResponse":{"id":"a","name":"Bash","response":{"output":"hi"}}}]}]}`
	assert.Contains(t, at(t, s, "/v1beta/models/m:generateContent", second), `"parts":[{"text":"Bash done."}]`)

	log := s.Requests()
	require.Len(t, log, 2)
	assert.Equal(t, modelapi.Gemini, log[0].Endpoint)
	assert.Equal(t, "m", log[0].Model)
	assert.Equal(t, []string{"Be short."}, log[0].System)
	assert.Equal(t, []string{"Bash"}, log[0].Tools)
	assert.Equal(t, modelapi.Marker{Scenario: "bash", Step: 1}, log[1].Marker)
	results := log[1].ToolResults()
	require.Len(t, results, 1)
	assert.JSONEq(t, `{"output":"hi"}`, results[0].Text)
}

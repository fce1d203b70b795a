package model_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/agent-troupe/troupe/model"
)

// One request of a local server. With a vendor's endpoint, Config.Key returns the key.
func ExampleOpen() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, `data: {"id":"1","model":"qwen3","choices":[{"delta":{"content":"Four."},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`+"\n\ndata: [DONE]\n\n")
	}))
	defer server.Close()

	ref, err := model.ParseRef(server.URL + "/v1#qwen3")
	if err != nil {
		fmt.Println(err)
		return
	}
	m := model.Open(ref, model.Config{}, nil)
	question := model.Message{Role: model.User, Blocks: []model.Block{{Kind: model.Text, Text: "2 + 2?"}}}
	err = m.Stream(context.Background(), &model.Request{
		Model:    ref.Model,
		System:   []string{"Answer with one word."},
		Messages: [][]byte{m.Codec().Message(&question)},
	}, func(e *model.Event) bool {
		switch e.Kind {
		case model.Done:
			fmt.Println(e.Block.Text)
		case model.Stop:
			fmt.Println(e.StopReason, e.Usage.Input, e.Usage.Output)
		case model.Start, model.Delta:
		}
		return true
	})
	if err != nil {
		fmt.Println(err)
	}
	// Output:
	// Four.
	// end_turn 9 2
}

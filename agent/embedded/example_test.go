package embedded_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/sdk"
)

// An agent of this process on a local server that speaks chat completions. The server here
// is a fake one, whose model calls a tool and then answers.
func ExampleNew() {
	answers := []string{
		`{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c1","function":{"name":"Read","arguments":"{\"file_path\":\"notes.txt\"}"}}]},"finish_reason":"tool_calls"}]}`,
		`{"choices":[{"delta":{"content":"The notes say: buy bread."},"finish_reason":"stop"}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = fmt.Fprint(w, "data: "+answers[0]+"\n\ndata: [DONE]\n\n")
		answers = answers[1:]
	}))
	defer server.Close()
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	_ = os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("buy bread\n"), 0o600)

	ref, err := model.ParseRef(server.URL + "/v1#qwen3")
	if err != nil {
		fmt.Println(err)
		return
	}
	result, err := sdk.Run(context.Background(), "What do the notes say?", &sdk.Options{
		Backend: embedded.New(embedded.Config{Model: model.Open(ref, model.Config{}, nil), Name: ref.Model}),
		Cwd:     dir,
		// Nothing of this session is stored.
		PersistSession: sdk.Some(false),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Result)
	// Output: The notes say: buy bread.
}

// An agent that has to pass a check before a turn ends: here a file has to be there. The model wants
// to stop too early, reads what the check says, and makes it.
func ExampleCheck() {
	m := &modeltest.Server{Script: func(r *modeltest.Request) *modeltest.Answer {
		switch r.N {
		case 1:
			return modeltest.Say(modeltest.Call("Write", map[string]any{"file_path": "notes.txt", "content": "buy bread\n"}))
		case 3:
			return modeltest.Say(modeltest.Call("Write", map[string]any{"file_path": "index.txt", "content": "notes.txt\n"}))
		}
		return modeltest.Say(modeltest.Text("Done."))
	}}
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = os.RemoveAll(dir) }()
	check := &embedded.Check{Func: func(_ context.Context, dir string) (string, error) {
		_, err := os.Stat(filepath.Join(dir, "index.txt"))
		if errors.Is(err, fs.ErrNotExist) {
			fmt.Println("not yet")
			return "index.txt is missing.", nil
		}
		return "", err
	}}
	result, err := sdk.Run(context.Background(), "Note that I need bread.", &sdk.Options{
		Backend:        embedded.New(embedded.Config{Model: m.Anthropic(model.Config{}), Name: "m", Check: check}),
		Cwd:            dir,
		PermissionMode: sdk.ModeAcceptEdits,
		PersistSession: sdk.Some(false),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(result.Result, result.TerminalReason)
	// Output:
	// not yet
	// Done. completed
}

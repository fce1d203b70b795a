package batch_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/batch"
	"github.com/agent-troupe/troupe/model/modeltest"
)

// Two sessions ask at the same time, and their requests share a batch.
func ExampleNew() {
	bubble(func() {
		server := &modeltest.Server{Script: echo, BatchTakes: time.Hour} // a real one: model.NewAnthropic, or model.Open
		client := batch.New(batch.Config{Model: server.Anthropic(model.Config{}), Window: time.Minute})
		for _, a := range askAll(context.Background(), client, "one", "two") {
			fmt.Println(a.text)
		}
		fmt.Println(server.Batches(), "batch")
	})
	// Output:
	// re: one
	// re: two
	// 1 batch
}

// bubble runs an example in virtual time.
func bubble(fn func()) {
	tests := []testing.InternalTest{{Name: "example", F: func(t *testing.T) { synctest.Test(t, func(*testing.T) { fn() }) }}}
	testing.RunTests(func(string, string) (bool, error) { return true, nil }, tests)
}

package batch_test

import (
	"context"
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/batch"
	"github.com/agent-troupe/troupe/model/modeltest"
)

// Two sessions ask at the same time, and their requests share a batch.
func ExampleNew() {
	server := &modeltest.Server{Script: echo} // a real one: model.NewAnthropic, or model.Open
	client := batch.New(batch.Config{Model: server.Anthropic(model.Config{}), Requests: 2, Poll: time.Millisecond})
	for _, a := range askAll(context.Background(), client, "one", "two") {
		fmt.Println(a.text)
	}
	fmt.Println(server.Batches(), "batch")
	// Output:
	// re: one
	// re: two
	// 1 batch
}

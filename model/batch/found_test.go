package batch_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/batch"
	"github.com/agent-troupe/troupe/model/modeltest"
)

// underWay is an endpoint whose connection breaks while a batch is made: after a slow start, and
// the batch is there only some time later.
type underWay struct {
	*modeltest.Server
	once sync.Once
}

func (u *underWay) RoundTrip(in *http.Request) (resp *http.Response, err error) {
	first := false
	if in.Method == http.MethodPost && strings.HasSuffix(in.URL.Path, "/batches") {
		u.once.Do(func() { first = true })
	}
	if !first {
		return u.Server.RoundTrip(in)
	}
	time.Sleep(2 * time.Minute)
	go func() {
		time.Sleep(40 * time.Second)
		_, _ = u.Server.RoundTrip(in.WithContext(context.WithoutCancel(in.Context())))
	}()
	return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
}

// A batch that is made after its connection has broken is found, however long the submission took
// before: its requests are not paid twice.
func TestABatchThatIsMadeLate(t *testing.T) {
	t.Parallel()
	for name, openai := range map[string]bool{"anthropic": false, "openai": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &modeltest.Server{Script: echo, BatchTakes: time.Hour}
				at := model.Config{Client: &http.Client{Transport: &underWay{Server: s}}}
				cfg := batch.Config{Model: s.Anthropic(at)}
				if openai {
					cfg.Model = s.OpenAI(at)
				}
				answers(t, askAll(t.Context(), batch.New(cfg), prompts(3)...), prompts(3)...)
				assert.Equal(t, 1, s.Batches())
			})
		})
	}
}

// Two batches of as many requests that have one in common are not taken for each other.
func TestABatchThatIsLikeAnotherOne(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, open func(*modeltest.Server, batch.Config) *batch.Client) {
		s := &modeltest.Server{Script: echo, BatchTakes: time.Minute, BatchFault: func(n int) *modeltest.BatchFault {
			if n%2 == 1 {
				return nil
			}
			return &modeltest.BatchFault{LostAnswer: true, Takes: 5 * time.Minute}
		}}
		c := open(s, batch.Config{})
		for i, p := range prompts(6) {
			for _, second := range []string{"first", "then"} {
				second = fmt.Sprint(second, i)
				answers(t, askAll(t.Context(), c, p, second), p, second)
			}
			time.Sleep(time.Hour)
		}
		assert.Equal(t, 12, s.Batches())
		for body, n := range worked(s) {
			if !strings.Contains(body, "prompt ") {
				assert.Equal(t, 1, n, body)
			}
		}
	})
}

// A batch whose line "sent" could not be written is found by a program that starts again, also if a
// later batch has its first request, too.
func TestABatchWhoseFirstRequestWasAnswered(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, open func(*modeltest.Server, batch.Config) *batch.Client) {
		for _, p := range prompts(3) {
			s, dir := &modeltest.Server{Script: echo, BatchTakes: time.Minute}, t.TempDir()
			c := open(s, batch.Config{Dir: dir})
			answers(t, askAll(t.Context(), c, prompts(3)...), prompts(3)...)
			answers(t, askAll(t.Context(), c, p), p)
			name := filepath.Join(dir, "batches.jsonl")
			content, err := os.ReadFile(name)
			require.NoError(t, err)
			lines := strings.SplitAfter(string(content), "\n")
			require.Contains(t, lines[1], `"batch":"batch_1"`)
			require.NoError(t, os.WriteFile(name, []byte(lines[0]+strings.Join(lines[2:], "")), 0o600))
			answers(t, askAll(t.Context(), open(s, batch.Config{Dir: dir}), prompts(3)...), prompts(3)...)
			assert.Len(t, s.Requests(), 4)
		}
	})
}

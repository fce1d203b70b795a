package batch_test

import (
	"context"
	"fmt"
	"io"
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

// A submission that fails without an answer, time after time, is not made without end: its callers get the
// error, and the next one begins anew.
func TestSubmissionsThatMakeNoBatch(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(in *http.Request) *http.Response{
		"500": func(in *http.Request) *http.Response { return refused(in, http.StatusInternalServerError, "") },
		"no batch in the answer": func(in *http.Request) *http.Response {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(`{}`)), Request: in}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, openai := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					s, times, works := &modeltest.Server{Script: echo, BatchTakes: time.Minute}, []time.Time{}, false
					at := model.Config{Client: &http.Client{Transport: &passing{s, func(in *http.Request) *http.Response {
						if works || !submits(in) {
							return nil
						}
						times = append(times, time.Now())
						return answer(in)
					}}}}
					cfg := batch.Config{Model: s.Anthropic(at)}
					if openai {
						cfg.Model = s.OpenAI(at)
					}
					c := batch.New(cfg)
					ctx, cancel := context.WithTimeout(t.Context(), 7*24*time.Hour)
					defer cancel()
					for _, got := range askAll(ctx, c, "a", "b") {
						var e *model.Error
						require.ErrorAs(t, got.err, &e)
						assert.NotErrorIs(t, got.err, context.DeadlineExceeded)
					}
					require.Len(t, times, 12)
					assert.Less(t, times[1].Sub(times[0]), times[11].Sub(times[10]), "the intervals grow")
					assert.Less(t, times[11].Sub(times[0]), 2*time.Hour)
					works = true
					answers(t, askAll(ctx, c, "a", "b"), "a", "b")
					assert.Equal(t, 1, s.Batches())
				})
			}
		})
	}
}

// A request that comes while others have failed often has as many attempts as they had.
func TestARequestAmongThoseThatFailed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, began := &modeltest.Server{Script: echo, BatchTakes: time.Minute}, time.Now()
		c := via(func(in *http.Request) *http.Response {
			if !submits(in) || time.Since(began) > 2*time.Hour {
				return nil
			}
			return refused(in, http.StatusInternalServerError, "")
		}).open(s, batch.Config{})
		var wg sync.WaitGroup
		wg.Go(func() { assert.Error(t, ask(t.Context(), c, "a").err) })
		time.Sleep(time.Hour)
		answers(t, []said{ask(t.Context(), c, "b")}, "b")
		wg.Wait()
	})
}

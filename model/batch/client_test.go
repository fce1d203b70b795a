package batch_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/batch"
	"github.com/agent-troupe/troupe/model/modeltest"
)

// each runs a test with both APIs, in virtual time.
func each(t *testing.T, fn func(t *testing.T, open func(*modeltest.Server, batch.Config) *batch.Client)) {
	t.Helper()
	for _, api := range []string{"anthropic", "openai"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				fn(t, func(s *modeltest.Server, c batch.Config) *batch.Client {
					if c.Model = s.Anthropic(model.Config{}); api == "openai" {
						c.Model = s.OpenAI(model.Config{})
					}
					return batch.New(c)
				})
			})
		})
	}
}

// echo answers with the prompt.
func echo(r *modeltest.Request) *modeltest.Answer {
	return modeltest.Say(modeltest.Text("re: " + r.Prompt()))
}

// said is what came of a request.
type said struct {
	text  string
	usage model.Usage
	waits []string // the batches that its events named
	err   error
}

func ask(ctx context.Context, c *batch.Client, prompt string) (got said) {
	r := &model.Request{
		Model: "claude-sonnet-4-5", MaxTokens: 100, User: prompt, Cache: true,
		Messages: [][]byte{c.Codec().Message(&model.Message{Role: model.User, Blocks: []model.Block{{Kind: model.Text, Text: prompt}}})},
	}
	got.err = c.Stream(ctx, r, func(e *model.Event) bool {
		switch e.Kind {
		case model.Waits:
			got.waits = append(got.waits, e.Batch)
		case model.Done:
			got.text += e.Block.Text
		case model.Stop:
			got.usage = e.Usage
		case model.Start, model.Delta, model.Cut:
		}
		return true
	})
	return got
}

// askAll asks all at the same time.
func askAll(ctx context.Context, c *batch.Client, prompts ...string) []said {
	all := make([]said, len(prompts))
	var wg sync.WaitGroup
	for i, p := range prompts {
		wg.Go(func() { all[i] = ask(ctx, c, p) })
	}
	wg.Wait()
	return all
}

func prompts(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint("prompt ", i))
	}
	return all
}

// worked is how often the endpoint has worked on each request.
func worked(s *modeltest.Server) map[string]int {
	times := map[string]int{}
	for _, r := range s.Requests() {
		times[string(r.Body)]++
	}
	return times
}

func answers(t *testing.T, got []said, prompts ...string) {
	t.Helper()
	for i, p := range prompts {
		require.NoError(t, got[i].err, p)
		require.Equal(t, "re: "+p, got[i].text)
	}
}

func TestRequestsShareABatch(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, open func(*modeltest.Server, batch.Config) *batch.Client) {
		s := &modeltest.Server{Script: echo, BatchTakes: 3 * time.Hour}
		c, began := open(s, batch.Config{}), time.Now()
		got := askAll(t.Context(), c, prompts(50)...)
		answers(t, got, prompts(50)...)
		assert.Equal(t, 1, s.Batches())
		assert.Len(t, s.Requests(), 50)
		assert.NotContains(t, string(s.Requests()[0].Body), `"stream"`)
		assert.InDelta(t, 3*time.Hour, time.Since(began), float64(12*time.Minute))
		assert.Empty(t, got[0].waits[0], "it is not submitted yet")
		assert.Contains(t, got[0].waits, "batch_1")
		assert.GreaterOrEqual(t, len(got[0].waits), 18, "an event every ten minutes at least")
		price := model.Price{Input: 3, Output: 15, CacheHour: 1}
		assert.True(t, got[0].usage.Batched)
		full := got[0].usage
		full.Batched = false
		assert.InDelta(t, price.Cost(full)/2, price.Cost(got[0].usage), 1e-12)
	})
}

func TestABatchHasALimit(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, open func(*modeltest.Server, batch.Config) *batch.Client) {
		s := &modeltest.Server{Script: echo, BatchTakes: time.Hour}
		c := open(s, batch.Config{Requests: 20, Window: time.Hour})
		got := askAll(t.Context(), c, prompts(45)...)
		answers(t, got, prompts(45)...)
		assert.Equal(t, 3, s.Batches())
	})
}

func TestACallerThatLeaves(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, open func(*modeltest.Server, batch.Config) *batch.Client) {
		s := &modeltest.Server{Script: echo, BatchTakes: time.Hour}
		c := open(s, batch.Config{})
		left := errors.New("the caller has left")
		early, cancel := context.WithTimeoutCause(t.Context(), 10*time.Second, left)
		defer cancel()
		assert.ErrorIs(t, ask(early, c, "a").err, left)
		time.Sleep(time.Hour)
		assert.Zero(t, s.Batches(), "a request without a caller is not submitted")

		late, cancel := context.WithTimeoutCause(t.Context(), 10*time.Minute, left)
		defer cancel()
		assert.ErrorIs(t, ask(late, c, "a").err, left)
		time.Sleep(24 * time.Hour)
		answers(t, []said{ask(t.Context(), c, "a")}, "a")
		assert.Len(t, s.Requests(), 1, "the answer of the batch that the caller has left")
		answers(t, []said{ask(t.Context(), c, "a")}, "a")
		assert.Len(t, s.Requests(), 2, "an answer is given once")
	})
}

// With each fault of a batch, each request is worked on once and answered.
func TestFaults(t *testing.T) {
	t.Parallel()
	first := func(f *modeltest.BatchFault) func(int) *modeltest.BatchFault {
		return func(n int) *modeltest.BatchFault {
			if n == 1 {
				return f
			}
			return nil
		}
	}
	odd := func(i int) bool { return i%2 == 1 }
	twice := func(f *modeltest.BatchFault) func() func(int) *modeltest.BatchFault {
		return func() func(int) *modeltest.BatchFault {
			times := 0
			return func(int) *modeltest.BatchFault {
				if times++; times <= 2 {
					return f
				}
				return nil
			}
		}
	}
	for name, fault := range map[string]func() func(int) *modeltest.BatchFault{
		"the answer to the submission is lost": func() func(int) *modeltest.BatchFault { return first(&modeltest.BatchFault{LostAnswer: true}) },
		"no connection":                        twice(&modeltest.BatchFault{NoConnection: true}),
		"too many requests":                    twice(&modeltest.BatchFault{Status: 429}),
		"the provider fails":                   twice(&modeltest.BatchFault{Status: 503}),
		"slow":                                 func() func(int) *modeltest.BatchFault { return first(&modeltest.BatchFault{Takes: 23 * time.Hour}) },
		"some expire":                          func() func(int) *modeltest.BatchFault { return first(&modeltest.BatchFault{Expires: odd}) },
		"the results break off":                func() func(int) *modeltest.BatchFault { return first(&modeltest.BatchFault{CutAt: 3}) },
		"each result comes twice":              func() func(int) *modeltest.BatchFault { return first(&modeltest.BatchFault{Twice: true}) },
		"the last result comes first":          func() func(int) *modeltest.BatchFault { return first(&modeltest.BatchFault{Reversed: true}) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, openai := range []bool{false, true} {
				synctest.Test(t, func(t *testing.T) {
					s := &modeltest.Server{Script: echo, BatchTakes: time.Hour, BatchFault: fault()}
					cfg := batch.Config{Model: s.Anthropic(model.Config{}), Dir: t.TempDir()}
					if openai {
						cfg.Model = s.OpenAI(model.Config{})
					}
					answers(t, askAll(t.Context(), batch.New(cfg), prompts(8)...), prompts(8)...)
					for body, n := range worked(s) {
						assert.Equal(t, 1, n, body)
					}
					assert.Len(t, s.Requests(), 8)
				})
			}
		})
	}
}

// Errors of single requests, and of whole batches, are the model's errors of their callers.
func TestErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fault     modeltest.BatchFault
		class     model.Class
		temporary bool
		openai    bool
		batches   int
	}{
		"overload":              {modeltest.BatchFault{Errs: func(int) int { return 529 }}, model.Overload, true, false, 1},
		"a wrong request":       {modeltest.BatchFault{Errs: func(int) int { return 400 }}, model.Invalid, false, false, 1},
		"of chat completions":   {modeltest.BatchFault{Errs: func(int) int { return 429 }}, model.Rate, true, true, 1},
		"no result":             {modeltest.BatchFault{Loses: func(int) bool { return true }}, model.Broken, false, false, 1},
		"the batch is refused":  {modeltest.BatchFault{Status: 400}, model.Invalid, false, false, 0},
		"the key is wrong":      {modeltest.BatchFault{Status: 401}, model.Auth, false, true, 0},
		"the batch fails":       {modeltest.BatchFault{Refused: "invalid_json_line"}, model.Invalid, false, true, 1},
		"too much is queued":    {modeltest.BatchFault{Refused: "token_limit_exceeded"}, model.Rate, true, true, 1},
		"it expires each time":  {modeltest.BatchFault{Expires: func(int) bool { return true }}, model.Overload, false, false, 3},
		"and of chat, too":      {modeltest.BatchFault{Expires: func(int) bool { return true }}, model.Overload, false, true, 3},
		"it is always too much": {modeltest.BatchFault{Status: 429}, model.Rate, true, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &modeltest.Server{BatchTakes: time.Hour, BatchFault: func(int) *modeltest.BatchFault { return &c.fault }}
				cfg := batch.Config{Model: s.Anthropic(model.Config{})}
				if c.openai {
					cfg.Model = s.OpenAI(model.Config{})
				}
				b := batch.New(cfg)
				for _, got := range askAll(t.Context(), b, "a", "b") {
					var e *model.Error
					require.ErrorAs(t, got.err, &e)
					assert.Equal(t, c.class, e.Class, e)
					assert.Equal(t, c.temporary, e.Temporary(), e)
				}
				assert.Equal(t, c.batches, s.Batches())
				before := s.Batches()
				_ = ask(t.Context(), b, "a")
				assert.Equal(t, before > 0, s.Batches() > before, "a request that failed can be made anew")
			})
		})
	}
}

func TestCancel(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, open func(*modeltest.Server, batch.Config) *batch.Client) {
		s := &modeltest.Server{Script: echo, BatchTakes: 20 * time.Hour}
		c, began := open(s, batch.Config{}), time.Now()
		go func() {
			time.Sleep(10 * time.Minute)
			assert.NoError(t, c.Cancel(t.Context()))
		}()
		var wg sync.WaitGroup
		wg.Go(func() {
			time.Sleep(10*time.Minute - time.Second)
			got := ask(t.Context(), c, "collected")
			assert.ErrorContains(t, got.err, "canceled before it was submitted")
		})
		got := ask(t.Context(), c, "submitted")
		assert.ErrorContains(t, got.err, "canceled before it was worked on")
		wg.Wait()
		assert.Less(t, time.Since(began), time.Hour)
		assert.Equal(t, 1, s.Batches())
	})
}

// recorded returns the record of a request that was given up while its batch was worked on.
func recorded(t *testing.T, c *batch.Client, dir string) (name string, content []byte) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	require.Error(t, ask(ctx, c, "a").err)
	name = filepath.Join(dir, "batches.jsonl")
	content, err := os.ReadFile(name)
	require.NoError(t, err)
	return name, content
}

// A line of the record that a full disk has cut off hides neither the lines before it nor those behind it.
func TestATornRecord(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, open func(*modeltest.Server, batch.Config) *batch.Client) {
		s, dir := &modeltest.Server{Script: echo, BatchTakes: time.Hour}, t.TempDir()
		name, content := recorded(t, open(s, batch.Config{Dir: dir}), dir)
		assert.NotContains(t, string(content), "prompt", "no text of a request is kept")
		require.NoError(t, os.WriteFile(name, append(content, `{"sending":"x","ids":["`...), 0o600))
		answers(t, askAll(t.Context(), open(s, batch.Config{Dir: dir}), "a", "b"), "a", "b")
		answers(t, askAll(t.Context(), open(s, batch.Config{Dir: dir}), "a", "b"), "a", "b")
		assert.Len(t, s.Requests(), 2)
		content, err := os.ReadFile(name)
		require.NoError(t, err)
		assert.Equal(t, 4, strings.Count(string(content), "\n"))
		time.Sleep(30 * 24 * time.Hour)
		answers(t, askAll(t.Context(), open(s, batch.Config{Dir: dir}), "a"), "a")
		assert.Len(t, s.Requests(), 3, "the endpoint keeps answers for 29 days")
	})
}

// A record that lacks only the end of its last line, which says that a batch is there.
func TestARecordWithoutItsLastByte(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, open func(*modeltest.Server, batch.Config) *batch.Client) {
		s, dir := &modeltest.Server{Script: echo, BatchTakes: time.Hour}, t.TempDir()
		name, content := recorded(t, open(s, batch.Config{Dir: dir}), dir)
		require.NoError(t, os.WriteFile(name, content[:len(content)-1], 0o600))
		for range 2 {
			answers(t, askAll(t.Context(), open(s, batch.Config{Dir: dir}), "a", "b"), "a", "b")
		}
		assert.Len(t, s.Requests(), 2)
	})
}

// slow is an endpoint whose answers come a line in ten minutes.
type slow struct{ *modeltest.Server }

func (s slow) RoundTrip(in *http.Request) (*http.Response, error) {
	resp, err := s.Server.RoundTrip(in)
	if err == nil && in.Method == http.MethodGet {
		resp.Body = &slowBody{ReadCloser: resp.Body}
	}
	return resp, err
}

type slowBody struct {
	io.ReadCloser
	lines []byte
}

func (b *slowBody) Read(p []byte) (int, error) {
	if b.lines == nil {
		b.lines, _ = io.ReadAll(b.ReadCloser)
	}
	if len(b.lines) == 0 {
		return 0, io.EOF
	}
	time.Sleep(10 * time.Minute)
	n := copy(p, b.lines[:bytes.IndexByte(append(b.lines, '\n'), '\n')])
	if n == len(b.lines) || b.lines[n] != '\n' {
		b.lines = b.lines[n:]
		return n, nil
	}
	n += copy(p[n:], "\n")
	b.lines = b.lines[n:]
	return n, nil
}

// A caller that comes when its answer has just gone by gets it, and it is not paid again.
func TestACallerThatComesWhileAnswersAreRead(t *testing.T) {
	t.Parallel()
	for at := 75 * time.Minute; at < 150*time.Minute; at += 9 * time.Minute {
		for _, late := range prompts(4) { // the order of answers is that of hashes
			synctest.Test(t, func(t *testing.T) {
				s := &modeltest.Server{Script: echo, BatchTakes: time.Hour}
				c := batch.New(batch.Config{Model: s.Anthropic(model.Config{Client: &http.Client{Transport: slow{s}}, Idle: time.Hour})})
				early, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
				defer cancel()
				var wg sync.WaitGroup
				wg.Go(func() { assert.Error(t, ask(early, c, late).err) })
				for _, p := range prompts(4) {
					if p != late {
						wg.Go(func() { answers(t, []said{ask(t.Context(), c, p)}, p) })
					}
				}
				time.Sleep(at)
				answers(t, []said{ask(t.Context(), c, late)}, late)
				wg.Wait()
				assert.Len(t, s.Requests(), 4, "%v %s", at, late)
				time.Sleep(3 * time.Hour) // until the other lines have gone by
			})
		}
	}
}

func TestARecordThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s, dir := &modeltest.Server{}, t.TempDir()
	require.NoError(t, os.Mkdir(filepath.Join(dir, "batches.jsonl"), 0o700))
	var e *model.Error
	require.ErrorAs(t, ask(t.Context(), batch.New(batch.Config{Model: s.Anthropic(model.Config{}), Dir: dir}), "a").err, &e)
	assert.False(t, e.Temporary())
	assert.Zero(t, s.Batches())
}

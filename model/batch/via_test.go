package batch_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/durable"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/batch"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/session"
)

// via is an endpoint of which some requests have another answer; nil: that of the endpoint.
type via func(in *http.Request) *http.Response

// open opens a client whose endpoint answers so.
func (v via) open(s *modeltest.Server, c batch.Config) *batch.Client {
	c.Model = s.Anthropic(model.Config{Client: &http.Client{Transport: &passing{s, v}}})
	return batch.New(c)
}

type passing struct {
	*modeltest.Server
	via via
}

func (p *passing) RoundTrip(in *http.Request) (*http.Response, error) {
	if resp := p.via(in); resp != nil {
		return resp, nil
	}
	return p.Server.RoundTrip(in)
}

func refused(in *http.Request, status int, after string) *http.Response {
	h := http.Header{}
	if after != "" {
		h.Set("Retry-After", after)
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(`{"type":"error","error":{"type":"api_error","message":"no"}}`)), Request: in}
}

// submits reports whether a request makes a batch.
func submits(in *http.Request) bool {
	return in.Method == http.MethodPost && strings.HasSuffix(in.URL.Path, "/batches")
}

// A submission that is refused for the time being is made again when the endpoint wants it, and twelve times at most.
func TestASubmissionThatIsRefusedAgainAndAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, times := &modeltest.Server{}, []time.Time{}
		c := via(func(in *http.Request) *http.Response {
			if times = append(times, time.Now()); len(times) == 1 {
				return refused(in, http.StatusTooManyRequests, "1800")
			}
			return refused(in, http.StatusTooManyRequests, "")
		}).open(s, batch.Config{})
		var e *model.Error
		require.ErrorAs(t, ask(t.Context(), c, "a").err, &e)
		require.Len(t, times, 12)
		assert.GreaterOrEqual(t, times[1].Sub(times[0]), 30*time.Minute)
		assert.LessOrEqual(t, times[11].Sub(times[10]), 10*time.Minute)
	})
}

// The next program does not look for a batch that was refused.
func TestARefusedBatchIsNotLookedFor(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusBadRequest, http.StatusNotFound} {
		synctest.Test(t, func(t *testing.T) {
			s, dir, refuse := &modeltest.Server{Script: echo, BatchTakes: time.Minute}, t.TempDir(), true
			made := time.Time{}
			v := via(func(in *http.Request) *http.Response {
				if refuse && submits(in) == (status == http.StatusBadRequest) {
					return refused(in, status, "")
				}
				if submits(in) {
					made = time.Now()
				}
				return nil
			})
			c := v.open(s, batch.Config{Dir: dir})
			require.Error(t, ask(t.Context(), c, "a").err)
			refuse = false
			for _, next := range []*batch.Client{v.open(s, batch.Config{Dir: dir}), c} {
				began, before := time.Now(), s.Batches()
				answers(t, []said{ask(t.Context(), next, "a")}, "a")
				assert.Equal(t, before+1, s.Batches())
				assert.Equal(t, time.Minute, made.Sub(began))
			}
		})
	}
}

// The end of a caller does not cut off the submission, and its request is made anew if the batch is not.
func TestACallerThatLeavesDuringASubmission(t *testing.T) {
	t.Parallel()
	for _, status := range []int{http.StatusOK, http.StatusBadRequest, http.StatusTooManyRequests, http.StatusServiceUnavailable} {
		synctest.Test(t, func(t *testing.T) {
			s, first := &modeltest.Server{Script: echo, BatchTakes: time.Hour}, true
			c := via(func(in *http.Request) *http.Response {
				if !submits(in) || !first {
					return nil
				}
				first = false
				select {
				case <-time.After(5 * time.Minute):
				case <-in.Context().Done():
					return refused(in, http.StatusBadRequest, "")
				}
				if status == http.StatusOK {
					return nil
				}
				return refused(in, status, "")
			}).open(s, batch.Config{})
			early, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			var wg sync.WaitGroup
			wg.Go(func() { assert.Error(t, ask(early, c, "a").err) })
			if status != http.StatusOK { // another caller, so that the batch has one
				wg.Go(func() { _ = ask(t.Context(), c, "b") })
			}
			wg.Wait()
			time.Sleep(10 * time.Minute)
			if status == http.StatusOK {
				assert.Equal(t, 1, s.Batches(), "the batch was submitted all the same")
			}
			soon, cancel := context.WithTimeout(t.Context(), 12*time.Hour)
			defer cancel()
			answers(t, []said{ask(soon, c, "a")}, "a")
			assert.Equal(t, 1, strings.Count(bodies(s), `"a"`), "it is paid once")
		})
	}
}

// A batch that is not made because its callers left before the next attempt is not looked for.
func TestCallersThatLeaveBetweenAttempts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, first := &modeltest.Server{Script: echo, BatchTakes: time.Minute}, true
		made := time.Time{}
		c := via(func(in *http.Request) *http.Response {
			if !submits(in) {
				return nil
			}
			if first {
				first = false
				return refused(in, http.StatusTooManyRequests, "3600")
			}
			made = time.Now()
			return nil
		}).open(s, batch.Config{})
		early, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
		defer cancel()
		require.Error(t, ask(early, c, "a").err)
		time.Sleep(time.Minute)
		began := time.Now()
		answers(t, []said{ask(t.Context(), c, "a")}, "a")
		assert.Equal(t, time.Minute, made.Sub(began))
	})
}

// bodies are the requests that the endpoint has worked on.
func bodies(s *modeltest.Server) string {
	var b strings.Builder
	for _, r := range s.Requests() {
		_, _ = b.WriteString(`"` + r.Prompt() + `"`)
	}
	return b.String()
}

// An endpoint that fails for a day is given up; one that answers between is not.
func TestAnEndpointThatFailsForADay(t *testing.T) {
	t.Parallel()
	for _, pause := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s, asked := &modeltest.Server{Script: echo, BatchTakes: 30 * time.Hour}, 0
			c := via(func(in *http.Request) *http.Response {
				if submits(in) {
					return nil
				}
				if asked++; asked > 250 || pause && asked%100 == 0 {
					return nil
				}
				return refused(in, http.StatusServiceUnavailable, "")
			}).open(s, batch.Config{})
			got := ask(t.Context(), c, "a")
			if !pause {
				var e *model.Error
				require.ErrorAs(t, got.err, &e)
				assert.True(t, e.Temporary())
				assert.Equal(t, 150, asked)
				got = ask(t.Context(), c, "a")
			}
			answers(t, []said{got}, "a")
			assert.Len(t, s.Requests(), 1, "the request stayed in its batch")
		})
	}
}

// Cancel has no error for a batch that is over, and one for an endpoint that fails.
func TestCancelOfABatchThatIsOver(t *testing.T) {
	t.Parallel()
	for status, fails := range map[int]bool{http.StatusBadRequest: false, http.StatusServiceUnavailable: true} {
		synctest.Test(t, func(t *testing.T) {
			s := &modeltest.Server{Script: echo, BatchTakes: time.Hour}
			c := via(func(in *http.Request) *http.Response {
				if strings.HasSuffix(in.URL.Path, "/cancel") {
					return refused(in, status, "")
				}
				return nil
			}).open(s, batch.Config{})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			require.Error(t, ask(ctx, c, "a").err)
			assert.Equal(t, fails, c.Cancel(t.Context()) != nil)
		})
	}
}

// full is a disk whose first write is cut off. It notes what was made durable.
type full struct {
	session.Files
	cut    bool
	synced []string
}

type fullFile struct {
	session.FileWriter
	on *full
}

func (f *full) Append(name string) (session.FileWriter, error) {
	w, err := f.Files.Append(name)
	return &fullFile{w, f}, err
}

func (f *full) SyncDir(dir string) error {
	f.synced = append(f.synced, "dir")
	return f.Files.SyncDir(dir)
}

func (f *fullFile) Write(b []byte) (int, error) {
	if f.on.cut {
		f.on.cut = false
		n, _ := f.FileWriter.Write(b[:len(b)/2])
		return n, errors.New("the disk is full")
	}
	return f.FileWriter.Write(b)
}

func (f *fullFile) Sync() error {
	f.on.synced = append(f.on.synced, "file")
	return f.FileWriter.Sync()
}

// A line that a full disk cuts off does not spoil the next one, and a batch is made only once its line is durable.
func TestALineThatAFullDiskCutsOff(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, dir := &modeltest.Server{Script: echo, BatchTakes: time.Hour}, t.TempDir()
		disk := &full{Files: durable.Files(nil), cut: true}
		v := via(func(in *http.Request) *http.Response {
			if submits(in) {
				assert.Equal(t, []string{"file", "dir"}, disk.synced)
			}
			return nil
		})
		c := v.open(s, batch.Config{Dir: dir, Files: disk})
		require.ErrorContains(t, ask(t.Context(), c, "a").err, "the disk is full")
		assert.Zero(t, s.Batches())
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
		defer cancel()
		require.Error(t, ask(ctx, c, "a").err)
		answers(t, []said{ask(t.Context(), v.open(s, batch.Config{Dir: dir}), "a")}, "a")
		assert.Len(t, s.Requests(), 1)
	})
}

package simtests_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet/journal/journaltest"
	"github.com/agent-troupe/troupe/model"
	batches "github.com/agent-troupe/troupe/model/batch"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/simtests"
)

var (
	errHostDied = errors.New("the host has died")
	errEnough   = errors.New("the caller waits no longer")
)

// Limits of what a caller has to wait.
const (
	heardWithin  = 10 * time.Minute // for an event
	answerWithin = 9 * 24 * time.Hour
)

// halfPrice is a history of requests that wait for batches. Hosts die one after the other, and
// the next one has what the disk has left of the record.
type halfPrice struct {
	*simtests.World
	at      *endpoint
	disk    *journaltest.Disk
	hosts   int
	callers []*caller
}

// caller makes requests one after the other, and knows across hosts which were answered.
type caller struct {
	prompts []string
	at      int
	tries   int
}

func newHalfPrice(w *simtests.World) *halfPrice {
	b := &halfPrice{World: w, disk: &journaltest.Disk{}}
	b.at = newEndpoint(w, func(r *modeltest.Request) *modeltest.Answer {
		return modeltest.Say(modeltest.Text("re: " + r.Prompt()))
	})
	for i := range 1 + w.Rand().IntN(5) {
		c := &caller{}
		for range 1 + w.Rand().IntN(3) { // now and then the same once more
			c.prompts = append(c.prompts, fmt.Sprintf("prompt %d of caller %d", w.Rand().IntN(2), i))
		}
		b.callers = append(b.callers, c)
	}
	return b
}

// host has all callers ask, until all are answered or it dies.
func (b *halfPrice) host(doomed bool) {
	b.hosts++
	root := filepath.Join(b.Dir(), fmt.Sprint("host-", b.hosts))
	require.NoError(b, os.Mkdir(root, 0o700))
	require.NoError(b, b.disk.WriteTo(root))
	b.disk = &journaltest.Disk{}
	files, err := b.disk.Files(root)
	require.NoError(b, err)
	ctx, die := context.WithCancelCause(b.Context())
	defer die(nil)
	h := &way{endpoint: b.at, steps: -1, die: die}
	if doomed {
		h.steps = 1 + b.Rand().IntN(40)
		timer := b.Runtime().Clock().AfterFunc(time.Duration(b.Rand().IntN(60*60))*time.Minute, h.dies)
		defer timer.Stop()
	}
	b.disk.Fail = func(journaltest.Op) error {
		switch {
		case !h.step():
			return errHostDied
		case b.at.strikes(30):
			return syscall.ENOSPC
		}
		return nil
	}
	c := batches.New(batches.Config{
		Model: h.client(), Dir: root, Files: files, Requests: 2 + b.Rand().IntN(3), Clock: b.Runtime().Clock(), Exec: b.Runtime().Executor(),
	})
	var ends []chan struct{}
	for _, one := range b.callers {
		done := make(chan struct{})
		ends = append(ends, done)
		b.Go(func() {
			defer close(done)
			if idle(ctx, b.World, b.Rand().IntN(100)) == nil {
				b.asks(ctx, c, one)
			}
		})
	}
	for _, done := range ends {
		require.NoError(b, b.Runtime().Executor().Await(b.Context(), done))
	}
	h.dies() // its tasks that still run do no more
	survives := func(int) int { return 2 }
	if b.Rand().IntN(2) == 0 { // the power goes, too
		survives = func(int) int { return b.Rand().IntN(3) }
	}
	b.disk = b.disk.Crash(b.disk.Ops(), survives)
}

// asks makes the requests of a caller.
func (b *halfPrice) asks(ctx context.Context, c *batches.Client, one *caller) {
	for one.at < len(one.prompts) && ctx.Err() == nil && !b.Failed() {
		prompt := one.prompts[one.at]
		text, err := b.ask(ctx, c, prompt)
		b.Note("%s: %q, %v", prompt, text, err != nil)
		e, typed := errors.AsType[*model.Error](err)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil && text != "re: "+prompt:
			b.Errorf("answered: the request %q has the answer %q", prompt, text)
			return
		case err == nil:
			b.Sometimes("a request is answered", true)
			one.at++
			continue
		case errors.Is(err, errEnough), errors.Is(err, model.ErrStopped):
		case !typed:
			b.Errorf("typed: the request %q has ended with %T: %v", prompt, err, err)
			return
		case b.at.hopeless && e.Type == "expired" && e.Class == model.Overload:
			b.Sometimes("a day was not enough, three times", true)
			one.at++
			continue
		}
		if one.tries++; one.tries > 60 {
			b.Errorf("lost: the request %q has failed %d times, at last with %v", prompt, one.tries, err)
			return
		}
		b.Sometimes("a request fails", typed)
		_ = idle(ctx, b.World, 1+b.Rand().IntN(600)) // the loop looks at ctx
	}
}

// ask makes a request, and checks that it ends in time.
func (b *halfPrice) ask(ctx context.Context, c *batches.Client, prompt string) (text string, err error) {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	clock := b.Runtime().Clock()
	began := clock.Now()
	var until time.Time
	if b.Rand().IntN(4) == 0 {
		limit := time.Duration(b.Rand().IntN(40*60)) * time.Minute
		until = began.Add(limit)
		defer clock.AfterFunc(limit, func() { leave(errEnough) }).Stop()
	}
	over := clock.AfterFunc(answerWithin, func() {
		b.Errorf("liveness: the request %q waits for more than %v", prompt, answerWithin)
		leave(errEnough)
	})
	defer over.Stop()
	heard := began
	stops := b.Rand().IntN(12) == 0
	r := &model.Request{
		Model: "claude-sonnet-4-5", MaxTokens: 100, User: prompt,
		Messages: [][]byte{c.Codec().Message(&model.Message{Role: model.User, Blocks: []model.Block{{Kind: model.Text, Text: prompt}}})},
	}
	err = c.Stream(ctx, r, func(e *model.Event) bool {
		if silent := clock.Now().Sub(heard); silent > heardWithin {
			b.Errorf("liveness: the caller of %q got no event for %v", prompt, silent)
		}
		heard = clock.Now()
		switch e.Kind {
		case model.Done:
			text += e.Block.Text
		case model.Stop:
			if !e.Usage.Batched {
				b.Errorf("usage: the answer to %q is not that of a batch", prompt)
			}
		case model.Waits, model.Start, model.Delta, model.Cut:
		}
		return !stops || e.Kind == model.Waits
	})
	if !until.IsZero() && clock.Now().Sub(until) > time.Second {
		b.Errorf("deadline: the request %q has ended %v after its caller has left, with %v", prompt, clock.Now().Sub(until), err)
	}
	if ctx.Err() != nil && err != nil && !errors.Is(err, context.Cause(ctx)) && !errors.Is(err, model.ErrStopped) {
		if _, typed := errors.AsType[*model.Error](err); !typed {
			b.Errorf("typed: the caller of %q has left with %v, and got %v", prompt, context.Cause(ctx), err)
		}
	}
	return text, err
}

func inBatches(w *simtests.World) {
	b := newHalfPrice(w)
	for range w.Rand().IntN(4) {
		b.host(true)
	}
	w.Sometimes("hosts have died", b.hosts > 0)
	b.host(false)
	for _, one := range b.callers {
		if one.at < len(one.prompts) && !w.Failed() {
			w.Errorf("lost: %q was not answered", one.prompts[one.at])
		}
	}
	w.Run() // what is under way arrives
	b.at.judge(func(r *modeltest.Request) string { return string(r.Body) }, func(r *modeltest.Request) (n int) {
		for _, one := range b.callers {
			for _, p := range one.prompts {
				if p == r.Prompt() {
					n++
				}
			}
		}
		return n
	})
}

// With any fault of batches and of the requests about them, and with hosts that die at any time, each request
// gets its answer, in time, and is worked on once for each answer.
func TestBatches(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(300), Twice: 1}, inBatches)
}

// TestPlantedBugsOfBatches is for tools/simmutate.
func TestPlantedBugsOfBatches(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(50), Twice: -1, Shrink: -1, DoNotKeep: true}, inBatches)
}

package simtests_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/simtests"
)

// endpoint is an API of batches in memory, and the way to it.
type endpoint struct {
	*modeltest.Server
	w        *simtests.World
	openai   bool
	left     int                 // things that may still go wrong
	calm     bool                // batches are only slow, or lose the answer to their submission
	hopeless bool                // no batch is worked on within a day
	faults   map[string]*outcome // of batches, by id
}

// outcome says which requests of a batch are not worked on in time, and which have no answer or an error.
type outcome struct{ expired, bad uint64 }

func has(mask uint64, i int) bool { return mask>>(i%64)&1 == 1 }

func newEndpoint(w *simtests.World, script func(*modeltest.Request) *modeltest.Answer) *endpoint {
	r := w.Rand()
	e := &endpoint{w: w, openai: r.IntN(2) == 0, left: r.IntN(24), hopeless: r.IntN(12) == 0, faults: map[string]*outcome{}}
	e.Server = &modeltest.Server{
		Script: script, Clock: w.Runtime().Clock(), Exec: w.Runtime().Executor(),
		BatchTakes: time.Duration(r.IntN(20)*r.IntN(60)) * time.Minute, BatchFault: e.fault,
	}
	return e
}

// strikes draws whether something goes wrong, once in so many times.
func (e *endpoint) strikes(once int) bool {
	if e.left == 0 || e.w.Rand().IntN(once) > 0 {
		return false
	}
	e.left--
	return true
}

// fault draws what goes wrong with a batch.
func (e *endpoint) fault(n int) *modeltest.BatchFault {
	o := &outcome{}
	id := fmt.Sprint("batch_", n)
	e.faults[id] = o
	f := &modeltest.BatchFault{
		Expires: func(i int) bool { return has(o.expired, i) },
		Errs: func(i int) int {
			if has(o.bad, i) {
				return http.StatusInternalServerError
			}
			return 0
		},
	}
	if e.hopeless {
		o.expired, f.Takes = ^uint64(0), 24*time.Hour
		return f
	}
	f.Takes = time.Duration(e.w.Rand().IntN(1+e.w.Rand().IntN(120))) * time.Minute
	what := -1
	if e.strikes(2) {
		if what = e.w.Rand().IntN(10); e.calm {
			what = 1
		}
		e.w.Note("the batch %d has the fault %d", n, what)
	}
	switch what {
	case 0:
		f.NoConnection = true
	case 1, 2:
		f.LostAnswer = true
	case 3:
		f.Status = []int{429, 503}[e.w.Rand().IntN(2)]
	case 4:
		f.Takes, o.expired = 24*time.Hour, e.w.Rand().Uint64()
	case 5:
		o.bad = e.w.Rand().Uint64()
	case 6:
		o.bad = e.w.Rand().Uint64()
		f.Errs, f.Loses = nil, func(i int) bool { return has(o.bad, i) }
	case 7:
		f.CutAt = 1 + e.w.Rand().IntN(3)
	case 8:
		f.Twice = true
	case 9:
		f.Reversed = true
	}
	return f
}

// way is how the requests of a host come to the endpoint.
type way struct {
	*endpoint
	steps int // the host's, until it dies; below 0: it does not
	dead  bool
	dying bool // it dies at this step

	onDeath func() // may be nil
	die     context.CancelCauseFunc
}

// step is one at which the host may die. It reports whether the host lives.
func (h *way) step() bool {
	h.steps--
	if h.dying = h.steps == 0 && !h.dead; h.dying {
		h.dies()
	}
	return !h.dead
}

func (h *way) dies() {
	if !h.dead {
		h.w.Note("the host dies")
		h.dead = true
		if h.onDeath != nil {
			h.onDeath()
		}
		h.die(errHostDied)
	}
}

// client is the model of a host.
func (h *way) client() *model.Client {
	c := model.Config{Client: &http.Client{Transport: h}}
	if h.openai {
		return h.OpenAI(c)
	}
	return h.Anthropic(c)
}

// RoundTrip implements http.RoundTripper.
func (h *way) RoundTrip(in *http.Request) (*http.Response, error) {
	if !h.step() {
		if h.dying && in.Method == http.MethodPost && h.w.Rand().IntN(2) == 0 { // it is under way when the host dies
			return nil, h.late(in)
		}
		return nil, errHostDied
	}
	if h.strikes(10) {
		switch what := h.w.Rand().IntN(8); {
		case what == 0 && in.Method == http.MethodPost: // it arrives when its sender has given it up
			return nil, h.late(in)
		case what == 1:
			h.w.Note("the answer to %s %s is lost", in.Method, in.URL.Path)
			if _, err := h.Server.RoundTrip(in); err != nil {
				return nil, err
			}
			return nil, &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
		case what == 2 && in.Method == http.MethodGet:
			return &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(nil)), Request: in}, nil
		case what == 3:
			return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
		}
		if err := idle(in.Context(), h.w, h.w.Rand().IntN(200)); err != nil {
			return nil, err
		}
		if !h.step() {
			return nil, errHostDied
		}
	}
	resp, err := h.Server.RoundTrip(in)
	if err == nil && !h.step() {
		return nil, errHostDied
	}
	return resp, err
}

// late has a request arrive within the minute after its connection has broken.
func (h *way) late(in *http.Request) error {
	h.w.Note("%s %s arrives late", in.Method, in.URL.Path)
	body, err := io.ReadAll(in.Body)
	if err != nil {
		return err
	}
	again := in.Clone(h.w.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	after := time.Duration(h.w.Rand().IntN(50)) * time.Second
	h.w.Go(func() {
		h.w.Sleep(after)
		_, _ = h.Server.RoundTrip(again) // no one reads the answer
	})
	return &net.OpError{Op: "read", Net: "tcp", Err: syscall.ECONNRESET}
}

// judge holds what the endpoint has worked on against how often each request may be answered. Requests
// with one name are the same.
func (e *endpoint) judge(name func(*modeltest.Request) string, may func(*modeltest.Request) int) {
	good, place := map[string]int{}, map[string]int{}
	for _, r := range e.Requests() {
		o := e.faults[r.Batch]
		i := place[r.Batch]
		for has(o.expired, i) {
			i++
		}
		place[r.Batch] = i + 1
		if has(o.bad, i) {
			continue
		}
		which := name(r)
		good[which]++
		e.w.Note("%s has %q", r.Batch, r.Prompt())
		if n := may(r); good[which] > n {
			e.w.Errorf("paid-once: the endpoint works for the %dth time on a request that needs %d answers, in %s: %.300s", good[which], n, r.Batch, which)
			return
		}
	}
}

package throughput

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/bench/internal/drive"
	"github.com/agent-troupe/troupe/bench/internal/fast"
	"github.com/agent-troupe/troupe/bench/internal/measure"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// Crowded are the figures of a crowd.
type Crowded struct {
	Sessions int     `json:"sessions"`
	Seconds  float64 `json:"seconds"`
	Turns    int     `json:"turns"`
	// Late counts turns that began more than a second late, because the one before, or the
	// machine, took too long.
	Late int `json:"late"`
	// P50, P99 and Max are how long the agent waited for the answer to its hook.
	P50 float64 `json:"callback_p50_ms"`
	P99 float64 `json:"callback_p99_ms"`
	Max float64 `json:"callback_max_ms"`
	CPU float64 `json:"cpu"`    // processors in use, on average
	RSS float64 `json:"rss_mb"` // at the end, with all sessions live
}

// turnEvery is how often each session has a turn.
const turnEvery = time.Second

// opening is how many sessions are opened, and closed, at the same time.
const opening = 64

// Crowd opens sessions on agents in memory. Each has a turn with one hook in each second.
func Crowd(ctx context.Context, n int, period time.Duration) (f Crowded, err error) {
	h, err := Hold(ctx, n, nil)
	defer func() { err = errors.Join(err, h.Close(ctx)) }()
	if err != nil {
		return f, err
	}
	return h.Round(ctx, period)
}

// Held are sessions that are open.
type Held struct{ clients []*sdk.Client }

// Hold opens sessions on agents in memory. rt nil: in the default runtime. Also with an error the caller
// closes what it returns.
func Hold(ctx context.Context, n int, rt *runtime.Runtime) (*Held, error) {
	job := drive.Job{Backend: fast.Program{}, Mode: measure.Hook, N: 1}
	h := &Held{make([]*sdk.Client, n)}
	return h, drive.Each(n, opening, func(i int) error {
		o := job.Options(nil)
		if rt != nil {
			o.Runtime = rt
		}
		h.clients[i] = sdk.NewClient(o)
		return h.clients[i].Connect(ctx)
	})
}

// Close closes all sessions.
func (h *Held) Close(ctx context.Context) error {
	return drive.Each(len(h.clients), opening, func(i int) error {
		if h.clients[i] == nil {
			return nil
		}
		return h.clients[i].Close(ctx)
	})
}

// Round has turns for a while: one with one hook in each second, in each session.
func (h *Held) Round(ctx context.Context, period time.Duration) (f Crowded, err error) {
	clients := h.clients
	n := len(clients)
	waits, errs := make([][]time.Duration, n), make([]error, n)
	late := make([]int, n)
	cpu, began := measure.CPU(), time.Now()
	var all sync.WaitGroup
	for i := range clients {
		all.Go(func() {
			first := turnEvery * time.Duration(i) / time.Duration(n)
			for k := range int(period / turnEvery) {
				due := began.Add(first + time.Duration(k)*turnEvery)
				time.Sleep(time.Until(due))
				if time.Since(due) > turnEvery {
					late[i]++
				}
				var wait time.Duration
				if wait, errs[i] = turn(ctx, clients[i]); errs[i] != nil {
					return
				}
				waits[i] = append(waits[i], wait)
			}
		})
	}
	all.Wait()
	spent := time.Since(began)
	if err := errors.Join(errs...); err != nil {
		return f, err
	}
	flat := slices.Concat(waits...)
	if len(flat) == 0 {
		return f, fmt.Errorf("no turn fits into %v", period)
	}
	slices.Sort(flat)
	f = Crowded{
		Sessions: n, Seconds: spent.Seconds(), Turns: len(flat),
		P50: millis(flat[len(flat)/2]), P99: millis(flat[len(flat)*99/100]), Max: millis(flat[len(flat)-1]),
		CPU: (measure.CPU() - cpu).Seconds() / spent.Seconds(), RSS: measure.MB(measure.RSS()),
	}
	for _, l := range late {
		f.Late += l
	}
	return f, nil
}

// turn has one turn, and returns how long the agent waited for its hook.
func turn(ctx context.Context, c *sdk.Client) (wait time.Duration, err error) {
	t, err := c.Send(ctx, sdk.UserText(measure.Prompt(measure.Hook, 1)))
	if err != nil {
		return 0, err
	}
	r, err := t.Result(ctx)
	if err != nil {
		return 0, err
	}
	if wait = time.Duration(measure.Nanoseconds(r.Text())); wait == 0 {
		return 0, fmt.Errorf("the agent's turn failed: %s %s", r.Subtype, r.Text())
	}
	return wait, nil
}

func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1e3 }

package drive

import (
	"context"
	"errors"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/bench/internal/fast"
	"github.com/agent-troupe/troupe/bench/internal/measure"
	"github.com/agent-troupe/troupe/sdk"
)

// Closes are the figures of sessions that were opened and closed.
type Closes struct {
	Foreign  int     `json:"foreign_processes"`
	Closers  int     `json:"closers"`
	Sessions int     `json:"sessions"`
	P50      float64 `json:"close_p50_ms"`
	P99      float64 `json:"close_p99_ms"`
	CPU      float64 `json:"close_cpu_ms,omitempty"` // of this process, for each Close; with one closer
}

// Closing opens j.Sessions sessions, so many at the same time, and closes
// Each at once, while foreign other processes live.
func Closing(ctx context.Context, j Job, foreign, closers int) (f Closes, err error) {
	j.Mode = measure.Idle
	f = Closes{Foreign: foreign, Closers: closers, Sessions: j.Sessions}
	end, err := others(foreign)
	defer end()
	if err != nil {
		return f, err
	}
	var (
		mu   sync.Mutex
		took = make([]float64, 0, j.Sessions)
		cpu  time.Duration
	)
	err = Each(j.Sessions, closers, func(int) error {
		c := sdk.NewClient(j.Options(nil))
		if err := c.Connect(ctx); err != nil {
			return errors.Join(err, c.Close(context.WithoutCancel(ctx)))
		}
		began, used := time.Now(), measure.CPU()
		err := c.Close(context.WithoutCancel(ctx))
		mu.Lock()
		defer mu.Unlock()
		took, cpu = append(took, millis(began)), cpu+measure.CPU()-used
		return err
	})
	if err != nil || len(took) == 0 {
		return f, err
	}
	slices.Sort(took)
	f.P50, f.P99 = took[len(took)/2], took[len(took)*99/100]
	if closers == 1 {
		f.CPU = float64(cpu.Microseconds()) / 1e3 / float64(len(took))
	}
	return f, nil
}

// others starts processes that are not agents, and returns a function that ends them.
func others(n int) (end func(), err error) {
	var all []*exec.Cmd
	end = func() {
		for _, c := range all {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}
	for range n {
		c := exec.Command("sleep", "3600")
		if err := c.Start(); err != nil {
			return end, err
		}
		all = append(all, c)
	}
	return end, nil
}

// Reading are the figures of sessions in memory that are closed all at once, with
// and without a reader of the events of each.
type Reading struct {
	Sessions int     `json:"sessions"`
	Without  float64 `json:"close_ms"`              // medians
	With     float64 `json:"close_with_readers_ms"` // of the same
	Ratio    float64 `json:"ratio"`
}

// Readers closes n sessions with and without readers, in turn, five times.
func Readers(ctx context.Context, n int) (Reading, error) {
	var took [2][]float64
	for range 5 {
		for i := range took {
			millis, err := closeAll(ctx, n, i == 1)
			if err != nil {
				return Reading{}, err
			}
			took[i] = append(took[i], millis)
		}
	}
	f := Reading{Sessions: n, Without: measure.Median(took[0]), With: measure.Median(took[1])}
	f.Ratio = f.With / f.Without
	return f, nil
}

func closeAll(ctx context.Context, n int, readers bool) (float64, error) {
	clients := make([]*sdk.Client, n)
	var reading sync.WaitGroup
	err := Each(n, atOnce, func(i int) error {
		c := sdk.NewClient(&sdk.Options{Backend: fast.Program{}})
		clients[i] = c
		if err := c.Connect(ctx); err != nil || !readers {
			return err
		}
		events := c.Events(ctx)
		started := make(chan struct{})
		reading.Go(func() {
			close(started)
			for range events { // it is the reading that costs
			}
		})
		<-started
		return nil
	})
	measure.Settle()
	began := time.Now()
	err = errors.Join(err, Each(n, closers, func(i int) error {
		if clients[i] == nil {
			return nil
		}
		return clients[i].Close(context.WithoutCancel(ctx))
	}))
	took := millis(began)
	reading.Wait()
	return took, err
}

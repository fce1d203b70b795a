package drive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/agent-troupe/troupe/bench/internal/measure"
	"github.com/agent-troupe/troupe/sdk"
)

// Crowd are the figures of many sessions in one process.
type Crowd struct {
	Sessions   int     `json:"sessions"`
	OpenMillis float64 `json:"open_ms"`
	RSSEach    float64 `json:"rss_kb_each"`  // KiB
	HeapEach   float64 `json:"heap_kb_each"` // KiB
	Goroutines float64 `json:"goroutines_each"`
	CloseMilli float64 `json:"close_ms"`
	Left       int     `json:"goroutines_left"`
	HeapBefore float64 `json:"heap_before_mb"` // MiB of live heap before the first
	HeapLeft   float64 `json:"heap_left_mb"`   // MiB above that, when all are closed
}

// Kept returns an error if closed sessions keep more than 2 MiB and a tenth of the
// heap before.
func (f Crowd) Kept() error {
	if bound := 2 + f.HeapBefore/10; f.HeapLeft > bound {
		return fmt.Errorf("%d closed sessions keep %.1f MiB of heap, more than %.1f", f.Sessions, f.HeapLeft, bound)
	}
	return nil
}

// Many opens the sessions on agents of this process, each of which has a turn if
// turns is set or the job has a mode, holds them, and closes them. If passive is set, the
// sessions give up their agents before they are held.
func Many(ctx context.Context, j Job, turns, passive bool) (f Crowd, err error) {
	j.Mode = cmp.Or(j.Mode, measure.Idle)
	turns = turns || j.Mode != measure.Idle
	n, r := j.Sessions, &run{Job: j}
	if err := r.warmUp(ctx); err != nil {
		return f, err
	}
	before := settled(0)
	f.Sessions = n
	clients := make([]*sdk.Client, n)
	began := time.Now()
	err = Each(n, atOnce, func(i int) error {
		clients[i] = sdk.NewClient(r.Options(nil))
		err := clients[i].Connect(ctx)
		if err == nil && turns {
			_, _, err = r.turn(ctx, clients[i])
		}
		if err == nil && passive {
			err = clients[i].Passivate(ctx)
		}
		return err
	})
	f.OpenMillis = millis(began)
	held := settled(-1)
	share := func(now, then int64) float64 { return float64(now-then) / 1024 / float64(n) }
	f.RSSEach, f.HeapEach = share(held.rss, before.rss), share(held.heap, before.heap)
	f.Goroutines = float64(held.goroutines-before.goroutines) / float64(n)

	if j.Held != nil {
		err = errors.Join(err, j.Held())
	}
	began = time.Now()
	closed := Each(n, closers, func(i int) error {
		if clients[i] == nil {
			return nil
		}
		return clients[i].Close(context.WithoutCancel(ctx))
	})
	f.CloseMilli = millis(began)
	clear(clients)
	left := settled(before.goroutines)
	f.Left = left.goroutines - before.goroutines
	f.HeapBefore, f.HeapLeft = measure.MB(before.heap), measure.MB(left.heap-before.heap)
	if j.Left != nil {
		err = errors.Join(err, j.Left())
	}
	return f, errors.Join(err, closed)
}

// closers is how many sessions are closed at the same time. The Go runtime keeps
// the descriptor of every goroutine for reuse, which would be most of HeapLeft if
// Each session had a closer.
const closers = 64

type reading struct {
	rss, heap  int64
	goroutines int
}

// settled reads the memory once garbage is gone, and the number of goroutines
// once it has come down to want, or does not come down any more.
func settled(want int) reading {
	tries := 100
	if want > 0 {
		tries = 2000 // a busy machine takes longer to end them
	}
	for range tries {
		if want < 0 || runtime.NumGoroutine() <= want {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	measure.Settle()
	return reading{measure.RSS(), measure.Heap(), runtime.NumGoroutine()}
}

func millis(since time.Time) float64 { return float64(time.Since(since).Microseconds()) / 1e3 }

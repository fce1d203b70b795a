package peers

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// most is how long a run may take.
const most = 5 * time.Minute

// figures are those of a run; cpu, mb and kb are for each session.
type figures struct {
	wall, first, cpu time.Duration
	mb, kb           float64
	resident         bool // mb is the kernel's peak of the resident set: the run was too short to sample
	firstBytes       int
}

// measure runs the task with a process for each session, at each number at once.
func (b *bench) measure(ctx context.Context, p peer) ([]row, error) {
	rows := []row{{name: p.name, version: p.version, kind: "a process each"}}
	ways := []task{alone}
	if p.serve != nil {
		rows = append(rows, row{name: p.name, version: p.version, kind: "one process"})
		ways = append(ways, served)
	}
	for w, do := range ways {
		each := 0.0
		for _, n := range b.Counts {
			at := n
			if room := available() * 0.6; w == 0 && each*float64(n) > room {
				at = max(1, int(room/each))
			}
			f, err := b.median(ctx, &p, at, do)
			if err != nil {
				return rows, fmt.Errorf("%s, %d at once: %w", rows[w].kind, at, err)
			}
			each = f.mb
			fmt.Fprintf(os.Stderr, "%s, %s, %d at once: %s\n", p.name, rows[w].kind, at, seconds(f.wall))
			rows[w].runs = append(rows[w].runs, ran{n: at, wanted: n, figures: f})
		}
	}
	return rows, nil
}

// median is the median run of one at a time, and the only run of more.
func (b *bench) median(ctx context.Context, p *peer, n int, do task) (figures, error) {
	rounds := 1
	if n == 1 {
		rounds = b.Rounds
	}
	var all []figures
	for range rounds {
		f, err := b.run(ctx, p, n, do)
		if err != nil {
			return f, err
		}
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b figures) int { return int(a.first - b.first) })
	return all[len(all)/2], nil
}

// places are n sites of the agent, each with a directory that has the file.
func (b *bench) places(p *peer, n int, suffix string) (sites []*site, dirs []string, err error) {
	b.sites++
	for i := range n {
		top := filepath.Join(b.dir, strconv.Itoa(b.sites), strconv.Itoa(i))
		s := &site{peer: p, url: b.server.URL(), home: filepath.Join(top, "home"), dir: filepath.Join(top, "work")}
		s.prompt = p.prompt(s.dir, suffix)
		for _, dir := range []string{s.home, s.dir} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				return nil, nil, err
			}
		}
		if err := os.WriteFile(fileIn(s.dir), bytes.Repeat([]byte(fileText), 20), 0o600); err != nil {
			return nil, nil, err
		}
		sites, dirs = append(sites, s), append(dirs, s.dir)
	}
	return sites, dirs, nil
}

// gone removes the places of the last run, and ends what still runs in them.
func (b *bench) gone() error {
	return errors.Join(reap(), os.RemoveAll(filepath.Join(b.dir, strconv.Itoa(b.sites))))
}

// task has the sessions do the task, at the same time. It returns when each began, and the kernel's
// peak of the resident set of a session, or 0.
type task func(ctx context.Context, sites []*site) (starts []time.Time, resident float64, err error)

// run measures a task of n sessions.
func (b *bench) run(ctx context.Context, p *peer, n int, do task) (f figures, err error) {
	sites, dirs, err := b.places(p, n, "")
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, b.gone()) }()
	b.server.Reset()
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	before, began, peak := cpu(), time.Now(), sample()
	starts, resident, err := do(ctx, sites)
	f.wall = time.Since(began)
	f.mb = peak() / float64(n)
	if err := errors.Join(err, reap(), context.Cause(ctx)); err != nil {
		return f, err
	}
	f.cpu = (cpu() - before) / time.Duration(n)
	f.atLeast(resident)
	return f, b.read(&f, dirs, starts)
}

// alone has a process for each session.
func alone(ctx context.Context, sites []*site) (starts []time.Time, resident float64, err error) {
	n := len(sites)
	errs, residents := make([]error, n), make([]float64, n)
	var wg sync.WaitGroup
	for i, s := range sites {
		cmd := s.peer.alone(s)
		out := &tail{}
		cmd.Stdout, cmd.Stderr = out, out
		cmd.WaitDelay = time.Second
		starts = append(starts, time.Now())
		if errs[i] = cmd.Start(); errs[i] != nil {
			break
		}
		stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
		wg.Go(func() {
			if err := cmd.Wait(); err != nil {
				errs[i] = fmt.Errorf("%w: %s", err, why(out.String()))
			}
			stop()
			residents[i] = peakOf(cmd.ProcessState)
		})
	}
	wg.Wait()
	if n == 1 {
		resident = residents[0]
	}
	return starts, resident, cmp.Or(errs...)
}

// atLeast replaces what the samples have missed by the kernel's peak of the only process.
func (f *figures) atLeast(resident float64) {
	if f.mb < resident/2 {
		f.mb, f.resident = resident, true
	}
}

// read adds what the server has seen.
func (b *bench) read(f *figures, dirs []string, starts []time.Time) error {
	all, bytes, err := seen(b.server.Requests(), dirs)
	if err != nil {
		return err
	}
	var waits []time.Duration
	for i, t := range all {
		waits = append(waits, t.first.Sub(starts[i]))
		f.firstBytes = max(f.firstBytes, t.firstBytes)
	}
	slices.Sort(waits)
	f.first = waits[len(waits)/2]
	f.kb = float64(bytes) / 1024 / float64(len(dirs))
	return nil
}

// sample looks at the memory of all processes below this one until the peak is asked for.
func sample() (peak func() float64) {
	var done atomic.Bool
	var wg sync.WaitGroup
	var mb float64
	wg.Go(func() {
		for !done.Load() {
			began := time.Now()
			mb = max(mb, pss())
			time.Sleep(max(2*time.Millisecond, 4*time.Since(began))) // a fifth of a processor at most
		}
	})
	return func() float64 {
		done.Store(true)
		wg.Wait()
		return mb
	}
}

// tail keeps the last of what is written to it.
type tail struct {
	mu sync.Mutex
	b  []byte
}

func (t *tail) Write(p []byte) (int, error) {
	const keep = 8 << 10
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	t.b = t.b[max(0, len(t.b)-keep):]
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.b)
}

// Command bench compares queues: in memory, in a server inside this process, and in three servers that
// are processes. In each round each of them runs a job of tiny tasks, whose agents are in this process,
// and then leases and finishes as many tasks without agents, as many at a time.
//
//	cd contrib/nats && go run ./bench -tasks 5000 -rounds 5
//
// It prints the medians of the rounds: tasks a second of jobs, and their ratio to the queue in
// memory; tasks a second of the queue alone, and the ratio of the job to it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agent-troupe/troupe/agent/scripted"
	troupenats "github.com/agent-troupe/troupe/contrib/nats"
	"github.com/agent-troupe/troupe/contrib/nats/embedded"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// nodeEnv makes this program a server of the cluster: its number, the first port, the directory.
const nodeEnv = "TROUPE_NATS_BENCH_NODE"

type bench struct {
	tasks, at, rounds, port int
	dir                     string
}

func main() {
	log.SetFlags(0)
	if v := os.Getenv(nodeEnv); v != "" {
		if err := node(strings.Split(v, ",")); err != nil {
			log.Fatal(err)
		}
		return
	}
	var b bench
	flag.IntVar(&b.tasks, "tasks", 5000, "tasks of a job")
	flag.IntVar(&b.at, "at", 16, "how many run at a time")
	flag.IntVar(&b.rounds, "rounds", 5, "rounds")
	flag.IntVar(&b.port, "port", 15622, "first of six ports on 127.0.0.1 for the three servers")
	flag.Parse()
	if err := b.run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func node(v []string) error {
	i, err := strconv.Atoi(v[0])
	if err != nil {
		return err
	}
	port, err := strconv.Atoi(v[1])
	if err != nil {
		return err
	}
	c := &embedded.Cluster{Name: "bench", Port: port + 3 + i}
	for j := range 3 {
		if j != i {
			c.Routes = append(c.Routes, fmt.Sprintf("127.0.0.1:%d", port+3+j))
		}
	}
	s, err := embedded.Start(embedded.Config{Name: fmt.Sprint("n", i), Dir: filepath.Join(v[2], fmt.Sprint("n", i)), Host: "127.0.0.1", Port: port + i, Cluster: c})
	if err == nil {
		s.Wait()
	}
	return err
}

// kind is one of the queues that are compared. open makes an empty one.
type kind struct {
	name       string
	open       func(ctx context.Context, job string) (q queue.Queue, end func() error, err error)
	job, alone []float64 // tasks a second, of each round
}

func (b *bench) run(ctx context.Context) (err error) {
	if b.dir, err = os.MkdirTemp("", "troupe-bench"); err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(b.dir) }()
	s, err := embedded.Start(embedded.Config{Dir: filepath.Join(b.dir, "one")})
	if err != nil {
		return err
	}
	defer s.Stop()
	one, err := s.Connect()
	if err != nil {
		return err
	}
	defer one.Close()
	three, stop, err := b.cluster()
	defer stop()
	if err != nil {
		return err
	}
	defer three.Close()
	kinds := []*kind{
		{name: "memory", open: func(context.Context, string) (queue.Queue, func() error, error) {
			return queue.NewMemory(queue.MemoryConfig{TTL: time.Minute}), func() error { return nil }, nil
		}},
		{name: "a server in the process", open: on(one)},
		{name: "three servers", open: on(three)},
	}
	for round := range b.rounds {
		for _, k := range kinds {
			name := fmt.Sprint("round", round)
			for _, part := range []struct {
				rates *[]float64
				run   func(context.Context, queue.Queue) error
			}{{&k.job, b.job}, {&k.alone, b.alone}} {
				rate, err := b.rate(ctx, k, name, part.run)
				if err != nil {
					return fmt.Errorf("%s: %w", k.name, err)
				}
				*part.rates = append(*part.rates, rate)
			}
			log.Printf("round %d, %s: job %.0f, queue alone %.0f tasks a second", round+1, k.name, k.job[round], k.alone[round])
		}
	}
	base := median(kinds[0].job)
	fmt.Printf("| %d tasks, %d at a time, median of %d | job, tasks/s | to memory | queue alone, tasks/s | job to queue |\n|---|---|---|---|---|\n", b.tasks, b.at, b.rounds)
	for _, k := range kinds {
		job, alone := median(k.job), median(k.alone)
		fmt.Printf("| %s | %.0f | %.2f | %.0f | %.2f |\n", k.name, job, job/base, alone, job/alone)
	}
	return nil
}

// rate measures one run with an empty queue.
func (b *bench) rate(ctx context.Context, k *kind, name string, run func(context.Context, queue.Queue) error) (float64, error) {
	q, end, err := k.open(ctx, name)
	if err != nil {
		return 0, err
	}
	began := time.Now()
	err = run(ctx, q)
	rate := float64(b.tasks) / time.Since(began).Seconds()
	if err == nil {
		err = end()
	}
	return rate, err
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// on opens queues on servers.
func on(nc *nats.Conn) func(context.Context, string) (queue.Queue, func() error, error) {
	return func(ctx context.Context, job string) (queue.Queue, func() error, error) {
		q, err := troupenats.Open(ctx, nc, troupenats.Config{Job: job, TTL: time.Minute})
		if err != nil {
			return nil, nil, err
		}
		return q, func() error { q.Close(); return troupenats.Remove(ctx, nc, job) }, nil
	}
}

// cluster starts the three servers, and connects to them.
func (b *bench) cluster() (nc *nats.Conn, stop func(), err error) {
	var all []*exec.Cmd
	stop = func() {
		for _, c := range all {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	}
	exe, err := os.Executable()
	if err != nil {
		return nil, stop, err
	}
	var urls []string
	for i := range 3 {
		c := exec.Command(exe) //nolint:noctx // stop ends it
		c.Env = append(os.Environ(), fmt.Sprintf("%s=%d,%d,%s", nodeEnv, i, b.port, b.dir))
		c.Stderr = os.Stderr
		if err := c.Start(); err != nil {
			return nil, stop, err
		}
		all = append(all, c)
		urls = append(urls, fmt.Sprintf("nats://127.0.0.1:%d", b.port+i))
	}
	for range 200 {
		if nc, err = troupenats.Connect(strings.Join(urls, ",")); err == nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	return nc, stop, err
}

// job runs a job of tasks that do almost nothing.
func (b *bench) job(ctx context.Context, q queue.Queue) error {
	out, err := os.MkdirTemp(b.dir, "out")
	if err != nil {
		return err
	}
	rt, err := runtime.New(runtime.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	script := &scripted.Script{Transcript: true, Default: []scripted.Step{scripted.Text("done: ${prompt}")}}
	j := fleet.Job{
		Out: out, Queue: q, Concurrency: b.at,
		Options: &sdk.Options{Runtime: rt, Backend: scripted.New(scripted.WithScript(script), scripted.WithHistory(&scripted.MemoryHistory{}))},
	}
	for i := range b.tasks {
		j.Tasks = append(j.Tasks, fleet.Task{ID: fmt.Sprint("t", i), Prompt: fmt.Sprint("do ", i)})
	}
	for r, err := range fleet.Run(ctx, j) {
		if err != nil {
			return err
		}
		if !r.OK() {
			return fmt.Errorf("%s is %s: %s", r.ID, r.Status, r.Error)
		}
	}
	return rt.Shutdown(ctx)
}

// alone leases and finishes the tasks.
func (b *bench) alone(ctx context.Context, q queue.Queue) error {
	var offers []queue.Offer
	for i := range b.tasks {
		offers = append(offers, queue.Offer{Task: fmt.Sprint("t", i), Hash: "h"})
	}
	if err := q.Offer(ctx, offers...); err != nil {
		return err
	}
	result := json.RawMessage(`"` + strings.Repeat("x", 1000) + `"`)
	var next atomic.Int64
	var callers sync.WaitGroup
	errs := make([]error, b.at)
	for w := range b.at {
		callers.Go(func() {
			for i := int(next.Add(1)) - 1; i < b.tasks && errs[w] == nil; i = int(next.Add(1)) - 1 {
				l, err := q.Lease(ctx, offers[i].Task, fmt.Sprint("w", w))
				if err == nil {
					err = q.Finish(ctx, l, result)
				}
				errs[w] = err
			}
		})
	}
	callers.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

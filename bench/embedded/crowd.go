package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/bench/internal/drive"
	"github.com/agent-troupe/troupe/bench/internal/measure"
	models "github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/sdk"
)

// atOnce is how many turns are made at the same time.
const atOnce = 64

// backend is the embedded agent at the model. Sessions are stored in store; "": not at all.
func backend(url string, c *http.Client, store string) sdk.Backend {
	m := models.NewAnthropic(models.AnthropicConfig{Config: models.Config{URL: url, Client: c}})
	return embedded.New(embedded.Config{Model: m, Name: "bench", Dir: store})
}

// options are those of a session of the crowd.
func (b *bench) options(agent sdk.Backend, store string) *sdk.Options {
	return &sdk.Options{Backend: agent, Cwd: b.dir, AllowedTools: []string{"Read"}, PersistSession: sdk.Some(store != "")}
}

// turn is a turn that reads the file.
func (b *bench) turn(ctx context.Context, c *sdk.Client) error {
	t, err := c.Send(ctx, sdk.UserText(readMark+" "+b.file()))
	if err != nil {
		return err
	}
	r, err := t.Result(ctx)
	if err != nil {
		return err
	}
	if r.Failed() || r.NumTurns != 2 {
		return fmt.Errorf("a turn with one Read ended like that: %s", r.Raw())
	}
	return nil
}

// opened opens n sessions.
func (b *bench) opened(ctx context.Context, n int, agent sdk.Backend, store string) ([]*sdk.Client, error) {
	clients := make([]*sdk.Client, n)
	err := drive.Each(n, atOnce, func(i int) error {
		clients[i] = sdk.NewClient(b.options(agent, store))
		return clients[i].Connect(ctx)
	})
	return clients, err
}

// turns has a turn with each session, and returns the processor time of one.
func (b *bench) turns(ctx context.Context, clients []*sdk.Client) (millis float64, err error) {
	before := measure.CPU()
	err = drive.Each(len(clients), atOnce, func(i int) error { return b.turn(ctx, clients[i]) })
	return (measure.CPU() - before).Seconds() * 1e3 / float64(len(clients)), err
}

// warm has a session of each kind, so that what all share does not count.
func (b *bench) warm(ctx context.Context, agent sdk.Backend, store string) error {
	clients, err := b.opened(ctx, 1, agent, store)
	if err == nil {
		_, err = b.turns(ctx, clients)
	}
	return errors.Join(err, closeAll(ctx, clients))
}

// stored measures turns with a transcript, of a tenth of the sessions.
func (b *bench) stored(ctx context.Context) error {
	store := filepath.Join(b.dir, "store")
	client := models.NewHTTPClient()
	agent := backend(b.at.Model, client, store)
	if err := b.warm(ctx, agent, store); err != nil {
		return err
	}
	clients, err := b.opened(ctx, max(b.sessions/10, 1), agent, store)
	if err == nil {
		var cost float64
		if cost, err = b.turns(ctx, clients); err == nil {
			b.most(b.limits.storedMS, "processor time of a turn with a transcript", cost, "ms")
		}
	}
	err = errors.Join(err, closeAll(ctx, clients))
	client.CloseIdleConnections()
	files, globErr := filepath.Glob(filepath.Join(store, "projects", "*", "*.jsonl"))
	if err == nil && len(files) != len(clients)+1 {
		err = fmt.Errorf("%d sessions have %d transcripts", len(clients)+1, len(files))
	}
	return errors.Join(err, globErr)
}

// crowd measures all sessions at once.
func (b *bench) crowd(ctx context.Context) error {
	client := models.NewHTTPClient()
	agent := backend(b.at.Model, client, "")
	if err := b.warm(ctx, agent, ""); err != nil {
		return err
	}
	client.CloseIdleConnections()
	before := b.settled(0)
	n := float64(b.sessions)
	began := measure.CPU()
	clients, err := b.opened(ctx, b.sessions, agent, "")
	if err != nil {
		return errors.Join(err, closeAll(ctx, clients))
	}
	b.tell("processor time of opening a session", (measure.CPU()-began).Seconds()*1e3/n, "ms")
	open := b.settled(-1)
	b.tell("resident set of a session that is open", open.kb(before)/n, "KB")

	if err := b.profile("open"); err != nil {
		return errors.Join(err, closeAll(ctx, clients))
	}

	cost, err := b.turns(ctx, clients)
	if err != nil {
		return errors.Join(err, closeAll(ctx, clients))
	}
	b.most(b.limits.turnMS, "processor time of a turn with one Read", cost, "ms")
	idle := b.settled(-1)
	b.most(b.limits.idleKB, "resident set of a session that is idle after it", idle.kb(before)/n, "KB")
	b.tell("heap of it", (idle.Heap-before.Heap)*1024/n, "KB")
	client.CloseIdleConnections() // those of the last turns
	b.most(b.limits.idleGoroutines, "goroutines of it", float64(b.settled(before.Goroutines).Goroutines-before.Goroutines)/n, "")
	if b.claudeMB > 0 {
		b.least(b.limits.smaller, "its resident set, times smaller than Claude Code's", b.claudeMB*1024/(idle.kb(before)/n))
	}
	if err := b.profile("idle"); err != nil {
		return errors.Join(err, closeAll(ctx, clients))
	}

	err = b.streaming(ctx, clients, before)
	began, start := measure.CPU(), time.Now()
	err = errors.Join(err, closeAll(ctx, clients))
	b.tell("closing all", time.Since(start).Seconds(), "s")
	b.tell("processor time of closing a session", (measure.CPU()-began).Seconds()*1e3/n, "ms")
	clear(clients)
	client.CloseIdleConnections()
	left := b.settled(before.Goroutines)
	b.most(b.limits.leftGoroutines, "goroutines left", float64(left.Goroutines-before.Goroutines), "")
	b.most(b.limits.leftFDs, "descriptors left", float64(left.Descriptors-before.Descriptors), "")
	b.most(b.limits.leftKB, "heap left of a session", (left.Heap-before.Heap)*1024/n, "KB")
	return errors.Join(err, b.profile("left"))
}

// streaming has all sessions read an answer at the same time, and interrupts them.
func (b *bench) streaming(ctx context.Context, clients []*sdk.Client, before reading) error {
	n := float64(len(clients))
	var wg sync.WaitGroup
	var ended atomic.Int64
	err := drive.Each(len(clients), atOnce, func(i int) error {
		t, err := clients[i].Send(ctx, sdk.UserText(holdMark))
		if err == nil {
			wg.Go(func() { // as a user of the session has one
				_, _ = t.Result(ctx) // it is interrupted
				ended.Add(1)
			})
		}
		return err
	})
	if err != nil {
		return err
	}
	if err := b.held(len(clients)); err != nil {
		return err
	}
	now := b.settled(-1)
	b.most(b.limits.streamKB, "resident set of a session that streams", now.kb(before)/n, "KB")
	b.tell("heap of it", (now.Heap-before.Heap)*1024/n, "KB")
	b.tell("goroutines of it, the reader's included", float64(now.Goroutines-before.Goroutines)/n, "")
	if err := b.profile("streaming"); err != nil {
		return err
	}
	began, span := measure.CPU(), 3*time.Second
	time.Sleep(span)
	b.tell("part of a processor for all streams", (measure.CPU()-began).Seconds()/span.Seconds()*100, "%")
	if done := ended.Load(); done > 0 {
		return fmt.Errorf("%d streams have ended by themselves", done)
	}
	start := time.Now()
	err = drive.Each(len(clients), atOnce, func(i int) error { _, err := clients[i].Interrupt(ctx); return err })
	wg.Wait()
	b.tell("interrupting all", time.Since(start).Seconds(), "s")
	return err
}

// held waits until so many streams are open at the model.
func (b *bench) held(n int) error {
	var at int
	for range 1200 {
		resp, err := http.Get(b.at.Model)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(resp.Body)
		if err := errors.Join(err, resp.Body.Close()); err != nil {
			return err
		}
		if at, err = strconv.Atoi(string(text)); err != nil || at == n {
			return err
		}
		time.Sleep(100 * time.Millisecond)
	}
	return fmt.Errorf("%d of %d sessions stream after two minutes", at, n)
}

func closeAll(ctx context.Context, clients []*sdk.Client) error {
	return drive.Each(len(clients), atOnce, func(i int) error {
		if clients[i] == nil {
			return nil
		}
		return clients[i].Close(ctx)
	})
}

// reading is what the process has at a moment.
type reading struct{ measure.Holding }

// kb is how much more is resident than before.
func (r reading) kb(before reading) float64 { return (r.RSS - before.RSS) * 1024 }

// settled reads it once garbage is gone, and the number of goroutines once it has come down
// to want, or does not come down any more.
func (b *bench) settled(want int) reading {
	http.DefaultClient.CloseIdleConnections()
	for range 400 {
		if want < 0 || runtime.NumGoroutine() <= want {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	return reading{measure.Holds(b.dir)}
}

func (b *bench) heapProfiles() {
	if b.heap != "" {
		runtime.MemProfileRate = 512
	}
}

// profile writes a profile of the heap, and one of the goroutines, if it is wanted.
func (b *bench) profile(when string) error {
	if b.heap == "" {
		return nil
	}
	return errors.Join(write(b.heap+"."+when+".heap", "heap"), write(b.heap+"."+when+".goroutines", "goroutine"))
}

func write(name, profile string) error {
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	debug := 0
	if strings.HasSuffix(name, ".goroutines") {
		debug = 1
	}
	return errors.Join(pprof.Lookup(profile).WriteTo(f, debug), f.Close())
}

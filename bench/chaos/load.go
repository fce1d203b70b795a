package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/bench/internal/measure"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// script is what every agent plays: a turn of about a tenth of a second with a permission.
func script() *scripted.Script {
	return &scripted.Script{Turns: []scripted.Turn{{When: "work", Steps: scripted.Steps{
		scripted.Text("begun"), scripted.Delay(50 * time.Millisecond),
		&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "touch it"}, Gate: agent.GateAsk, Result: "ok"},
		scripted.Delay(50 * time.Millisecond), scripted.Text("done"),
	}}}}
}

// limit bounds every wait: what takes longer hangs.
const limit = 2 * time.Minute

// startsPerSecond is the limit of the first part. The default, 10, is for programs that
// break; here they are killed.
const startsPerSecond = 100

type chaos struct {
	span, every time.Duration
	sessions    int
	path, dir   string

	mu         sync.Mutex
	outcomes   map[string]int
	starts     []time.Time            // of processes that took the place of one that died
	recovering map[string]time.Time   // when the process of a session died
	took       []time.Duration        // from a death to the next process that is ready
	breaker    []session.BreakerState // the states that the breaker has come to
	closed     chan struct{}          // closed once it is closed again
	violations []error
}

// begin empties the counters.
func (c *chaos) begin() {
	c.outcomes, c.starts, c.took, c.violations, c.breaker = map[string]int{}, nil, nil, nil, nil
	c.recovering, c.closed = map[string]time.Time{}, make(chan struct{})
}

// open is a runtime whose events are counted.
func (c *chaos) open(ctx context.Context, b runtime.Breakers) (*runtime.Runtime, error) {
	c.begin()
	rt, err := runtime.New(runtime.Config{TempDir: c.dir, Logger: slog.New(slog.DiscardHandler), Breakers: b})
	if err != nil {
		return nil, err
	}
	seen := rt.Events(ctx)
	go func() {
		for e := range seen {
			c.event(e)
		}
	}()
	return rt, nil
}

func (c *chaos) event(e session.EventRecord) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch e := e.Event.(type) {
	case *session.EventsLost:
		c.violations = append(c.violations, fmt.Errorf("%d events lost", e.Count))
	case *session.BreakerOpened:
		c.breaker = append(c.breaker, session.BreakerOpen)
	case *session.BreakerReclosed:
		c.breaker = append(c.breaker, session.BreakerClosed)
		close(c.closed)
		c.closed = make(chan struct{})
	}
}

// own is the events of one session, none of which is lost.
func (c *chaos) own(e session.EventRecord) {
	changed, ok := e.Event.(*session.StateChanged)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch changed.To {
	case session.StateInitializing.String(): // it has been started
		if _, ok := c.recovering[e.Session]; ok {
			c.starts = append(c.starts, e.At)
		}
	case session.StateRecovering.String():
		if _, ok := c.recovering[e.Session]; !ok {
			c.recovering[e.Session] = e.At
		}
	case session.StateReady.String():
		if at, ok := c.recovering[e.Session]; ok {
			c.took = append(c.took, e.At.Sub(at))
			delete(c.recovering, e.Session)
		}
	}
}

func (c *chaos) options(rt *runtime.Runtime) *sdk.Options {
	return &sdk.Options{
		Runtime: rt, Backend: sdk.Claude(sdk.ClaudeConfig{Path: c.path}), Env: map[string]string{roleEnv: "1"}, OnEvent: c.own,
		CanUseTool: func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.Allow(), nil
		},
	}
}

// kill kills one of the agents at random, every so often, until ctx ends.
func (c *chaos) kill(ctx context.Context) {
	tick := time.NewTicker(c.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if pids := measure.Children(); len(pids) > 0 {
				kill(pids[rand.IntN(len(pids))])
			}
		}
	}
}

// recovers is the first part.
func (c *chaos) recovers(ctx context.Context) error {
	rt, err := c.open(ctx, runtime.Breakers{StartsPerSecond: startsPerSecond})
	if err != nil {
		return err
	}
	killing, stop := context.WithTimeout(ctx, c.span)
	defer stop()
	var all sync.WaitGroup
	for range c.sessions {
		all.Go(func() {
			for killing.Err() == nil {
				c.survives(ctx, killing, rt)
			}
		})
	}
	c.flat(killing)
	all.Wait()
	return errors.Join(c.end(ctx, rt), c.report("with restarts", startsPerSecond))
}

// survives has turns in one session until the time is over.
func (c *chaos) survives(ctx, killing context.Context, rt *runtime.Runtime) {
	o := c.options(rt)
	o.MaxRestarts, o.RestartWindow, o.EqualDeaths = 100, time.Minute, -1
	o.RestartBackoff = session.Backoff{Max: time.Second}
	client := sdk.NewClient(o)
	opened, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if err := client.Connect(opened); err != nil { // killed before it was ready: nothing was lost
		c.count("not opened", err)
		_ = client.Close(opened) // repeats it
		return
	}
	for killing.Err() == nil {
		c.turn(ctx, client, func(error) string { return "" })
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	if err := client.Close(closing); err != nil {
		c.violate(fmt.Errorf("close: %w", err))
	}
}

// flat kills until the time is over, and checks that the memory of the second half is that
// of the first.
func (c *chaos) flat(killing context.Context) {
	half := time.NewTimer(c.span / 2)
	defer half.Stop()
	killed := make(chan struct{})
	go func() { defer close(killed); c.kill(killing) }()
	var middle measure.Holding
	select {
	case <-half.C:
		middle = measure.Holds(c.dir)
	case <-killing.Done():
	}
	<-killed
	last := measure.Holds(c.dir)
	fmt.Printf("with %d sessions: RSS %.0f and %.0f MB, heap %.1f and %.1f MB (half time and end)\n", c.sessions, middle.RSS, last.RSS, middle.Heap, last.Heap)
	if middle.Heap > 0 && last.Heap > 1.2*middle.Heap+8 {
		c.violate(fmt.Errorf("the heap grew from %.1f to %.1f MB", middle.Heap, last.Heap))
	}
}

// turn is one turn; wanted names the errors that it may have, "": another.
func (c *chaos) turn(ctx context.Context, client *sdk.Client, wanted func(error) string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	turn, err := client.Send(ctx, sdk.UserText("work"))
	if err == nil {
		var result, again *sdk.ResultMessage
		result, err = turn.Result(ctx)
		if again, _ = turn.Result(ctx); again != result {
			c.violate(errors.New("a turn has two results"))
		}
		if err == nil {
			what := "result"
			if result.Recovered {
				what = "recovered"
			}
			if result.Failed() || !strings.HasSuffix(result.Text(), "done") {
				c.violate(fmt.Errorf("a turn has the result %q", result.Text()))
			}
			c.count(what, nil)
			return true
		}
	}
	what := wanted(err)
	if what == "" {
		c.violate(fmt.Errorf("a turn has no result: %w", err))
	}
	c.count(what, nil)
	return false
}

// typed names the errors of a session with the defaults whose agent is killed.
func typed(err error) string {
	if _, ok := errors.AsType[*sdk.ExitError](err); ok {
		return "ExitError"
	}
	if _, ok := errors.AsType[*session.BreakerOpenError](err); ok {
		return "BreakerOpenError"
	}
	return ""
}

// defaults is the second part.
func (c *chaos) defaults(ctx context.Context) error {
	rt, err := c.open(ctx, runtime.Breakers{})
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	for range min(c.sessions, 20) {
		all.Go(func() {
			for working.Err() == nil {
				client := sdk.NewClient(c.options(rt))
				opened, cancel := context.WithTimeout(ctx, limit)
				err := client.Connect(opened)
				if err != nil {
					what := typed(err)
					if what == "" {
						c.violate(fmt.Errorf("a session does not start: %w", err))
					}
					c.count("start: "+what, nil)
					time.Sleep(50 * time.Millisecond) // before it tries again
				}
				for err == nil && working.Err() == nil && c.turn(ctx, client, typed) {
				}
				_ = client.Close(opened) // repeats what the session has ended with
				cancel()
			}
		})
	}
	killing, cancel := context.WithTimeout(working, c.span/4)
	c.kill(killing)
	cancel()
	c.atBirth(working)
	all.Go(stop)
	all.Wait()
	c.mu.Lock()
	states := slices.Clone(c.breaker)
	c.mu.Unlock()
	if !slices.Contains(states, session.BreakerOpen) || states[len(states)-1] != session.BreakerClosed {
		c.violate(fmt.Errorf("the breaker was %v", states))
	}
	fmt.Println("breaker:", states)
	return errors.Join(c.end(ctx, rt), c.report("with the defaults", 10))
}

// atBirth kills every agent at once until the breaker opens, and waits until it is closed.
func (c *chaos) atBirth(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	is := func() (open bool, closed chan struct{}) {
		c.mu.Lock()
		defer c.mu.Unlock()
		return len(c.breaker) > 0 && c.breaker[len(c.breaker)-1] == session.BreakerOpen, c.closed
	}
	for ctx.Err() == nil {
		open, closed := is()
		if open {
			select {
			case <-closed:
				return
			case <-ctx.Done():
			}
			continue
		}
		for _, pid := range measure.Children() {
			kill(pid)
		}
		time.Sleep(time.Millisecond)
	}
	c.violate(errors.New("the breaker did not open and close"))
}

// end shuts the runtime down.
func (c *chaos) end(ctx context.Context, rt *runtime.Runtime) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limit)
	defer cancel()
	return rt.Shutdown(ctx)
}

func (c *chaos) count(what string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outcomes[what]++
	if err != nil && typed(err) == "" {
		c.violations = append(c.violations, err)
	}
}

func (c *chaos) violate(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.violations = append(c.violations, err)
}

// report prints a part, and returns what was wrong with it.
func (c *chaos) report(part string, rate int) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.SortFunc(c.starts, time.Time.Compare)
	most, from := 0, 0
	for i, at := range c.starts {
		for at.Sub(c.starts[from]) >= time.Second {
			from++
		}
		most = max(most, i-from+1)
	}
	slices.Sort(c.took)
	fmt.Printf("%s: %v\n", part, c.outcomes)
	if most > rate+rate/5 { // they are counted a little after they were let pass
		c.violations = append(c.violations, fmt.Errorf("%d starts in a second; the limit is %d", most, rate))
	}
	if n := len(c.took); n > 0 {
		fmt.Printf("%s: %d processes followed one that died, at most %d in a second (limit %d); from the death to ready %v in the middle, %v at worst\n",
			part, len(c.starts), most, rate, c.took[n/2].Round(time.Millisecond), c.took[n-1].Round(time.Millisecond))
	}
	shown := c.violations[:min(len(c.violations), 10)]
	if len(shown) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %d violations: %w", part, len(c.violations), errors.Join(shown...))
}

// kill kills a process, unless it has ended.
func kill(pid int) {
	if p, err := os.FindProcess(pid); err == nil {
		_ = p.Kill() // it may have ended
	}
}

// procs says that the children of a process are known.
func procs() bool {
	_, err := os.Stat("/proc/self/task")
	return err == nil
}

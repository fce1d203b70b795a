package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// script is what every agent plays: the prompt names the kind of turn.
func script() *scripted.Script {
	tool := &scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "date"}, Gate: agent.GateAsk, Result: "now"}
	return &scripted.Script{Turns: []scripted.Turn{
		{When: "quick", Steps: scripted.Steps{scripted.Text("${prompt}")}},
		{When: "gated", Steps: scripted.Steps{tool, scripted.Text("done")}},
		{When: "slow", Steps: scripted.Steps{scripted.Text("begun"), scripted.Delay(50 * time.Millisecond), scripted.Text("done")}},
		{When: "large", Steps: scripted.Steps{&scripted.Huge{Bytes: 256 << 10}}},
		{When: "die", Steps: scripted.Steps{scripted.Text("last words"), &scripted.Exit{Code: 3}}},
	}}
}

// kinds are drawn evenly, so that about one turn in ten kills its agent.
var kinds = [...]string{"quick", "quick", "quick", "gated", "gated", "gated", "slow", "slow", "large", "die"}

type soaking struct {
	dir, path string
	began     time.Time
	sends     atomic.Int64
	sessions  atomic.Int64

	mu         sync.Mutex
	outcomes   map[string]int
	violations []string
}

func newSoak() (*soaking, error) {
	dir, err := os.MkdirTemp("", "troupe-soak-")
	if err != nil {
		return nil, err
	}
	path, err := os.Executable()
	return &soaking{dir: dir, path: path, began: time.Now(), outcomes: map[string]int{}}, err
}

// limit bounds every wait: what takes longer hangs.
const limit = 30 * time.Second

// load has sessions for a while, each worker on its own runtimes, which are shut down
// after some sessions, or in the middle of one.
func (s *soaking) load(ctx context.Context, span time.Duration, workers int) error {
	ctx, cancel := context.WithTimeout(ctx, span)
	defer cancel()
	var all sync.WaitGroup
	var failed atomic.Pointer[error]
	for w := range workers {
		rng := rand.New(rand.NewPCG(uint64(w), uint64(s.sessions.Load())))
		all.Go(func() {
			for ctx.Err() == nil {
				if err := s.life(ctx, rng); err != nil {
					failed.CompareAndSwap(nil, &err)
					return
				}
			}
		})
	}
	all.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// life is that of one runtime.
func (s *soaking) life(ctx context.Context, rng *rand.Rand) error {
	rt, err := runtime.New(runtime.Config{TempDir: s.dir, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	sudden := rng.IntN(4) == 0
	done := make(chan struct{})
	seed := rng.Uint64()
	go func() {
		defer close(done)
		rng := rand.New(rand.NewPCG(seed, 1))
		for range 1 + rng.IntN(20) {
			if ctx.Err() != nil {
				return
			}
			if err := s.session(rt, rng); err != nil {
				return // the runtime was shut down
			}
		}
	}()
	if sudden {
		select {
		case <-done:
		case <-time.After(time.Duration(rng.IntN(200)) * time.Millisecond):
		}
	} else {
		<-done
	}
	over, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	err = rt.Shutdown(over)
	<-done
	return err
}

// session opens a session, has turns until it ends, and closes it.
func (s *soaking) session(rt *runtime.Runtime, rng *rand.Rand) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	c := sdk.NewClient(s.options(rt, rng))
	if err := c.Connect(ctx); err != nil {
		return errors.Join(err, c.Close(ctx))
	}
	s.sessions.Add(1)
	var turns sync.WaitGroup
	for range 1 + rng.IntN(6) {
		kind := kinds[rng.IntN(len(kinds))]
		turn, err := c.Send(ctx, sdk.UserText(kind))
		if err != nil {
			break // the agent is dead
		}
		s.sends.Add(1)
		how := rng.IntN(4)
		pause := time.Duration(rng.IntN(5)) * time.Millisecond
		turns.Go(func() { s.outcome(ctx, kind, turn, how, pause) })
		if kind == "slow" && rng.IntN(2) == 0 {
			time.Sleep(pause)
			_, _ = c.Interrupt(ctx) // it may come too late
		}
		if rng.IntN(5) > 0 {
			turns.Wait() // else the next waits in the queue
		}
	}
	if rng.IntN(3) > 0 {
		turns.Wait()
	}
	err := c.Close(ctx)
	var left *session.LeftoverError
	if errors.As(err, &left) || errors.Is(err, context.DeadlineExceeded) {
		s.violate("close: %v", err)
	}
	turns.Wait()
	return nil
}

// outcome reads a turn in one of several ways, and checks that it has one
// outcome, which stays the same.
func (s *soaking) outcome(ctx context.Context, kind string, turn *sdk.Turn, how int, pause time.Duration) {
	switch how {
	case 0: // reads all, slowly
		for _, err := range turn.Messages(ctx) {
			if err != nil {
				break // Result has it, too
			}
			time.Sleep(pause)
		}
	case 1: // breaks off
		for _, err := range turn.Messages(ctx) {
			_ = err // Result has it, too
			break
		}
	}
	result, err := turn.Result(ctx)
	again, errAgain := turn.Result(ctx)
	if result != again || (err == nil) != (errAgain == nil) {
		s.violate("a turn %q has two outcomes: %v and %v", kind, err, errAgain)
	}
	if (result == nil) == (err == nil) {
		s.violate("a turn %q has a result and an error, or neither: %v", kind, err)
	}
	var off *session.GatesOffError
	if errors.As(err, &off) {
		s.violate("a turn %q of an agent that calls its hooks: %v", kind, err)
	}
	if err == nil && strings.Contains(result.Text(), "the session is closing") {
		s.violate("a turn %q that was blocked by the close is no error", kind)
	}
	// A message that came while a tool ran is of that turn, too: its result names both.
	if err == nil && (!slices.Contains(result.UserMessageUUIDs, turn.UUID()) ||
		kind == "quick" && !result.Failed() && result.Text() != "quick" && len(result.UserMessageUUIDs) == 1) {
		s.violate("a turn %q has the result of another: %q for %v", kind, result.Text(), result.UserMessageUUIDs)
	}
	s.count(kind, result, err)
}

func (s *soaking) count(kind string, result *sdk.ResultMessage, err error) {
	what := "success"
	var exit *sdk.ExitError
	switch {
	case errors.As(err, &exit):
		what = "exit"
	case errors.Is(err, session.ErrNotRun):
		what = "not run"
	case errors.Is(err, sdk.ErrClosed):
		what = "closed"
	case errors.Is(err, context.DeadlineExceeded):
		what = "time-out"
		s.violate("a turn %q hangs: %v", kind, err)
	case err != nil:
		what = fmt.Sprintf("%T", err)
	case result.Failed():
		what = "failed"
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outcomes[what]++
}

func (s *soaking) options(rt *runtime.Runtime, rng *rand.Rand) *sdk.Options {
	o := &sdk.Options{
		Runtime: rt,
		Backend: scripted.New(scripted.WithScript(script())),
		OnEvent: func(sdk.EventRecord) {},
		CanUseTool: func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.Allow(), nil
		},
		Hooks: []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			return sdk.PreToolUseOutput{}, nil
		})},
	}
	if rng.IntN(3) == 0 {
		o.Backend = sdk.Claude(sdk.ClaudeConfig{Path: s.path})
		o.Env = map[string]string{roleEnv: "1"}
		o.Settings = json.RawMessage(`{"env":{"A_TOKEN":"secret"}}`)
	}
	return o
}

func (s *soaking) violate(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.violations = append(s.violations, fmt.Sprintf(format, args...))
}

func (s *soaking) violated() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	counted := 0
	for _, n := range s.outcomes {
		counted += n
	}
	if sent := int(s.sends.Load()); counted != sent {
		s.violations = append(s.violations, fmt.Sprintf("%d sends have %d outcomes", sent, counted))
	}
	if len(s.violations) == 0 {
		return nil
	}
	shown := s.violations[:min(len(s.violations), 20)]
	return fmt.Errorf("%d violations:\n%s", len(s.violations), strings.Join(shown, "\n"))
}

func (s *soaking) summary() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, what := range slices.Sorted(maps.Keys(s.outcomes)) {
		all = append(all, fmt.Sprint(s.outcomes[what], " ", what))
	}
	return strings.Join(all, ", ")
}

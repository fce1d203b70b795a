package drive

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/bench/internal/measure"
	"github.com/agent-troupe/troupe/sdk"
)

// Job says what to measure.
type Job struct {
	Backend  sdk.Backend
	Env      map[string]string // for the agent
	Mode     string
	N        int // events or callbacks of each turn
	Sessions int // 0 is 1
	Answer   int // bytes of text in the answer of each hook
	// Held, if set, is called while all sessions are held.
	Held func() error
	// Left, if set, is called when all sessions are closed.
	Left func() error
}

// atOnce is how many sessions are opened, or closed, at the same time.
const atOnce = 8

// Run opens the sessions, has one turn with each, reads the figures while all
// of them live, and closes them.
func Run(ctx context.Context, j Job) (line measure.Line, err error) {
	j.Sessions = max(j.Sessions, 1)
	r := &run{Job: j, line: measure.Line{Mode: j.Mode, N: j.N, Sessions: j.Sessions}}
	if j.Mode == measure.Idle {
		// The cost of a session does not include shared parts, such as the code.
		if err := r.warmUp(ctx); err != nil {
			return r.line, err
		}
	}
	measure.Settle()
	r.line.Base = measure.MB(measure.RSS())
	defer func() { err = errors.Join(err, r.close()) }()
	if err := r.have(ctx); err != nil {
		return r.line, err
	}
	measure.Settle()
	r.line.RSS, r.line.Heap = measure.MB(measure.RSS()), measure.MB(measure.Heap())
	r.line.Goroutines = runtime.NumGoroutine()
	if j.Held != nil {
		return r.line, j.Held()
	}
	return r.line, nil
}

type run struct {
	Job
	line     measure.Line
	clients  []*sdk.Client
	messages atomic.Int64
	nanos    atomic.Int64
}

func (r *run) warmUp(ctx context.Context) error {
	c := sdk.NewClient(r.Options(nil))
	err := c.Connect(ctx)
	if err == nil {
		_, _, err = r.turn(ctx, c)
	}
	return errors.Join(err, c.Close(context.WithoutCancel(ctx)))
}

// have opens the sessions and has their turns: of idle sessions each as soon as
// it is open, of others all at once when all are open.
func (r *run) have(ctx context.Context) error {
	r.clients = make([]*sdk.Client, r.Sessions)
	began, used := time.Now(), measure.CPU()
	err := Each(r.Sessions, atOnce, func(i int) error {
		c := sdk.NewClient(r.Options(nil))
		r.clients[i] = c
		if err := c.Connect(ctx); err != nil {
			return err
		}
		if r.Mode != measure.Idle {
			return nil
		}
		return r.count(r.turn(ctx, c))
	})
	if err == nil && r.Mode != measure.Idle {
		began, used = time.Now(), measure.CPU()
		err = Each(r.Sessions, r.Sessions, func(i int) error { return r.count(r.turn(ctx, r.clients[i])) })
	}
	r.line.WallMillis = float64(time.Since(began).Microseconds()) / 1e3
	r.line.CPUMillis = float64((measure.CPU() - used).Microseconds()) / 1e3
	r.line.Peak = measure.MB(measure.Peak())
	r.line.Messages = r.messages.Load()
	r.line.CLINanos = r.nanos.Load() / int64(r.Sessions)
	return err
}

func (r *run) count(messages, nanos int64, err error) error {
	r.messages.Add(messages)
	r.nanos.Add(nanos)
	return err
}

// turn has one turn and reads every message of it, and its text.
func (r *run) turn(ctx context.Context, c *sdk.Client) (messages, nanos int64, err error) {
	turn, err := c.Send(ctx, sdk.UserText(measure.Prompt(r.Mode, r.N)))
	if err != nil {
		return 0, 0, err
	}
	text := 0
	for m, err := range turn.Messages(ctx) {
		if err != nil {
			return messages, 0, err
		}
		messages++
		switch m := m.(type) {
		case *sdk.PartialAssistantMessage:
			text += len(m.Text())
		case *sdk.ResultMessage:
			if m.Failed() {
				return messages, 0, fmt.Errorf("the agent's turn failed: %s %s", m.Subtype, m.Text())
			}
			nanos = measure.Nanoseconds(m.Text())
		}
	}
	if r.Mode == measure.Stream && text == 0 && r.N > 0 {
		return messages, nanos, errors.New("the agent streamed no text")
	}
	return messages, nanos, nil
}

func (r *run) close() error {
	return Each(len(r.clients), atOnce, func(i int) error {
		if r.clients[i] == nil {
			return nil
		}
		return r.clients[i].Close(context.Background())
	})
}

// Options are those of one session; hook is what its PreToolUse hook does, if
// it is not to return the zero value at once.
func (j Job) Options(hook func(context.Context) error) *sdk.Options {
	o := &sdk.Options{
		Backend: j.Backend,
		Env:     map[string]string{measure.ModeEnv: j.Mode, measure.CountEnv: strconv.Itoa(j.N)},
		Stderr:  func(line string) { fmt.Fprintln(os.Stderr, "agent:", line) },
	}
	maps.Copy(o.Env, j.Env)
	switch j.Mode {
	case measure.Stream:
		o.IncludePartialMessages = true
	case measure.Hook, measure.Probe:
		o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(ctx context.Context, _ *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			out := sdk.PreToolUseOutput{AdditionalContext: strings.Repeat("x", j.Answer)}
			if hook != nil {
				return out, hook(ctx)
			}
			return out, nil
		}, sdk.Match("Bash"))}
	case measure.Perm:
		o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.Allow(), nil
		}
	case measure.MCP:
		o.SDKMCPServers = []*sdk.MCPServer{echoServer()}
	}
	return o
}

func echoServer() *sdk.MCPServer {
	type input struct {
		Text string `json:"text"`
	}
	echo := sdk.NewTool("echo", "returns its text", func(_ context.Context, in input) (*sdk.ToolResult, error) {
		return sdk.Text(in.Text), nil
	})
	s, err := sdk.NewMCPServer("bench", "1.0.0", echo)
	if err != nil {
		panic(err) // the tool above is whole
	}
	return s
}

// Each calls fn for 0 to n-1, at most so many at the same time, and returns the
// first error.
func Each(n, atOnce int, fn func(i int) error) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for range min(n, atOnce) {
		wg.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && failed.Load() == nil; i = int(next.Add(1)) - 1 {
				if err := fn(i); err != nil {
					failed.CompareAndSwap(nil, &err)
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

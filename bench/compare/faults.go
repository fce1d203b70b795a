package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/bench/internal/fast"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// saw is what a caller has seen of an agent that misbehaves.
type saw struct {
	Ended      string  `json:"ended"` // see below
	Error      string  `json:"error,omitempty"`
	Calls      int     `json:"calls"` // of the hook
	WallMillis float64 `json:"wall_ms"`
	At         int64   `json:"at"` // of the end, in nanoseconds since 1970
}

// How a call has ended for its caller.
const (
	withResult = "result"
	withError  = "error"
	withEnd    = "end"   // no result and no error
	never      = "hangs" // not at all
)

// hangs is how long a call may take before it is said to hang.
const hangs = 3 * time.Second

// recovers, before the name of a fault, lets Troupe start the agent again.
const recovers = "again-"

// fault is a turn of this library with an agent that misbehaves.
func fault(ctx context.Context, name, agent, which string) (s saw, err error) {
	if name != troupe {
		return s, errors.New("the bare loop does nothing about faults")
	}
	o := &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{Path: agent}), Env: minimal, IncludePartialMessages: true}
	switch which {
	case fast.Mute:
		o.Limits.Initialize = time.Second // in all other cases the agent may start slowly
	case fast.Twice:
		o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (out sdk.PreToolUseOutput, err error) {
			s.Calls++
			return out, nil
		}, sdk.Match("Bash"))}
	case fast.Hooked:
		o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (out sdk.PreToolUseOutput, err error) {
			return out, errors.New("the callback failed")
		}, sdk.Match("Bash"))}
	case fast.Asks:
		o.PermissionTimeout = fast.Patience / 30
		o.CanUseTool = func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			<-ctx.Done()
			return sdk.PermissionResult{}, context.Cause(ctx)
		}
	case fast.Args:
		o.MCPServers = map[string]session.MCPServerConfig{"remote": {
			Type: "http", URL: "http://127.0.0.1:9/", Headers: map[string]string{"Authorization": os.Getenv(secretEnv)},
		}}
	case recovers + fast.Dies:
		o.MaxRestarts = 1
	}
	began := time.Now()
	s.Ended = withEnd
	for m, err := range sdk.Query(ctx, "go", o) {
		s.At = time.Now().UnixNano()
		if err != nil {
			s.Ended, s.Error = withError, err.Error()
			break
		}
		if _, ok := m.(*sdk.PartialAssistantMessage); ok && which == fast.Streams {
			break // the user leaves
		}
		if _, ok := m.(*sdk.ResultMessage); ok {
			s.Ended = withResult
		}
	}
	s.WallMillis = float64(time.Since(began).Microseconds()) / 1e3
	return s, nil
}

const secretEnv = "BENCH_SECRET"

// cases are the rows of the table in docs/migration.md.
var cases = []struct {
	fault, shown string
	words        func(s saw, report string) string
}{
	{fast.Exits, "the agent exits 0 in the middle of a turn", ended},
	{fast.Null, "the agent writes `null` or a number", ended},
	{fast.Leaves, "the agent leaves a process behind (`setsid`)", leftBehind},
	{fast.Mute, "the agent never answers initialize", ended},
	{fast.Twice, "the agent sends a request id twice", func(s saw, _ string) string {
		return "the callback runs " + map[int]string{1: "once", 2: "twice"}[s.Calls]
	}},
	{fast.Asks, "a permission callback never returns", answered},
	{fast.Hooked, "a hook's callback fails", answered},
	{fast.Streams, "the user breaks out of the message loop", leaving},
	{fast.Env, "the user sets `options.env`", func(_ saw, report string) string {
		return map[bool]string{true: "the agent has `PATH`", false: "the agent has no `PATH`"}[strings.Contains(report, fast.Present)]
	}},
	{fast.Args, "MCP configuration has secrets", func(_ saw, report string) string {
		return map[bool]string{true: "on the command line", false: "not on the command line"}[strings.Contains(report, fast.Present)]
	}},
}

// ended says how the call ended for its caller.
func ended(s saw, _ string) string {
	switch s.Ended {
	case withResult:
		return "the turn has its result"
	case withEnd:
		return "looks like a normal end"
	case never:
		return fmt.Sprintf("hangs for %.0f s", hangs.Seconds())
	default:
		return "error: " + brief(s.Error)
	}
}

// brief is the beginning of an error, as a cell of a table.
func brief(text string) string {
	const most = 90
	text = strings.NewReplacer("|", "/", "\n", " ", "`", "'").Replace(text)
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + "…"
	}
	return text
}

// leftBehind looks for the process, and ends it.
func leftBehind(s saw, report string) string {
	pid := after(report, fast.Left)
	if pid == 0 {
		return ended(s, report)
	}
	p, err := os.FindProcess(int(pid))
	if err != nil || p.Signal(syscall.Signal(0)) != nil || zombie(pid) {
		return "the process is killed"
	}
	_ = p.Kill() // it has lived long enough to count
	return "the process survives"
}

// zombie says that the process has ended, and that its parent has not asked for its status.
func zombie(pid int64) bool {
	stat, _ := os.ReadFile("/proc/" + strconv.FormatInt(pid, 10) + "/stat")
	return strings.Contains(string(stat), ") Z ")
}

// answered says what the agent got.
func answered(s saw, report string) string {
	switch {
	case strings.Contains(report, fast.Unanswered):
		return fmt.Sprintf("no answer in %.0f s", fast.Patience.Seconds())
	case strings.Contains(report, "deny"):
		return "an explicit deny"
	case strings.Contains(report, fast.Answered+" success"):
		return "an answer without a decision"
	case strings.Contains(report, fast.Answered):
		return "an error as the answer"
	default:
		return ended(s, report)
	}
}

// leaving says what the agent saw when the user left, in order.
func leaving(_ saw, report string) string {
	var all []string
	for line := range strings.Lines(report) {
		switch strings.TrimSpace(line) {
		case fast.Interrupted:
			all = append(all, "interrupt")
		case fast.Closed:
			all = append(all, "stdin closed")
		case fast.Terminated:
			all = append(all, "SIGTERM")
		}
	}
	if len(all) == 0 {
		return "nothing: it was killed"
	}
	return strings.Join(all, ", then ")
}

// after is the number that follows a word of a report; 0: it is not there.
func after(report, word string) int64 {
	for line := range strings.Lines(report) {
		if rest, ok := strings.CutPrefix(line, word+" "); ok {
			n, _ := strconv.ParseInt(strings.TrimSpace(rest), 10, 64) // the agent wrote a number
			return n
		}
	}
	return 0
}

// provoke has a turn of a host with an agent that has the fault, and returns the agent's report too.
func (b *bench) provoke(ctx context.Context, h *host, name string) (s saw, report string, err error) {
	dir, err := os.MkdirTemp("", "troupe-compare-")
	if err != nil {
		return s, "", err
	}
	defer func() { _ = os.RemoveAll(dir) }() // it is in the directory for temporary files
	file := filepath.Join(dir, "report")
	env := []string{fast.FaultEnv + "=" + strings.TrimPrefix(name, recovers), fast.ReportEnv + "=" + file, secretEnv + "=" + fast.Secret}
	err = h.run(ctx, b.self, env, &s, doFault, name)
	s.Error = strings.ReplaceAll(s.Error, b.self, "AGENT")
	text, _ := os.ReadFile(file) // it may have nothing to report
	return s, string(text), err
}

// faults plays each case once with each host but the bare loop.
func (b *bench) faults(ctx context.Context) error {
	hosts := b.hosts[1:]
	s := b.section(faults, hosts)
	played := cases
	if b.smoke {
		played = played[:3]
	}
	for _, c := range played {
		r := row{Name: c.shown}
		for _, h := range hosts {
			seen, report, err := b.provoke(ctx, h, c.fault)
			switch {
			case err != nil && h.own():
				return fmt.Errorf("%s: %w", c.fault, err)
			case err != nil:
				b.miss(h, c.shown, err)
				r.Cells = append(r.Cells, cell{Note: "not measured"})
			default:
				r.Cells = append(r.Cells, cell{Note: c.words(seen, report)})
			}
		}
		s.Rows = append(s.Rows, r)
	}
	return nil
}

// recovery kills the agent in a turn.
func (b *bench) recovery(ctx context.Context) error {
	hosts := b.hosts[1:]
	from := func(name, want string) probe {
		return func(ctx context.Context, h *host) ([]float64, error) {
			if name != fast.Dies && h.name != troupe {
				return nil, noRestart
			}
			seen, report, err := b.provoke(ctx, h, name)
			if err == nil && seen.Ended != want {
				err = fmt.Errorf("the call ended with: %s", ended(seen, report))
			}
			return []float64{float64(seen.At-after(report, fast.Killed)) / 1e9}, err
		}
	}
	if err := b.table(ctx, recoveries, hosts, []row{{Name: "until the caller knows", Unit: seconds}}, b.rounds, from(fast.Dies, withError)); err != nil {
		return err
	}
	return b.table(ctx, recoveries, hosts, []row{{Name: "until the result", Unit: seconds}}, b.rounds, from(recovers+fast.Dies, withResult))
}

// noRestart says that an SDK ends the call.
const noRestart = remark("never: its caller resumes the session")

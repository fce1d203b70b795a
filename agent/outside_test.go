package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tasks is an executor of goroutines that counts those that live.
type tasks struct{ sync.WaitGroup }

func (t *tasks) Go(fn func()) { t.WaitGroup.Go(fn) }

func (*tasks) Await(ctx context.Context, done <-chan struct{}) error {
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// wakePort is a port whose Next can be woken. Signals come before lines.
type wakePort struct {
	signals chan error
	lines   chan string
	mu      sync.Mutex
	wrote   sync.Cond // out has grown
	out     strings.Builder
}

func newWakePort(lines ...string) *wakePort {
	p := &wakePort{signals: make(chan error, 100), lines: make(chan string, 100)}
	p.wrote.L = &p.mu
	for _, l := range lines {
		p.lines <- l
	}
	return p
}

func (p *wakePort) Next(wait time.Duration) ([]byte, error) {
	select {
	case err := <-p.signals:
		return nil, err
	default:
	}
	var expired <-chan time.Time
	if wait >= 0 {
		timer := time.NewTimer(wait)
		defer timer.Stop()
		expired = timer.C
	}
	select {
	case err := <-p.signals:
		return nil, err
	case line, ok := <-p.lines:
		if !ok {
			p.lines = nil
			return nil, io.EOF
		}
		return []byte(line), nil
	case <-expired:
		return nil, ErrWaited
	}
}

func (p *wakePort) Write(b []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.Write(b)
	p.wrote.Broadcast()
	return nil
}

func (p *wakePort) Stderr([]byte)    {}
func (p *wakePort) Signal(err error) { p.signals <- err }

// wait waits until the agent has written that.
func (p *wakePort) wait(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for !strings.Contains(p.out.String(), text) {
		p.wrote.Wait()
	}
}

func (p *wakePort) written() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

const (
	helloLine     = `{"type":"control_request","request_id":"1","request":{"subtype":"initialize"}}`
	promptLine    = `{"type":"user","message":{"role":"user","content":"go"}}`
	interruptLine = `{"type":"control_request","request_id":"2","request":{"subtype":"interrupt"}}`
)

// outsideRun runs an agent whose turn is that until the host has closed stdin, and returns
// what it wrote. No task is left.
func outsideRun(t *testing.T, p *wakePort, turn func(*Turn) error) string {
	t.Helper()
	var all tasks
	cfg := Config{Dialect: Claude, Turn: turn, Executor: &all, AfterFunc: func(d time.Duration, fn func()) func() bool { return time.AfterFunc(d, fn).Stop }}
	Run(Launch{}, p, cfg)
	all.Wait()
	return p.written()
}

func TestWorkOutside(t *testing.T) {
	t.Parallel()
	p := newWakePort(helloLine, promptLine)
	close(p.lines)
	out := outsideRun(t, p, func(turn *Turn) error {
		text := ""
		if err := turn.Strand().Do(func(context.Context) error {
			text = "from a task"
			return nil
		}); err != nil {
			return err
		}
		failed := turn.Strand().Do(func(context.Context) error { return fmt.Errorf("it %s", "failed") })
		panicked := turn.Strand().Do(func(context.Context) error { panic("oh") })
		var p *TaskPanic
		if !errors.As(panicked, &p) || len(p.Stack) == 0 {
			return fmt.Errorf("the panic is %w", panicked)
		}
		return turn.Text(text + ", " + failed.Error() + ", " + panicked.Error())
	})
	assert.Contains(t, out, `"result":"from a task, it failed, agent: a task has panicked: oh"`)
}

// The engine answers the host while a task works.
func TestTheHostIsAnsweredMeanwhile(t *testing.T) {
	t.Parallel()
	p := newWakePort(helloLine, promptLine)
	finish := make(chan struct{})
	out := outsideRun(t, p, func(turn *Turn) error {
		p.lines <- `{"type":"control_request","request_id":"7","request":{"subtype":"set_model","model":"other"}}`
		err := turn.Strand().Do(func(context.Context) error {
			p.wait(`"request_id":"7"`)
			close(finish)
			return nil
		})
		close(p.lines)
		return err
	})
	<-finish
	assert.Contains(t, out, `"request_id":"7"`)
	assert.Contains(t, out, `"subtype":"success"`)
}

// After an interrupt the task is over when the result is there.
func TestAnInterruptWaitsForTheTask(t *testing.T) {
	t.Parallel()
	p := newWakePort(helloLine, promptLine)
	over := false
	out := outsideRun(t, p, func(turn *Turn) error {
		err := turn.Strand().Do(func(ctx context.Context) error {
			p.lines <- interruptLine
			<-ctx.Done()
			assert.ErrorIs(t, context.Cause(ctx), errAborted)
			p.wait(`"request_id":"2"`) // it takes its time: the interrupt is answered meanwhile
			over = true
			return nil
		})
		assert.True(t, over, "the task has ended before the strand goes on")
		assert.ErrorIs(t, err, errAborted)
		close(p.lines)
		return err
	})
	assert.Contains(t, out, "[Request interrupted by user]")
}

func TestTheEndWaitsForTasks(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]error{"killed": ErrKilled, "terminated": ErrTerminated} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all tasks
			p := newWakePort(helloLine, promptLine)
			over := false
			Run(Launch{}, p, Config{Dialect: Claude, Executor: &all, Turn: func(turn *Turn) error {
				return turn.Strand().Do(func(ctx context.Context) error {
					p.Signal(end)
					<-ctx.Done()
					over = true
					return nil
				})
			}})
			assert.True(t, over, "the agent ends after its tasks")
			all.Wait()
		})
	}
}

func TestReceive(t *testing.T) {
	t.Parallel()
	p := newWakePort(helloLine, promptLine)
	close(p.lines)
	const n = 1000
	wrong := errors.New("the end")
	var got []int
	out := outsideRun(t, p, func(turn *Turn) error {
		most := 0
		for items, err := range Receive(turn.Strand(), 16, func(_ context.Context, emit func(int) bool) error {
			for i := range n {
				if !emit(i) {
					return errors.New("nobody wants more")
				}
			}
			return wrong
		}) {
			got, most = append(got, items...), max(most, len(items))
			if err != nil {
				assert.Equal(t, wrong, err)
				assert.Empty(t, items)
			}
		}
		assert.LessOrEqual(t, most, 16)
		for _, err := range Receive(turn.Strand(), 1, func(ctx context.Context, emit func(int) bool) error {
			for emit(1) {
			}
			<-ctx.Done()
			return nil
		}) {
			assert.NoError(t, err)
			break // the task has to end by itself
		}
		return turn.Text("done")
	})
	assert.Len(t, got, n)
	assert.True(t, slices.IsSorted(got))
	assert.Contains(t, out, `"result":"done"`)
}

func TestAnInterruptEndsReceive(t *testing.T) {
	t.Parallel()
	p := newWakePort(helloLine, promptLine)
	ended := make(chan struct{})
	outsideRun(t, p, func(turn *Turn) error {
		var last error
		for items, err := range Receive(turn.Strand(), 4, func(ctx context.Context, emit func(string) bool) error {
			defer close(ended)
			emit("x")
			p.lines <- interruptLine
			<-ctx.Done()
			return nil
		}) {
			if err == nil {
				assert.Equal(t, []string{"x"}, items)
			}
			last = err
		}
		assert.ErrorIs(t, last, errAborted)
		close(p.lines)
		return last
	})
	<-ended
}

func TestNoWayOutside(t *testing.T) {
	t.Parallel()
	p := newWakePort(helloLine, promptLine)
	close(p.lines)
	Run(Launch{}, p, Config{Dialect: Claude, Turn: func(turn *Turn) error {
		assert.Equal(t, ErrNoWake, turn.Strand().Do(nil))
		for _, err := range Receive[int](turn.Strand(), 1, nil) {
			assert.Equal(t, ErrNoWake, err)
		}
		return turn.Text("done")
	}})
	require.Contains(t, p.written(), `"result":"done"`)
}

// Parallel strands work outside at once.
func TestStrandsWorkAtOnce(t *testing.T) {
	t.Parallel()
	p := newWakePort(helloLine, promptLine)
	close(p.lines)
	var meet sync.WaitGroup
	meet.Add(2)
	tool := func(id string) ToolCall {
		return ToolCall{ID: id, Name: "T", Gate: GateAllow, Run: func(s *Strand, _ Object) (ToolResult, error) {
			err := s.Do(func(context.Context) error {
				meet.Done()
				meet.Wait()
				return nil
			})
			return ToolResult{Content: id + " ran"}, err
		}}
	}
	out := outsideRun(t, p, func(turn *Turn) error {
		if err := turn.UseTools(tool("a"), tool("b")); err != nil {
			return err
		}
		return turn.Text("done")
	})
	assert.Contains(t, out, "a ran")
	assert.Contains(t, out, "b ran")
}

// gone is a port whose host is gone.
type gone struct{ *wakePort }

func (gone) Write([]byte) error { return io.ErrClosedPipe }

// No task begins when the agent has ended.
func TestNothingBeginsAfterTheEnd(t *testing.T) {
	t.Parallel()
	p := newWakePort(promptLine)
	var all tasks
	began := 0
	Run(Launch{}, gone{p}, Config{Dialect: Claude, Executor: &all, Turn: func(turn *Turn) error {
		s := turn.Strand()
		require.ErrorIs(t, s.Do(func(ctx context.Context) error {
			<-ctx.Done()
			return nil
		}), errOver)
		require.ErrorIs(t, s.Do(func(context.Context) error { began++; return nil }), errOver)
		for _, err := range Receive(s, 1, func(context.Context, func(int) bool) error { began++; return nil }) {
			require.ErrorIs(t, err, errOver)
		}
		return errOver
	}})
	all.Wait()
	assert.Zero(t, began)
}

// The reports of a task run on the strand, in order, and before Do returns. After an abort
// nothing of it runs any more.
func TestReportsOfATask(t *testing.T) {
	t.Parallel()
	p := newWakePort(helloLine, promptLine)
	close(p.lines)
	out := outsideRun(t, p, func(turn *Turn) error {
		var said []string
		err := turn.Strand().DoReporting(func(_ context.Context, report func(func())) error {
			report(func() { said = append(said, "one") })
			report(func() { said = append(said, "two") })
			return nil
		})
		if err != nil {
			return err
		}
		return turn.Text(strings.Join(said, " "))
	})
	assert.Contains(t, out, "one two")
}

// Real work in the background: its frames, its end in a separate turn, and how it is stopped.
func TestWorkInTheBackground(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stop    bool
		frames  []string
		notices int
	}{
		"ends":       {false, []string{"background_tasks_changed", "task_started", "task_updated", "task_notification", "background_tasks_changed"}, 1},
		"is stopped": {true, []string{"background_tasks_changed", "task_started", "task_updated", "task_notification", "background_tasks_changed"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newWakePort(helloLine, promptLine)
			close(p.lines)
			var all tasks
			notices, ended := 0, false
			Run(Launch{}, p, Config{Dialect: Claude, Executor: &all, Live: &Live{}, Turn: func(turn *Turn) error {
				if turn.Task() != nil {
					assert.Contains(t, turn.Prompt(), "<summary>it &lt;ended&gt;</summary>")
					assert.Contains(t, turn.Prompt(), "<output-file>/out</output-file>\n<status>failed</status>")
					notices++
					return nil
				}
				id := turn.NewTaskID()
				turn.Background(Work{ID: id, ToolUseID: "toolu_1", Command: "x", Description: "d", OutputFile: "/out", Run: func(s *Strand) (string, string) {
					err := s.Do(func(ctx context.Context) error {
						if c.stop {
							<-ctx.Done()
						}
						ended = true
						return nil
					})
					if err != nil {
						assert.Error(t, s.Err())
						return "", ""
					}
					return "failed", "it <ended>"
				}})
				assert.True(t, turn.RunsTask(id))
				if !c.stop {
					return nil
				}
				if err := turn.Strand().Yield(); err != nil { // it begins
					return err
				}
				_, command, found, err := turn.StopTask(turn.Strand(), id)
				assert.True(t, found)
				assert.True(t, ended, "its work is over when it is stopped")
				assert.Equal(t, "x", command)
				_, _, again, _ := turn.StopTask(turn.Strand(), id)
				assert.False(t, again)
				return err
			}})
			all.Wait()
			assert.Equal(t, c.notices, notices)
			var frames []string
			for line := range strings.Lines(p.written()) {
				var f struct{ Type, Subtype string }
				if json.Unmarshal([]byte(line), &f) == nil && f.Type == "system" && strings.Contains(f.Subtype, "task") {
					frames = append(frames, f.Subtype)
				}
			}
			assert.Equal(t, c.frames, frames)
		})
	}
}

// cutOff is the history of a session that died within a call. It keeps what follows.
type cutOff struct{ kept []string }

func (*cutOff) Load(string) ([]byte, error) {
	return []byte(`{"type":"user","uuid":"u1","promptSource":"sdk","message":{"role":"user","content":"go"}}` + "\n" +
		`{"type":"assistant","uuid":"u2","message":{"id":"m","stop_reason":"tool_use","content":[{"type":"tool_use","id":"open","name":"Bash","input":{}}]}}` + "\n"), nil
}

func (h *cutOff) Append(_ string, line []byte) error {
	h.kept = append(h.kept, string(line))
	return nil
}

// A call that an earlier life has left open has its result before the note of an interrupt,
// also if that comes before the prompt is stored.
func TestAnOpenCallIsAnsweredBeforeAnInterrupt(t *testing.T) {
	t.Parallel()
	p := newWakePort(`{"type":"control_request","request_id":"1","request":{"subtype":"initialize","hooks":{"UserPromptSubmit":[{"hookCallbackIds":["h"]}]}}}`, promptLine, interruptLine)
	close(p.lines)
	h := &cutOff{}
	Run(Launch{Args: []string{"--resume=s"}}, p, Config{Dialect: Claude, Live: &Live{}, History: h, Turn: func(*Turn) error { return nil }})
	result := slices.IndexFunc(h.kept, func(l string) bool { return strings.Contains(l, `"tool_use_id":"open"`) })
	note := slices.IndexFunc(h.kept, func(l string) bool { return strings.Contains(l, "[Request interrupted by user") })
	require.GreaterOrEqual(t, result, 0, "%q", h.kept)
	require.Greater(t, note, result, "%q", h.kept)
}

// A real agent's engine keeps one prompt: the history has all, and a session may be long.
func TestTheLastPromptIsKept(t *testing.T) {
	t.Parallel()
	p := newWakePort(promptLine, promptLine)
	close(p.lines)
	var kept []int
	Run(Launch{Args: []string{"--resume=s"}}, p, Config{Dialect: Claude, Live: &Live{}, History: &cutOff{}, Turn: func(turn *Turn) error {
		kept = append(kept, len(turn.History()))
		return nil
	}})
	require.Equal(t, []int{1, 1}, kept)
}

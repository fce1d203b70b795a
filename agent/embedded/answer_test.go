package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/sdk"
)

// reply streams the events of an answer.
type reply func(ctx context.Context, emit func(*model.Event) bool) error

// played is a model whose answers are functions.
type played struct {
	codec   model.Codec
	answers []reply

	mu     sync.Mutex
	bodies []string // the messages of each request
	asked  []string // its model
}

func (p *played) Codec() model.Codec { return p.codec }

func (p *played) Stream(ctx context.Context, r *model.Request, emit func(*model.Event) bool) error {
	p.mu.Lock()
	var all []string
	for _, m := range r.Messages {
		all = append(all, string(m))
	}
	p.bodies, p.asked = append(p.bodies, strings.Join(all, ",")), append(p.asked, r.Model)
	n := len(p.bodies)
	p.mu.Unlock()
	return p.answers[min(n, len(p.answers))-1](ctx, emit)
}

func (p *played) seen() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.bodies...)
}

func (p *played) models() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.asked...)
}

// breakDisk calls fn before each line of the log is written.
func breakDisk(o *sdk.Options, fn func()) {
	o.Backend = &changed{o.Backend.(backend.Backend), func(s *backend.Seams) {
		s.Disk = func(op, path string) error {
			if op == "write" && strings.HasSuffix(path, ".jsonl") {
				fn()
			}
			return nil
		}
	}}
}

// plays is a backend with such a model, and options for it.
func plays(t *testing.T, codec model.Codec, answers ...reply) (*played, *sdk.Options) {
	t.Helper()
	p := &played{codec: codec, answers: answers}
	return p, &sdk.Options{
		Backend: embedded.New(embedded.Config{Model: p, Name: "m", Dir: t.TempDir()}), Cwd: t.TempDir(),
		PermissionMode: sdk.ModeBypassPermissions, AllowDangerouslySkipPermissions: true,
	}
}

// whole is an answer with these blocks. then is what its stream does behind it.
func whole(then func(ctx context.Context) error, blocks ...model.Block) reply {
	return func(ctx context.Context, emit func(*model.Event) bool) error {
		events := []*model.Event{{Kind: model.Start, ID: "a"}}
		stop := "end_turn"
		for i := range blocks {
			events = append(events, &model.Event{Kind: model.Done, Index: i, Block: &blocks[i]})
			if blocks[i].Kind == model.ToolUse {
				stop = "tool_use"
			}
		}
		for _, e := range append(events, &model.Event{Kind: model.Stop, StopReason: stop, Usage: model.Usage{Output: 5}}) {
			if !emit(e) {
				return model.ErrStopped
			}
		}
		return then(ctx)
	}
}

func messagesAPI() model.Codec { return model.NewAnthropic(model.AnthropicConfig{}).Codec() }

// calling is an answer that makes a call.
func calling(id, tool, input string) reply {
	return whole(ends, model.Block{Kind: model.ToolUse, ID: id, Name: tool, Input: json.RawMessage(input)})
}

// saying is an answer that says this.
func saying(text string) reply {
	return whole(ends, model.Block{Kind: model.Text, Text: text})
}

func ends(context.Context) error { return nil }

func until(ctx context.Context) error {
	<-ctx.Done()
	return context.Cause(ctx)
}

var (
	aText = model.Block{Kind: model.Text, Text: "all of it"}
	aCall = model.Block{Kind: model.ToolUse, ID: "c1", Name: "Bash", Input: json.RawMessage(`{"command":"echo ran >> log"}`)}
)

// An answer is whole with its last event. An error or an interrupt between that and the end of
// the stream changes nothing: the answer is shown once and counted once.
func TestBehindAWholeAnswer(t *testing.T) {
	t.Parallel()
	messages := model.NewAnthropic(model.AnthropicConfig{}).Codec()
	for name, c := range map[string]struct {
		then      func(ctx context.Context) error
		blocks    []model.Block
		interrupt bool
	}{
		"an interrupt, a text": {until, []model.Block{aText}, true},
		"an interrupt, a call": {until, []model.Block{aText, aCall}, true},
		"an error, a text":     {func(context.Context) error { return &model.Error{Class: model.Network, Started: true} }, []model.Block{aText}, false},
		"an error, a call":     {func(context.Context) error { return &model.Error{Class: model.Network, Started: true} }, []model.Block{aText, aCall}, false},
		"an odd event, a call": {func(context.Context) error { return &model.Error{Class: model.Broken} }, []model.Block{aCall}, false},
		"nothing":              {ends, []model.Block{aText, aCall}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, o := plays(t, messages, whole(c.then, c.blocks...), whole(ends, model.Block{Kind: model.Text, Text: "later"}))
			client := open(t, o)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			turn, err := client.Send(ctx, sdk.UserText("go"))
			require.NoError(t, err)
			shown := 0
			var result *sdk.ResultMessage
			for m, err := range turn.Messages(ctx) {
				require.NoError(t, err)
				switch m := m.(type) {
				case *sdk.AssistantMessage:
					if sdk.TextOf(m) == "later" {
						continue
					}
					if shown++; c.interrupt && shown == len(c.blocks) {
						_, err := client.Interrupt(ctx)
						require.NoError(t, err)
					}
				case *sdk.ResultMessage:
					result = m
				}
			}
			require.NotNil(t, result)
			assert.Equal(t, len(c.blocks), shown, "each block once")
			assert.Equal(t, c.interrupt, result.IsError)
			ran, _ := os.ReadFile(filepath.Join(o.Cwd, "log")) // none if it has not run
			want, used := "", 5
			if !c.interrupt && c.blocks[len(c.blocks)-1].Kind == model.ToolUse {
				want, used = "ran\n", 10 // the next answer is of the same turn
			}
			assert.EqualValues(t, used, result.ModelUsage["m"].OutputTokens, "each answer is counted once")
			assert.Equal(t, want, string(ran))
			assert.Equal(t, "later", ask(t, client, "and now?").Result)
			require.NoError(t, client.Close(ctx))
			all := p.seen()
			last := all[len(all)-1]
			if c.blocks[0].Kind == model.Text {
				assert.Equal(t, 1, strings.Count(last, "all of it"))
			}
			if c.blocks[len(c.blocks)-1].Kind == model.ToolUse {
				assert.Equal(t, 1, strings.Count(last, `"tool_use_id":"c1"`))
				assert.Equal(t, c.interrupt, strings.Contains(last, "The user doesn't want to proceed with this tool use."))
			}
			assert.Equal(t, c.interrupt, strings.Contains(last, "[Request interrupted by user"))
		})
	}
}

// A server that numbers the calls of each answer from the same number is understood: each call
// is made, and the model reads its result.
func TestCallsWithTheSameID(t *testing.T) {
	t.Parallel()
	call := func(command string) reply {
		return whole(ends, model.Block{Kind: model.ToolUse, ID: "call_0", Name: "Bash", Input: json.RawMessage(`{"command":"` + command + `"}`)})
	}
	done := whole(ends, model.Block{Kind: model.Text, Text: "done"})
	p, o := plays(t, model.NewOpenAI(model.OpenAIConfig{}).Codec(), call("echo first result"), call("echo second result"), done)
	c := open(t, o)
	assert.Equal(t, "done", ask(t, c, "go").Result)
	require.NoError(t, c.Close(t.Context()))
	next := *o
	next.Resume = c.SessionID()
	ask(t, open(t, &next), "and now?")
	all := p.seen()
	require.Len(t, all, 4)
	for _, text := range []string{"echo first result", "echo second result"} {
		assert.Contains(t, all[2], text)
	}
	assert.Equal(t, 2, strings.Count(all[2], `"role":"tool"`), all[2])
	assert.NotContains(t, all[2], "interrupted")
	assert.True(t, strings.HasPrefix(all[3], all[2]), all[3])
}

// A fork reads each line once, also behind lines without an id, such as a title, and those that
// the engine leaves out.
func TestAForkOfASessionWithATitle(t *testing.T) {
	t.Parallel()
	p, o := plays(t, messagesAPI(), saying("done"))
	dir := t.TempDir()
	o.Env = map[string]string{"TROUPE_EMBEDDED_DIR": dir}
	c := open(t, o)
	ask(t, c, "first")
	require.NoError(t, c.Close(t.Context()))
	all, err := sdk.Sessions(o)
	require.NoError(t, err)
	require.NoError(t, all.Rename(t.Context(), c.SessionID(), "a title"))
	files, err := filepath.Glob(filepath.Join(dir, "projects", "*", c.SessionID()+".jsonl"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	f, err := os.OpenFile(files[0], os.O_APPEND|os.O_WRONLY, 0)
	require.NoError(t, err)
	_, err = f.WriteString(`{"type":"attachment","uuid":"odd","parentUuid":"none","attachment":"odd"}
{"type":"user","uuid":"next","parentUuid":"odd","promptSource":"sdk","message":{"role":"user","content":"by hand"}}
`)
	require.NoError(t, err)
	require.NoError(t, f.Close())
	next := *o
	next.Resume = c.SessionID()
	resumed := open(t, &next)
	ask(t, resumed, "second")
	require.NoError(t, resumed.Close(t.Context()))
	fork := next
	fork.ForkSession = true
	ask(t, open(t, &fork), "third")
	bodies := p.seen()
	require.Len(t, bodies, 3)
	assert.True(t, strings.HasPrefix(bodies[2], bodies[1]), bodies[2])
	assert.Equal(t, 1, strings.Count(bodies[2], `"first"`))
	assert.Equal(t, 1, strings.Count(bodies[2], "by hand"))
	assert.Equal(t, 1, strings.Count(bodies[2], `"second"`))
}

// After an interrupt nothing of the calls behind the one that ran begins: no hook is called,
// and no tool runs, not even one that needs no task.
func TestCallsBehindAnInterruptedOne(t *testing.T) {
	t.Parallel()
	block := func(id, tool, input string) model.Block {
		return model.Block{Kind: model.ToolUse, ID: id, Name: tool, Input: json.RawMessage(input)}
	}
	p, o := plays(t, messagesAPI(), whole(ends, block("c1", "Bash", `{"command":"echo > up; sleep 100"}`), block("c2", "Bash", `{"command":"touch ran"}`),
		block("c3", "TaskStop", `{"task_id":"b0"}`)), saying("later"))
	var mu sync.Mutex
	var hooked []string
	o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		mu.Lock()
		defer mu.Unlock()
		hooked = append(hooked, in.ToolUseID)
		return sdk.PreToolUseOutput{}, nil
	})}
	c := open(t, o)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	turn, err := c.Send(ctx, sdk.UserText("go"))
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		_, err := os.Stat(filepath.Join(o.Cwd, "up"))
		return err == nil
	}, time.Minute, time.Millisecond)
	_, err = c.Interrupt(ctx)
	require.NoError(t, err)
	r, err := turn.Result(ctx)
	require.NoError(t, err)
	assert.True(t, r.IsError)
	ask(t, c, "and now?")
	assert.NoFileExists(t, filepath.Join(o.Cwd, "ran"))
	mu.Lock()
	assert.Equal(t, []string{"c1"}, hooked)
	mu.Unlock()
	last := p.seen()[1]
	assert.Equal(t, 3, strings.Count(last, "The user doesn't want to proceed"), last)
	assert.NotContains(t, last, "No task found")
}

// A turn has 500 calls of the model, or as many as MaxTurns says.
func TestCallsOfATurn(t *testing.T) {
	t.Parallel()
	for most, text := range map[sdk.Opt[int]]string{{}: "the turn made 500 calls of the model; set MaxTurns", sdk.Some(600): ""} {
		var answers []reply
		for i := range 505 {
			answers = append(answers, calling(fmt.Sprint("c", i), "Read", fmt.Sprintf(`{"file_path":"a.txt","offset":%d}`, i+1)))
		}
		p, o := plays(t, messagesAPI(), append(answers, saying("done"))...)
		o.MaxTurns, o.PersistSession = most, sdk.Some(false)
		r := ask(t, open(t, o), "go")
		if text == "" {
			assert.Equal(t, "done", r.Result)
			continue
		}
		require.Len(t, r.Errors, 1)
		assert.Contains(t, r.Errors[0], text)
		assert.Len(t, p.seen(), 500)
	}
}

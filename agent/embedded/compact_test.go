package embedded_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/transcript"
)

// long is a session whose conversation becomes too long.
type long struct {
	*modeltest.Server
	o      *sdk.Options
	root   string
	frames []string
}

// isSummary reports whether a request asks for a summary.
func isSummary(r *modeltest.Request) bool {
	return strings.Contains(r.Prompt(), "You now write the summary")
}

// longTalk is one with a window of 12,000 tokens. script does not get the requests of
// summaries, whose answer is "All is well.".
func longTalk(t *testing.T, api string, script func(r *modeltest.Request) *modeltest.Answer) *long {
	t.Helper()
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	l := &long{root: t.TempDir()}
	l.Server = &modeltest.Server{Script: func(r *modeltest.Request) *modeltest.Answer {
		if isSummary(r) {
			return &modeltest.Answer{Blocks: []model.Block{modeltest.Thinking("hm"), modeltest.Text("<analysis>long</analysis><summary>\nAll is well.\n</summary>")}, Usage: model.Usage{Input: 700, Output: 7}}
		}
		return script(r)
	}}
	client := l.Server.Anthropic
	if api == "openai" {
		client = l.Server.OpenAI
	}
	l.o = &sdk.Options{
		Backend: embedded.New(embedded.Config{Model: client(model.Config{}), Name: "claude-sonnet-4-5", Dir: l.root, Window: 12_000, MaxTokens: 1000}), Cwd: dir,
		PermissionMode: sdk.ModeBypassPermissions, AllowDangerouslySkipPermissions: true,
	}
	return l
}

// ask makes a turn, and keeps what the session says of compactions.
func (l *long) ask(t *testing.T, c *sdk.Client, prompt string) (r *sdk.ResultMessage) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	turn, err := c.Send(ctx, sdk.UserText(prompt))
	require.NoError(t, err)
	for m, err := range turn.Messages(ctx) {
		require.NoError(t, err)
		l.saw(m)
		if end, ok := m.(*sdk.ResultMessage); ok {
			r = end
		}
	}
	require.NotNil(t, r)
	return r
}

func (l *long) saw(m sdk.Message) {
	switch m := m.(type) {
	case *protocol.CompactBoundaryMessage:
		l.frames = append(l.frames, "boundary")
	case *protocol.StatusMessage:
		switch {
		case m.CompactResult != "":
			l.frames = append(l.frames, strings.TrimSpace(m.CompactResult+" "+m.CompactError))
		case m.Status == "compacting":
			l.frames = append(l.frames, m.Status)
		}
	}
}

// says checks what the session has said of compactions.
func (l *long) says(t *testing.T, want ...string) {
	t.Helper()
	assert.Equal(t, want, l.frames)
}

// sent are the messages of each request that is not one of a summary.
func (l *long) sent() (all []string) {
	for _, r := range l.Requests() {
		if !isSummary(r) {
			all = append(all, messagesIn(r))
		}
	}
	return all
}

func messagesIn(r *modeltest.Request) string {
	_, list, _ := strings.Cut(strings.ReplaceAll(string(r.Body), `,"cache_control":{"type":"ephemeral"}`, ""), `"messages":[`)
	return strings.TrimSuffix(list, "]}")
}

func (l *long) file(t *testing.T, id string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(l.root, "projects", transcript.FolderName(transcript.Claude, l.o.Cwd), id+".jsonl"))
	require.NoError(t, err)
	return content
}

// bashes is an answer with a call, after which the conversation has so many tokens.
func bashes(command string, tokens int) *modeltest.Answer {
	return &modeltest.Answer{Blocks: []model.Block{modeltest.Call("Bash", map[string]any{"command": command})}, Usage: model.Usage{Input: tokens, Output: 5}}
}

func tells(text string, tokens int) *modeltest.Answer {
	return &modeltest.Answer{Blocks: []model.Block{modeltest.Text(text)}, Usage: model.Usage{Input: tokens, Output: 5}}
}

// Near the end of the window, a summary takes the place of the conversation, and the newest
// answer with its results stays. From there on each request begins with the one before, in the
// same process, after a resume, and in a fork; the log has all.
func TestACompactionAtTheWindow(t *testing.T) {
	t.Parallel()
	for _, api := range []string{"anthropic", "openai"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			l := longTalk(t, api, func(r *modeltest.Request) *modeltest.Answer {
				switch r.N {
				case 1:
					return &modeltest.Answer{Blocks: []model.Block{
						modeltest.Call("TaskCreate", map[string]any{"subject": "find the fault", "description": "d"}),
						modeltest.Call("Read", map[string]any{"file_path": "a.txt"}), modeltest.Call("Write", map[string]any{"file_path": "made.txt", "content": "new"}),
					}, Usage: model.Usage{Input: 500, Output: 5}}
				case 2:
					return bashes("echo second", 11_000)
				case 4: // 3 is that of the summary
					return bashes("echo third", 600)
				}
				return tells(fmt.Sprint("done ", r.N), 700)
			})
			require.NoError(t, os.WriteFile(filepath.Join(l.o.Cwd, "a.txt"), []byte("content of a\n"), 0o600))
			c := open(t, l.o)
			r := l.ask(t, c, "do the task T-17")
			assert.Equal(t, "done 5", r.Result)
			assert.Equal(t, 700+500+11_000+600+700, int(r.ModelUsage["claude-sonnet-4-5"].InputTokens), "the summary counts")
			l.says(t, "compacting", "success", "boundary")

			all := l.Requests()
			require.Len(t, all, 5)
			require.True(t, isSummary(all[2]))
			assert.True(t, strings.HasPrefix(messagesIn(all[2]), messagesIn(all[1])), "the summary is of what the model had read")
			assert.Equal(t, all[1].Tools, all[2].Tools)
			assert.NotContains(t, string(all[2].Body), "second\"")
			first := all[3].Messages[0].Blocks[0].Text
			for _, has := range []string{"\n\nAll is well.\n\n", "## What the user has said last, word for word\ndo the task T-17", "#1 [pending] find the fault", filepath.Join(l.o.Cwd, "made.txt"), filepath.Join(l.o.Cwd, "a.txt"), c.SessionID() + ".jsonl"} {
				assert.Contains(t, first, has)
			}
			assert.NotContains(t, first, "analysis")
			assert.NotContains(t, messagesIn(all[3]), "content of a")
			require.Len(t, all[3].Results(), 1)
			assert.Contains(t, all[3].Results()[0].Text, "second")

			l.ask(t, c, "more")
			require.NoError(t, c.Close(t.Context()))
			for _, fork := range []bool{true, false} {
				next := *l.o
				next.Resume, next.ForkSession = c.SessionID(), fork
				d := open(t, &next)
				l.ask(t, d, "go on")
				require.NoError(t, d.Close(t.Context()))
			}
			sent := l.sent()[2:]
			require.Len(t, sent, 5)
			for i := 1; i < 4; i++ {
				assert.True(t, strings.HasPrefix(sent[i], sent[i-1]), "%d\n%s\n%s", i, sent[i-1], sent[i])
			}
			assert.Equal(t, sent[3], sent[4], "the fork and the resumed session ask the same")

			log := l.file(t, c.SessionID())
			assert.Contains(t, string(log), "content of a", "the log keeps all")
			sessions := transcript.Sessions{Vendor: transcript.Claude, Root: l.root}
			list, err := sessions.List(t.Context(), transcript.ListOptions{})
			require.NoError(t, err)
			require.Len(t, list, 2)
			assert.Contains(t, list[1].FirstPrompt, "do the task T-17")
		})
	}
}

// Old results become stubs first, and a stub names the line that has the result, also if the
// session is resumed. The model may read that file without a question.
func TestOldResultsAreLeftOut(t *testing.T) {
	t.Parallel()
	for _, api := range []string{"anthropic", "openai"} {
		t.Run(api, func(t *testing.T) {
			t.Parallel()
			var l *long
			l = longTalk(t, api, func(r *modeltest.Request) *modeltest.Answer {
				switch {
				case r.N <= 8:
					return bashes(fmt.Sprintf("printf '%%05000d' %d", r.N), 1000+r.N)
				case r.N == 9:
					return bashes("echo nine", 11_000)
				case r.N == 10:
					name := filepath.Join(l.root, "projects", transcript.FolderName(transcript.Claude, l.o.Cwd), r.User+".jsonl")
					return &modeltest.Answer{Blocks: []model.Block{modeltest.Call("Grep", map[string]any{"pattern": "uuid", "path": name, "output_mode": "count"}), modeltest.Call("Read", map[string]any{"file_path": name, "limit": 1})}}
				}
				return tells("done", 900)
			})
			l.o.PermissionMode, l.o.AllowDangerouslySkipPermissions = sdk.ModeDefault, false
			l.o.AllowedTools = []string{"Bash(printf:*)"}
			c := open(t, l.o)
			assert.Equal(t, "done", l.ask(t, c, "go").Result)
			require.NoError(t, c.Close(t.Context()))
			all := l.Requests()
			require.Len(t, all, 11, "no summary was needed")
			assert.Empty(t, l.frames)
			log := l.file(t, c.SessionID())
			stubs := 0
			for _, m := range all[9].Messages {
				for _, b := range m.Blocks {
					_, line, is := strings.Cut(b.Text, "It is in the line with the uuid ")
					if b.Kind != model.ToolResult || !is {
						continue
					}
					stubs++
					line = line[:strings.Index(line, " ")]
					found := false
					for text := range bytes.Lines(log) {
						if bytes.Contains(text, []byte(`"uuid":"`+line+`"`)) {
							found = bytes.Contains(text, []byte(b.ID)) && bytes.Contains(text, []byte("00000"))
						}
					}
					assert.True(t, found, "the line %s has the result of %s", line, b.ID)
				}
			}
			assert.Equal(t, 5, stubs)
			assert.Contains(t, messagesIn(all[9]), "00008", "the newest stay")
			for _, b := range all[10].Results() {
				assert.False(t, b.IsError, b.Text)
			}
			next := *l.o
			next.Resume = c.SessionID()
			l.ask(t, open(t, &next), "and now?")
			sent := l.sent()
			assert.True(t, strings.HasPrefix(sent[10], sent[9]))
			assert.True(t, strings.HasPrefix(sent[11], sent[10]))
		})
	}
}

// A request that is too long is made again after a compaction, and ends the turn if there is
// nothing to compact.
func TestARequestThatIsTooLong(t *testing.T) {
	t.Parallel()
	tooLong := &modeltest.Fault{Status: 400, Type: "invalid_request_error", Message: "prompt is too long: 205000 tokens > 200000 maximum"}
	for name, c := range map[string]struct {
		too    map[int]bool // requests
		asks   int
		result string
		frames []string
	}{
		"a compaction":                   {map[int]bool{4: true}, 6, "done", []string{"compacting", "success", "boundary"}},
		"the summary is too long":        {map[int]bool{4: true, 5: true}, 7, "done", []string{"compacting", "success", "boundary"}},
		"the summary is always too long": {map[int]bool{4: true, 5: true, 6: true}, 6, "Prompt is too long · the request is ~205000 tokens (limit 200000)", []string{"compacting", "failed model: too_long: 400 " + tooLong.Message}},
		"it does not help":               {map[int]bool{4: true, 6: true}, 6, "Prompt is too long · the request is ~205000 tokens (limit 200000)", []string{"compacting", "success", "boundary"}},
		"one question":                   {map[int]bool{1: true}, 1, "Prompt is too long · the request is ~205000 tokens (limit 200000)", nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := longTalk(t, "anthropic", func(r *modeltest.Request) *modeltest.Answer {
				if r.N < 4 {
					return bashes(fmt.Sprint("echo call ", r.N), 100)
				}
				return tells("done", 100)
			})
			l.Fault = func(r *modeltest.Request) *modeltest.Fault {
				if c.too[r.N] {
					return tooLong
				}
				return nil
			}
			r := l.ask(t, open(t, l.o), "go")
			assert.Equal(t, c.result, r.Result)
			assert.Equal(t, c.result != "done", r.IsError)
			assert.Len(t, l.Requests(), c.asks)
			l.says(t, c.frames...)
			if name == "the summary is too long" {
				half := l.Requests()[5]
				assert.Equal(t, "[earlier conversation truncated for compaction retry]", half.Messages[0].Blocks[0].Text)
				assert.NotContains(t, messagesIn(half), "call 1")
				assert.Contains(t, messagesIn(half), "call 2")
			}
		})
	}
}

// The command /compact, its hooks, and what happens when it fails.
func TestTheCommandCompact(t *testing.T) {
	t.Parallel()
	l := longTalk(t, "anthropic", func(r *modeltest.Request) *modeltest.Answer { return tells(fmt.Sprint("answer ", r.N), 100) })
	fails := false
	l.Fault = func(r *modeltest.Request) *modeltest.Fault {
		if fails && isSummary(r) {
			return &modeltest.Fault{Status: 403, Type: "permission_error", Message: "no"}
		}
		return nil
	}
	var mu sync.Mutex
	var called []string
	blocks := false
	note := func(text string) {
		mu.Lock()
		defer mu.Unlock()
		called = append(called, text)
	}
	l.o.Hooks = []sdk.Hook{
		sdk.OnPreCompact(func(_ context.Context, in *protocol.PreCompactInput) (sdk.BlockOutput, error) {
			note("before " + in.Trigger + " " + in.CustomInstructions)
			if blocks {
				return sdk.BlockOutput{Decision: protocol.DecisionBlock, Reason: "not now"}, nil
			}
			return sdk.BlockOutput{}, nil
		}),
		sdk.OnPostCompact(func(_ context.Context, in *protocol.PostCompactInput) (sdk.HookOutput, error) {
			note("after " + in.Trigger + " " + fmt.Sprint(strings.Contains(in.CompactSummary, "All is well.")))
			return sdk.HookOutput{}, nil
		}),
	}
	c := open(t, l.o)
	assert.Equal(t, "Not enough messages to compact.", l.ask(t, c, "/compact").Result)
	l.ask(t, c, "one")
	before := l.sent()[0]
	blocks = true
	assert.Contains(t, l.ask(t, c, "/compact").Result, "not now")
	blocks, fails = false, true
	failed := l.ask(t, c, "/compact")
	assert.True(t, failed.IsError)
	assert.Contains(t, failed.Result, "403")
	fails = false
	l.ask(t, c, "two")
	sent := l.sent()
	assert.True(t, strings.HasPrefix(sent[1], before), "nothing has changed")

	r := l.ask(t, c, "/compact keep the numbers")
	assert.False(t, r.IsError)
	assert.Empty(t, r.Result)
	assert.Equal(t, 0, r.NumTurns)
	assert.Equal(t, []string{"before manual ", "before manual ", "before manual ", "before manual keep the numbers", "after manual true"}, called)
	all := l.Requests()
	assert.Contains(t, all[len(all)-1].Prompt(), "The user adds: keep the numbers")
	l.says(t, "compacting", "failed too_few_groups", "compacting", "failed not now", "compacting", "failed model: auth: 403 no", "compacting", "success", "boundary")

	l.ask(t, c, "three")
	require.NoError(t, c.Close(t.Context()))
	next := *l.o
	next.Resume = c.SessionID()
	l.ask(t, open(t, &next), "four")
	sent = l.sent()
	assert.True(t, strings.HasPrefix(sent[3], sent[2]))
	assert.NotContains(t, sent[2], "answer 1")
	for _, has := range []string{"All is well.", "<command-args>keep the numbers</command-args>", `<local-command-stdout>Compacted PreCompact [callback] completed successfully\nPostCompact [callback] completed successfully</local-command-stdout>`, "three"} {
		assert.Contains(t, sent[2], has)
	}
	assert.NotContains(t, sent[3], "No response requested")
}

// An interrupt within the summary leaves the conversation as it was.
func TestAnInterruptedCompaction(t *testing.T) {
	t.Parallel()
	l := longTalk(t, "anthropic", func(r *modeltest.Request) *modeltest.Answer {
		if r.N == 1 {
			return bashes("echo first", 100)
		}
		return tells("done", 11_000)
	})
	asked := make(chan struct{}, 8)
	hangs := true
	l.Fault = func(r *modeltest.Request) *modeltest.Fault {
		if isSummary(r) && hangs {
			hangs = false
			asked <- struct{}{}
			return &modeltest.Fault{SilentAt: 1}
		}
		return nil
	}
	c := open(t, l.o)
	l.ask(t, c, "one")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	turn, err := c.Send(ctx, sdk.UserText("two"))
	require.NoError(t, err)
	<-asked
	_, err = c.Interrupt(ctx)
	require.NoError(t, err)
	for m, err := range turn.Messages(ctx) {
		require.NoError(t, err)
		l.saw(m)
		if r, ok := m.(*sdk.ResultMessage); ok {
			assert.True(t, r.IsError)
		}
	}
	l.says(t, "compacting", "failed interrupted")
	assert.NotContains(t, string(l.file(t, c.SessionID())), "compact_boundary")
	assert.Equal(t, "done", l.ask(t, c, "three").Result)
	sent := l.sent()
	assert.Contains(t, sent[2], "All is well.")
	assert.Contains(t, sent[2], "three")
}

// A death between the two lines of a compaction leaves the conversation as it was.
func TestADeathWithinACompaction(t *testing.T) {
	t.Parallel()
	l := longTalk(t, "anthropic", func(r *modeltest.Request) *modeltest.Answer {
		switch r.N {
		case 1:
			return tells("answer 1", 11_000)
		case 3:
			return tells("answer 3", 100)
		}
		return tells("later", 100)
	})
	c := open(t, l.o)
	l.ask(t, c, "one")
	l.ask(t, c, "two")
	require.NoError(t, c.Close(t.Context()))
	name := filepath.Join(l.root, "projects", transcript.FolderName(transcript.Claude, l.o.Cwd), c.SessionID()+".jsonl")
	log := l.file(t, c.SessionID())
	at := bytes.Index(log, []byte(`"isCompactSummary":true`))
	require.Positive(t, at)
	at = bytes.LastIndexByte(log[:at], '\n') + 1
	for i, kept := range [][]byte{log[:at], log[:at+20]} {
		require.NoError(t, os.WriteFile(name, kept, 0o600))
		next := *l.o
		next.Resume, next.Env = c.SessionID(), map[string]string{"DISABLE_AUTO_COMPACT": "1"}
		d := open(t, &next)
		l.ask(t, d, "three")
		require.NoError(t, d.Close(t.Context()))
		sent := l.sent()
		last := sent[len(sent)-1]
		assert.True(t, strings.HasPrefix(last, sent[0]), "%d: %s", i, last)
		for _, has := range []string{"answer 1", "two", "three"} {
			assert.Contains(t, last, has)
		}
	}
}

// A conversation that a compaction does not make shorter is not compacted again and again.
func TestCompactionsThatDoNotHelp(t *testing.T) {
	t.Parallel()
	l := longTalk(t, "anthropic", func(r *modeltest.Request) *modeltest.Answer {
		if r.N > 30 {
			return tells("done", 11_000)
		}
		return bashes(fmt.Sprint("echo ", r.N), 11_000)
	})
	l.o.Backend = embedded.New(embedded.Config{Model: l.Server.Anthropic(model.Config{}), Name: "claude-sonnet-4-5", Dir: l.root, Window: 1000, MaxTokens: 100})
	assert.Equal(t, "done", l.ask(t, open(t, l.o), "go").Result)
	assert.LessOrEqual(t, strings.Count(strings.Join(l.frames, " "), "compacting"), 4)
}

// Variables of the environment keep the agent from compacting.
func TestCompactionIsOff(t *testing.T) {
	t.Parallel()
	for name, frames := range map[string][]string{"DISABLE_COMPACT": nil, "DISABLE_AUTO_COMPACT": {"compacting", "success", "boundary"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := longTalk(t, "anthropic", func(r *modeltest.Request) *modeltest.Answer {
				if r.N < 4 {
					return bashes(fmt.Sprint("echo call ", r.N), 11_900)
				}
				return tells("done", 100)
			})
			l.Fault = func(r *modeltest.Request) *modeltest.Fault {
				if r.N == 4 {
					return &modeltest.Fault{Status: 413, Type: "request_too_large", Message: "too large"}
				}
				return nil
			}
			l.o.Env = map[string]string{name: "1"}
			r := l.ask(t, open(t, l.o), "go")
			assert.Equal(t, frames == nil, r.IsError, r.Result)
			l.says(t, frames...)
		})
	}
}

// A /compact that comes while a turn runs waits for the turn's end: it is nothing for the model.
func TestCompactWithinATurn(t *testing.T) {
	t.Parallel()
	l := longTalk(t, "anthropic", func(r *modeltest.Request) *modeltest.Answer {
		if r.N == 1 {
			return bashes("touch made", 100)
		}
		return tells("done", 100)
	})
	l.o.PermissionMode, l.o.AllowDangerouslySkipPermissions = sdk.ModeDefault, false
	type turn interface {
		Result(ctx context.Context) (*sdk.ResultMessage, error)
	}
	queued := make(chan turn, 1)
	var c *sdk.Client
	l.o.CanUseTool = func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		second, err := c.Send(ctx, sdk.UserText("/compact"))
		queued <- second
		return sdk.Allow(), err
	}
	c = open(t, l.o)
	assert.Equal(t, "done", l.ask(t, c, "go").Result)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := (<-queued).Result(ctx)
	require.NoError(t, err)
	assert.Empty(t, r.Result)
	assert.Equal(t, 0, r.NumTurns)
	all := l.Requests()
	require.Len(t, all, 3)
	assert.NotContains(t, string(all[1].Body), "/compact")
	assert.True(t, isSummary(all[2]))
}

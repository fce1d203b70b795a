package embedded_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// team is a model whose answers depend on the conversation: each begins with a prompt, and
// takes the answers for that, one after the other.
type team struct {
	server modeltest.Server
	model  model.Model

	mu    sync.Mutex
	lines [][]byte // that the host has read
}

// promptOf is the prompt that a conversation begins with.
func promptOf(r *modeltest.Request) string {
	for _, b := range slices.Backward(r.Messages[0].Blocks) {
		if b.Kind == model.Text && !strings.HasPrefix(b.Text, "<system-reminder>") {
			return b.Text
		}
	}
	return ""
}

func teamed(t *testing.T, answers map[string][]*modeltest.Answer) (*team, *sdk.Options) {
	t.Helper()
	m := &team{}
	m.server.Script = func(r *modeltest.Request) *modeltest.Answer {
		n := 0
		for _, msg := range r.Messages {
			if msg.Role == model.Assistant {
				n++
			}
		}
		list := answers[promptOf(r)]
		if n >= len(list) {
			return modeltest.Say(modeltest.Text("nothing more"))
		}
		return list[n]
	}
	m.model = m.server.Anthropic(model.Config{})
	dir, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	o := &sdk.Options{
		Backend: embedded.New(embedded.Config{Model: m.model, Name: "claude-sonnet-4-5", Dir: t.TempDir()}), Cwd: dir,
		PermissionMode: sdk.ModeBypassPermissions, AllowDangerouslySkipPermissions: true,
		OnMessage: m.read,
	}
	return m, o
}

func (m *team) read(msg sdk.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lines = append(m.lines, msg.Raw())
}

// open opens a session whose messages are kept.
func (m *team) open(t *testing.T, o *sdk.Options) *sdk.Client {
	t.Helper()
	c := open(t, o)
	var done sync.WaitGroup
	done.Go(func() {
		for msg, err := range c.Messages(context.WithoutCancel(t.Context())) {
			if err != nil {
				return // it says that the session has ended
			}
			m.read(msg)
		}
	})
	t.Cleanup(func() {
		_ = c.Close(context.WithoutCancel(t.Context())) // it may be closed
		done.Wait()
		for _, l := range m.frames() {
			if t.Failed() {
				t.Log(l)
			}
		}
	})
	return c
}

// ask sends a prompt, and waits for its result.
func (m *team) ask(t *testing.T, c *sdk.Client, prompt string) *sdk.ResultMessage {
	t.Helper()
	before := len(m.frames(`"type":"result"`))
	_, err := c.Send(t.Context(), sdk.UserText(prompt))
	require.NoError(t, err)
	return m.result(t, before)
}

// result waits for the result after so many others.
func (m *team) result(t *testing.T, before int) *sdk.ResultMessage {
	t.Helper()
	require.Eventually(t, func() bool { return len(m.frames(`"type":"result"`)) > before }, time.Minute, time.Millisecond)
	r := &protocol.ResultMessage{}
	require.NoError(t, json.Unmarshal([]byte(m.frames(`"type":"result"`)[before]), r))
	return r
}

// frames are the messages that the host has read, with all that say these words.
func (m *team) frames(words ...string) (all []string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range m.lines {
		if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(string(l), w) }) {
			all = append(all, string(l))
		}
	}
	return all
}

// asked are the requests of the conversation that begins with the prompt.
func (m *team) asked(prompt string) (all []*modeltest.Request) {
	for _, r := range m.server.Requests() {
		if promptOf(r) == prompt {
			all = append(all, r)
		}
	}
	return all
}

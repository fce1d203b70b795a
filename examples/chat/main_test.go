package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/examples/internal/choice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// talk plays a whole conversation.
func talk(t *testing.T, in string) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, run(context.Background(), &choice.Agent{Dir: t.TempDir()}, strings.NewReader(in), &out, nil))
	return out.String()
}

func TestConversation(t *testing.T) {
	t.Parallel()
	out := talk(t, "Run the tests.\ny\n\n/model other\nWhat is in this directory?\ny\n")
	assert.Contains(t, out, "> I am Troupe's demonstration")
	assert.Contains(t, out, `Allow Bash {"command":"/bin/sh check.sh","description":"Check the project"}? (y or n) `)
	assert.Contains(t, out, "FAIL  1 and not 2: hello world")
	assert.Contains(t, out, "- The check fails: 2 of 2 cases. Say \"fix it\".\n> ")
	assert.Contains(t, out, "- The directory has 4 files: README.md, cases.txt, check.sh, words.sh.\n> \n")
}

func TestNo(t *testing.T) {
	t.Parallel()
	for _, answer := range []string{"no\n", ""} { // "" is the end of the input
		assert.Contains(t, talk(t, "Run the tests.\n"+answer), "[The user said no.]\n")
	}
}

func TestExit(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "> ", talk(t, "/exit\n"))
	assert.Equal(t, "> \n", talk(t, ""))
}

func TestUnknownAgent(t *testing.T) {
	t.Parallel()
	assert.ErrorContains(t, run(context.Background(), &choice.Agent{Name: "nobody"}, strings.NewReader(""), io.Discard, nil), `"nobody" is not known`)
}

// screen calls back when text stands on it.
type screen struct {
	mu sync.Mutex
	b  bytes.Buffer
	on map[string]func()
}

func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.b.Write(p)
	for text, do := range s.on {
		if strings.Contains(s.b.String(), text) {
			delete(s.on, text)
			go do()
		}
	}
	return n, err
}

func TestInterruptKeepsTheConversation(t *testing.T) {
	t.Parallel()
	interrupts := make(chan os.Signal, 1)
	in, typed := io.Pipe()
	out := &screen{on: map[string]func(){
		"? (y or n) ": func() { interrupts <- os.Interrupt },
		"[the turn ended: ": func() {
			_, _ = io.WriteString(typed, "Why?\n")
		},
		"You interrupted me, so I stopped. The session continues.\n> ": func() { interrupts <- os.Interrupt }, // at the prompt it is the end
	}}
	go func() { _, _ = io.WriteString(typed, "Run the tests.\n") }()
	done := make(chan error, 1)
	go func() { done <- run(context.Background(), &choice.Agent{Dir: t.TempDir()}, in, out, interrupts) }()
	select {
	case err := <-done:
		require.NoError(t, err)
	case <-time.After(2 * time.Minute):
		out.mu.Lock()
		defer out.mu.Unlock()
		require.Fail(t, "the chat hangs", out.b.String())
	}
	require.NoError(t, typed.Close())
	assert.NotContains(t, out.b.String(), "FAIL")
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/command"
)

// A host answers as it finds out, and ends an answer that is read no more.
func TestQuestionsToAHost(t *testing.T) {
	t.Parallel()
	first, address, err := machines{}.Listen(t.Context(), command.Servers{URLs: "127.0.0.1:0"}, t.TempDir())
	require.NoError(t, err)
	t.Cleanup(first.Close)
	other, err := machines{}.Connect(t.Context(), command.Servers{URLs: address})
	require.NoError(t, err)
	t.Cleanup(other.Close)
	read := func(question string) (string, error) {
		said, err := other.Ask(t.Context(), "the.host", []byte(question))
		require.NoError(t, err)
		defer func() { _ = said.Close() }()
		all, err := io.ReadAll(said)
		return string(all), err
	}
	_, err = read("early")
	require.ErrorIs(t, err, command.ErrNoHost)

	serving, stop := context.WithCancel(t.Context())
	ended, left := make(chan error, 1), make(chan struct{})
	go func() {
		ended <- first.Serve(serving, "the.host", func(ctx context.Context, question []byte, to io.Writer) error {
			switch string(question) {
			case "long":
				_, err := io.WriteString(to, strings.Repeat("0123456789", 100_000))
				return err
			case "wrong":
				_, _ = io.WriteString(to, "part")
				return errors.New("it is so")
			}
			_, _ = io.WriteString(to, "hello")
			<-ctx.Done()
			close(left)
			return ctx.Err()
		})
	}()
	require.Eventually(t, func() bool { said, err := read("long"); return err == nil && len(said) == 1_000_000 }, time.Minute, 20*time.Millisecond)
	said, err := read("wrong")
	require.ErrorContains(t, err, "worker the.host: it is so")
	assert.Equal(t, "part", said)

	nc := other.(*directory).nc
	elsewhere, err := nc.SubscribeSync("troupe.elsewhere")
	require.NoError(t, err)
	require.NoError(t, nc.PublishRequest(asked("the.host"), "troupe.elsewhere", []byte("long")))
	_, err = read("long") // it came after that
	require.NoError(t, err)
	_, err = elsewhere.NextMsg(time.Millisecond)
	require.ErrorIs(t, err, nats.ErrTimeout, "a host answers nobody but who has asked")

	endless, err := other.Ask(t.Context(), "the.host", []byte("endless"))
	require.NoError(t, err)
	first5 := make([]byte, 5)
	_, err = io.ReadFull(endless, first5)
	require.NoError(t, err)
	assert.Equal(t, "hello", string(first5))
	stop()
	<-left
	require.NoError(t, <-ended)
	_, err = io.ReadAll(endless)
	require.ErrorContains(t, err, "context canceled", "the host has ended")
}

// troupe ctl tail prints the text of an agent on another machine, while it runs and when it is over.
func TestTail(t *testing.T) {
	t.Parallel()
	_, url := first(t, "-j", "1")
	dir := t.TempDir()
	file, script := filepath.Join(dir, "tasks.jsonl"), filepath.Join(dir, "script.yaml")
	require.NoError(t, os.WriteFile(file, []byte("{\"id\":\"a\",\"prompt\":\"one\"}\n"), 0o600))
	require.NoError(t, os.WriteFile(script, fmt.Appendf(nil, "transcript: true\ndefault:\n  - {text: I begin}\n  - {delay: 2s}\n  - {text: I end}\n"), 0o600))
	batch := start(t, "batch", file, "--nats", url, "--agent", "scripted:"+script, "--id", "j", "--out", filepath.Join(dir, "out"))
	batch.await(t, "job j: the servers have it")
	tail := func() *program { return start(t, "ctl", "--nats", url, "j", "tail", "a") }
	live := tail()
	for live.exit(t) != 0 { // it has not begun
		assert.NotContains(t, live.text(), "I begin")
		live = tail()
	}
	assert.Regexp(t, `(?s)I begin.*I end`, live.text())
	assert.Zero(t, batch.exit(t))
	over := tail()
	assert.Zero(t, over.exit(t))
	assert.Regexp(t, `(?s)I begin.*I end`, over.text())
	gone := start(t, "ctl", "--nats", url, "j", "tail", "nothing")
	assert.Equal(t, 1, gone.exit(t))
	assert.Contains(t, gone.text(), "no task")
}

package batch_test

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/durable"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/batch"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/session"
)

var errDead = errors.New("the program is dead")

// mortal is a program that dies at one of its steps: before a request, before the answer to it, and
// before and after a write of the record. From then on it does nothing.
type mortal struct {
	session.Files
	server *modeltest.Server
	die    context.CancelFunc

	mu   sync.Mutex
	left int
	dead bool
}

func (m *mortal) step() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.left--; m.left == 0 {
		m.dead = true
		m.die()
	}
	if m.dead {
		return errDead
	}
	return nil
}

func (m *mortal) RoundTrip(in *http.Request) (*http.Response, error) {
	if err := m.step(); err != nil {
		return nil, err
	}
	resp, err := m.server.RoundTrip(in)
	if err != nil {
		return nil, err
	}
	if err := m.step(); err != nil {
		return nil, err
	}
	return resp, nil
}

func (m *mortal) Append(name string) (session.FileWriter, error) {
	f, err := m.Files.Append(name)
	if err != nil {
		return nil, err
	}
	return &mortalFile{f, m}, nil
}

type mortalFile struct {
	session.FileWriter
	m *mortal
}

func (f *mortalFile) Write(b []byte) (int, error) {
	if err := f.m.step(); err != nil {
		return 0, err
	}
	n, err := f.FileWriter.Write(b)
	if err == nil {
		err = f.m.step()
	}
	return n, err
}

// The record survives a program, which is what these tests are about, and not the machine.
func (f *mortalFile) Sync() error { return nil }

func (m *mortal) SyncDir(string) error { return nil }

// A program that dies at any of its steps, twice, and starts again: each request is worked on once,
// and all are answered.
func TestProgramsThatDie(t *testing.T) {
	t.Parallel()
	for name, openai := range map[string]bool{"anthropic": false, "openai": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			deaths := 0
			for first := 1; ; first++ {
				died := lives(t, openai, first, first%2*(1+first*5%11)) // every second dies twice
				if !died {
					break
				}
				deaths = first
			}
			assert.Greater(t, deaths, 10, "steps at which the program died")
		})
	}
}

// lives plays programs that die at these steps, and one that does not. It reports whether the first has died.
func lives(t *testing.T, openai bool, steps ...int) (died bool) {
	synctest.Test(t, func(t *testing.T) {
		s, dir := &modeltest.Server{Script: echo, BatchTakes: 2 * time.Hour}, t.TempDir()
		for i, step := range append(steps, 0) {
			ctx, die := context.WithCancel(t.Context())
			m := &mortal{Files: durable.Files(nil), server: s, die: die, left: step}
			cfg := batch.Config{Model: s.Anthropic(model.Config{Client: &http.Client{Transport: m}}), Dir: dir, Requests: 2, Files: m}
			if openai {
				cfg.Model = s.OpenAI(model.Config{Client: &http.Client{Transport: m}})
			}
			c := batch.New(cfg)
			got := askAll(ctx, c, prompts(3)...)
			if ctx.Err() == nil {
				got = append(got, ask(ctx, c, "a turn later"))
			}
			if i == 0 {
				died = m.dead
			}
			if i == len(steps) {
				answers(t, got, append(prompts(3), "a turn later")...)
			}
			synctest.Wait()
			die()
		}
		times := worked(s)
		require.Len(t, times, 4)
		for body, n := range times {
			require.Equal(t, 1, n, "died at %v: %s", steps, body)
		}
	})
	return died
}

package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript/store"
)

// shelf is a store whose appends do what a test says.
type shelf struct {
	store.Memory
	append func(ctx context.Context, n int) error // nil: no hook

	mu sync.Mutex
	n  int
}

func (s *shelf) Append(ctx context.Context, key session.StoreKey, entries []json.RawMessage) error {
	s.mu.Lock()
	s.n++
	n := s.n
	s.mu.Unlock()
	if s.append != nil {
		if err := s.append(ctx, n); err != nil {
			return err
		}
	}
	return s.Memory.Append(ctx, key, entries)
}

// mirrored is a session with a store and its events.
type mirrored struct {
	*testing.T
	s  *runtime.Session
	mu sync.Mutex

	failed   []*session.MirrorFailed
	mirrored int
}

func openMirrored(t *testing.T, s session.Store, o session.StoreOptions, script *scripted.Script) *mirrored {
	t.Helper()
	m := &mirrored{T: t}
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rt.Shutdown(context.Background())) })
	m.s, err = rt.Open(t.Context(), runtime.Spec{
		Dialect: claude.Dialect{}, ParentEnv: []string{"HOME=/home/x"},
		Program: scripted.New(scripted.WithScript(script), scripted.WithHistory(&scripted.MemoryHistory{})),
		Options: session.Options{
			Cwd: "/work", SessionStore: s, SessionStoreOptions: o, MaxRestarts: 1,
			OnEvent: func(r session.EventRecord) {
				m.mu.Lock()
				defer m.mu.Unlock()
				switch e := r.Event.(type) {
				case *session.MirrorFailed:
					m.failed = append(m.failed, e)
				case *session.Mirrored:
					m.mirrored += e.Entries
				}
			},
		},
	})
	require.NoError(t, err)
	return m
}

func (m *mirrored) say(text string) {
	m.Helper()
	turn, err := m.s.Send(m.Context(), &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent(text)}})
	require.NoError(m, err)
	_, err = turn.Result(m.Context())
	require.NoError(m, err)
}

// failures waits for n of them: events come after what they are about.
func (m *mirrored) failures(n int) (all []string) {
	m.Helper()
	require.Eventually(m, func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.failed) >= n
	}, patience, time.Millisecond)
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range m.failed {
		all = append(all, e.String())
	}
	return all
}

func (m *mirrored) stored(s session.Store) (n int) {
	m.Helper()
	for _, err := range s.Load(m.Context(), session.StoreKey{Project: "-work", Session: m.s.AgentSessionID()}) {
		require.NoError(m, err)
		n++
	}
	return n
}

func talk() *scripted.Script {
	return &scripted.Script{Default: scripted.Steps{scripted.Text("a"), scripted.Text("b"), scripted.Text("c")}}
}

// The store has all of the session, however often entries are appended.
func TestASessionIsMirrored(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]session.StoreOptions{
		"batched": {}, "eager": {Flush: session.StoreEager}, "in small batches": {Entries: 1}, "in batches of few bytes": {Bytes: 10},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &shelf{}
			m := openMirrored(t, s, o, talk())
			m.say("one")
			require.NoError(t, m.s.Mirrored(t.Context()))
			require.Equal(t, 4, m.stored(s))
			m.say("two")
			require.NoError(t, m.s.Close(t.Context()))
			require.Equal(t, 8, m.stored(s))
			require.NoError(t, m.s.Mirrored(t.Context()), "it has ended")
			require.Empty(t, m.failures(0))
			require.Eventually(t, func() bool {
				m.mu.Lock()
				defer m.mu.Unlock()
				return m.mirrored == 8
			}, patience, time.Millisecond)
		})
	}
}

// An append that fails is tried again; one that never ends is not waited for at the end.
func TestAppendsThatFail(t *testing.T) {
	t.Parallel()
	errNo := errors.New("no")
	t.Run("once", func(t *testing.T) {
		t.Parallel()
		s := &shelf{append: func(_ context.Context, n int) error {
			if n == 1 {
				return errNo
			}
			return nil
		}}
		m := openMirrored(t, s, session.StoreOptions{}, talk())
		m.say("one")
		require.NoError(t, m.s.Close(t.Context()))
		require.Equal(t, 4, m.stored(s))
		require.Empty(t, m.failures(0))
	})
	t.Run("always", func(t *testing.T) {
		t.Parallel()
		s := &shelf{append: func(context.Context, int) error { return errNo }}
		m := openMirrored(t, s, session.StoreOptions{Attempts: 4}, talk())
		m.say("one")
		require.NoError(t, m.s.Mirrored(t.Context()))
		require.Len(t, m.failures(1), 1)
		require.Contains(t, m.failures(1)[0], "4 entries of -work/")
		require.NoError(t, m.s.Close(t.Context()))
	})
	t.Run("by panic", func(t *testing.T) {
		t.Parallel()
		s := &shelf{append: func(context.Context, int) error { panic("oh") }}
		m := openMirrored(t, s, session.StoreOptions{Attempts: 1}, talk())
		m.say("one")
		require.NoError(t, m.s.Mirrored(t.Context()))
		require.Len(t, m.failures(1), 1)
		require.NoError(t, m.s.Close(t.Context()))
	})
	t.Run("too late", func(t *testing.T) {
		t.Parallel()
		s := &shelf{append: func(ctx context.Context, _ int) error { <-ctx.Done(); return ctx.Err() }}
		m := openMirrored(t, s, session.StoreOptions{Append: 20 * time.Millisecond}, talk())
		m.say("one")
		require.NoError(t, m.s.Mirrored(t.Context()))
		require.Len(t, m.failures(1), 1, "a timeout is not tried again")
		require.NoError(t, m.s.Close(t.Context()))
	})
}

// Entries without room are reported, and do not delay the session.
func TestTooMuchForTheStore(t *testing.T) {
	t.Parallel()
	release := make(chan struct{})
	s := &shelf{append: func(ctx context.Context, _ int) error {
		select {
		case <-release:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}}
	m := openMirrored(t, s, session.StoreOptions{Waiting: 100}, talk())
	m.say("one")
	close(release)
	require.NoError(t, m.s.Close(t.Context()))
	require.NotEmpty(t, m.failures(1))
	require.Contains(t, m.failures(1)[0], session.ErrMirrorFull.Error())
}

// Reports of files that belong to no session, and nonsense, are reported as failures.
func TestStrangeReports(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ report, want string }{
		"elsewhere":     {`{"type":"transcript_mirror","filePath":"/root/.claude/projects/-work/a.jsonl","entries":[{}]}`, "is outside of"},
		"no session":    {`{"type":"transcript_mirror","filePath":"/home/x/.claude/projects/a.jsonl","entries":[{}]}`, "is no file of a session"},
		"another type":  {`{"type":"transcript_mirror","filePath":"/home/x/.claude/projects/-work/a.txt","entries":[{}]}`, "is no file of a session"},
		"dots":          {`{"type":"transcript_mirror","filePath":"/home/x/.claude/projects/-work/../../../a.jsonl","entries":[{}]}`, "is outside of"},
		"of other form": {`{"type":"transcript_mirror","filePath":1}`, "read a report of the agent"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script := talk()
			script.Default = append(scripted.Steps{scripted.Raw(c.report)}, script.Default...)
			s := &shelf{}
			m := openMirrored(t, s, session.StoreOptions{}, script)
			m.say("one")
			require.NoError(t, m.s.Close(t.Context()))
			require.Len(t, m.failures(1), 1)
			require.Contains(t, strings.ReplaceAll(m.failures(1)[0], `\`, "/"), c.want)
			require.Equal(t, 4, m.stored(s), "the rest is there")
		})
	}
}

package simtests_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/simtests"
	"github.com/agent-troupe/troupe/transcript/store"
)

// moody is a store that fails, hangs, and says no after it has appended, as a network does.
type moody struct {
	*store.Memory
	w      *simtests.World
	stored *int // entries
}

func (m moody) Append(ctx context.Context, key session.StoreKey, entries []json.RawMessage) error {
	switch m.w.Rand().IntN(8) {
	case 0:
		return errors.New("refused")
	case 1:
		m.w.Sleep(time.Duration(m.w.Rand().IntN(3000)) * time.Millisecond)
	case 2:
		if err := m.Memory.Append(ctx, key, entries); err != nil {
			return err
		}
		return errors.New("the answer was lost")
	case 3:
		panic("a bug of the store")
	}
	err := m.Memory.Append(ctx, key, entries)
	if err == nil {
		*m.stored += len(entries)
	}
	return err
}

// mirrored is a session with a store, whose actors and agents die. An agent that dies may
// have stored lines that it could not report any more: the store gets them nevertheless.
// count: all histories are such.
func mirrored(w *simtests.World, count bool) {
	w.Faults(simtests.KillActor(0.01), simtests.KillInside(0.02), simtests.AgentCrash(0.01), simtests.SplitWrites(0.1), simtests.TranscriptUnsynced(0.5, time.Second))
	all := &store.Memory{}
	var failed, pending, said, stored int
	o := &sdk.Options{
		Cwd: "/work", MaxRestarts: 3, CanUseTool: allowAll, SessionStore: moody{all, w, &stored}, SessionStoreOptions: session.StoreOptions{Attempts: 12},
		OnEvent: func(r session.EventRecord) {
			switch e := r.Event.(type) {
			case *session.MirrorFailed:
				failed++
			case *session.MirrorPending:
				pending++
			case *session.Mirrored:
				if said += e.Entries; said > stored {
					w.Errorf("mirrored: %d entries are said to be in the store, and it has %d", said, stored)
				}
			}
		},
	}
	if w.Rand().IntN(2) == 0 {
		o.SessionStoreOptions.Flush = session.StoreEager
	}
	c, err := w.Dial(o, &scripted.Script{Turns: reachScript().Turns[:1], Default: scripted.Steps{scripted.Text("more")}})
	if err != nil {
		return
	}
	var prompts []string // of turns that have a result
	w.Go(func() {
		for _, text := range []string{"pay", "hello", "more"} {
			turn, err := c.Send(w.Context(), sdk.UserText(text))
			if err != nil {
				break
			}
			if _, err := turn.Result(w.Context()); err == nil {
				prompts = append(prompts, turn.UUID())
			}
		}
		if c.Mirrored(w.Context()) == nil && failed == 0 && !c.State().Terminal() {
			inStore(w, all, c.SessionID(), prompts)
		}
		_ = c.Close(w.Context())
	})
	w.Run()
	for name, reached := range map[string]bool{"a result came before the store": pending > 0, "everything was mirrored": said > 0, "it gave up": failed > 0} {
		if reached || count {
			w.Sometimes(name, reached)
		}
	}
	if failed > 0 {
		return // it was said what is missing
	}
	inStore(w, all, c.SessionID(), prompts)
}

// inStore holds the store against what the agent wrote: each line once, in order, and those
// of the turns that have a result.
func inStore(w *simtests.World, all *store.Memory, id string, prompts []string) {
	key := session.StoreKey{Session: id}
	known := make(map[string]bool)
	if rows, err := all.Sessions(context.Background(), "-work"); err == nil && len(rows) > 0 {
		key.Project = "-work"
	}
	if len(prompts) > 0 {
		require.NotEmpty(w, key.Project, "the session is in the store")
	}
	if key.Project == "" {
		return // the agent has stored nothing
	}
	for e, err := range all.Load(context.Background(), key) {
		require.NoError(w, err)
		var line struct{ UUID, ParentUUID string }
		require.NoError(w, json.Unmarshal(e, &line))
		require.False(w, known[line.UUID], "%s is in the store twice", line.UUID)
		require.True(w, line.ParentUUID == "" || known[line.ParentUUID], "%s comes before what it follows", line.UUID)
		known[line.UUID] = true
	}
	for _, uuid := range prompts {
		require.True(w, known[uuid], "the turn %s has a result and is not in the store", uuid)
	}
}

func TestMirror(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(400)}, func(w *simtests.World) { mirrored(w, true) })
}

// hung is a store that cannot be read.
type hung struct{ *store.Memory }

// Load implements [session.Store].
func (hung) Load(ctx context.Context, _ session.StoreKey) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		<-ctx.Done()
		yield(nil, ctx.Err())
	}
}

// A store that does not answer holds up another process, and the end of the session, for four
// seconds each, and no result.
func TestAStoreThatHoldsUpARestart(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: 5}, func(w *simtests.World) {
		var failed []error
		var died time.Duration
		script := &scripted.Script{
			Turns:   []scripted.Turn{{When: "die", Steps: scripted.Steps{&scripted.Exit{Signal: "KILL"}}}},
			Resumed: []scripted.Turn{{Steps: scripted.Steps{scripted.Text("alive")}}}, Default: scripted.Steps{scripted.Text("yes")},
		}
		c, err := w.Dial(&sdk.Options{
			Cwd: "/work", MaxRestarts: 1, SessionStore: hung{&store.Memory{}},
			OnEvent: func(r session.EventRecord) {
				switch e := r.Event.(type) {
				case *session.MirrorFailed:
					failed = append(failed, e.Err)
				case *session.Recovering:
					died = w.Elapsed()
				}
			},
		}, script)
		require.NoError(w, err)
		w.Go(func() {
			for _, text := range []string{"hello", "die"} {
				from := w.Elapsed()
				turn, err := c.Send(w.Context(), sdk.UserText(text))
				require.NoError(w, err)
				_, err = turn.Result(w.Context())
				require.NoError(w, err)
				if text == "hello" {
					require.Less(w, w.Elapsed()-from, time.Second)
				}
			}
			held := w.Elapsed() - died
			require.GreaterOrEqual(w, held, 4*time.Second)
			require.Less(w, held, 6*time.Second)
			from := w.Elapsed()
			_ = c.Close(w.Context())
			require.Less(w, w.Elapsed()-from, 10*time.Second)
		})
		w.Run()
		require.Len(w, failed, 2, "at the restart and at the end")
		for _, err := range failed {
			require.ErrorAs(w, err, new(*session.StoreError))
			late, ok := errors.AsType[*session.TimeoutError](err)
			require.True(w, ok)
			require.Equal(w, 4*time.Second, late.Limit)
		}
	})
}

package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript/store"
)

// silent is a history to which the agent stores two lines after the prompt "die" that it
// never reports.
type silent struct{ scripted.MemoryHistory }

const unreported = "5e550000-0000-4000-8000-00000000000a"

// Append implements [agent.History].
func (h *silent) Append(path string, line []byte) error {
	if err := h.MemoryHistory.Append(path, line); err != nil || !strings.Contains(string(line), `"die`) {
		return err
	}
	var head struct{ UUID string }
	if err := json.Unmarshal(line, &head); err != nil {
		return err
	}
	answer := fmt.Sprintf(`{"type":"assistant","uuid":%q,"parentUuid":%q,"message":{"role":"assistant","content":[]}}`, unreported, head.UUID)
	for _, l := range []string{answer, `{"type":"custom-title","customTitle":"t"}`, `{"type":"torn`} {
		if err := h.MemoryHistory.Append(path, []byte(l+"\n")); err != nil {
			return err
		}
	}
	return nil
}

// ward is a store that can fail, and counts its loads.
type ward struct {
	store.Memory
	loads  atomic.Int32
	load   func(n int) error // nil: success
	append func(entries []json.RawMessage) error
}

func (w *ward) Load(ctx context.Context, key session.StoreKey) iter.Seq2[json.RawMessage, error] {
	n := int(w.loads.Add(1))
	if w.load != nil {
		if err := w.load(n); err != nil {
			return func(yield func(json.RawMessage, error) bool) { yield(nil, err) }
		}
	}
	return w.Memory.Load(ctx, key)
}

func (w *ward) Append(ctx context.Context, key session.StoreKey, entries []json.RawMessage) error {
	if w.append != nil {
		if err := w.append(entries); err != nil {
			return err
		}
	}
	return w.Memory.Append(ctx, key, entries)
}

// lines are the type of each entry that the store has, and the text of prompts.
func (w *ward) lines(t *testing.T, key session.StoreKey) (all []string) {
	t.Helper()
	for e, err := range w.Memory.Load(t.Context(), key) {
		require.NoError(t, err)
		var l struct {
			Type    string
			Message struct{ Content json.RawMessage }
		}
		require.NoError(t, json.Unmarshal(e, &l))
		if l.Type == "user" && strings.Contains(string(l.Message.Content), "die") {
			l.Type = "die"
		}
		all = append(all, l.Type)
	}
	return all
}

// Entries that an agent stored and did not report before it died are in the store when the
// session has ended, and before the next process: once, and in order.
func TestTheStoreIsCompleted(t *testing.T) {
	t.Parallel()
	errAway := errors.New("the store is away")
	for name, c := range map[string]struct {
		restarts int
		prompts  []string
		load     func(n int) error
		append   func() func([]json.RawMessage) error
		ahead    bool // another host continues the session
		want     string
		loads    int
		failed   string // part of the last MirrorFailed; "": none
		is       error
	}{
		"in order, nothing is read": {prompts: []string{"a"}, want: "user assistant"},
		"killed":                    {prompts: []string{"a", "die"}, want: "user assistant die assistant custom-title", loads: 1},
		"killed at once":            {prompts: []string{"die"}, want: "die assistant custom-title", loads: 1},
		"another process": {
			restarts: 1, prompts: []string{"a", "die"}, want: "user assistant die assistant custom-title user assistant", loads: 1,
		},
		"the store fails twice": {
			restarts: 1, prompts: []string{"a", "die"}, want: "user assistant die assistant custom-title user assistant", loads: 3,
			load: func(n int) error {
				if n < 3 {
					return errAway
				}
				return nil
			},
		},
		"the store panics": {
			prompts: []string{"die"}, want: "die assistant custom-title", loads: 2,
			load: func(n int) error {
				if n < 2 {
					panic("oh")
				}
				return nil
			},
		},
		"the store is away for good": {
			prompts: []string{"a", "die"}, want: "user assistant die", loads: 3, load: func(int) error { return errAway },
			failed: "complete -work/ID: ", is: errAway,
		},
		"it comes too late for the restart, and not for the end": {
			restarts: 1, prompts: []string{"a", "die"}, want: "user assistant die user assistant assistant", loads: 4,
			load: func(n int) error {
				if n < 4 {
					return errAway
				}
				return nil
			},
			failed: "the store is away", is: errAway,
		},
		"another host went on": {
			prompts: []string{"a", "die"}, ahead: true, want: "user assistant die user", loads: 1,
			failed: "another host went on", is: session.ErrStoreAhead,
		},
		"appends that were given up": {
			prompts: []string{"a", "b", "c"}, want: "user assistant user user assistant assistant", loads: 1,
			append: func() func([]json.RawMessage) error {
				n := 0
				return func([]json.RawMessage) error {
					if n++; n > 3 && n <= 6 { // all attempts of a batch
						return errAway
					}
					return nil
				}
			},
			failed: "missing from the session store", is: errAway,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &ward{load: c.load}
			if c.append != nil {
				s.append = c.append()
			}
			var mu sync.Mutex
			var failed []*session.MirrorFailed
			read, told := 0, make(chan struct{})
			rt, err := runtime.New(runtime.Config{})
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, rt.Shutdown(context.Background())) })
			script := &scripted.Script{
				Turns:   []scripted.Turn{{When: "die", Steps: scripted.Steps{&scripted.Exit{Signal: "KILL"}}}},
				Resumed: []scripted.Turn{{Steps: scripted.Steps{scripted.Text("alive")}}}, Default: scripted.Steps{scripted.Text("yes")},
			}
			open, err := rt.Open(t.Context(), runtime.Spec{
				Dialect: claude.Dialect{}, ParentEnv: []string{"HOME=/home/x"},
				Program: scripted.New(scripted.WithScript(script), scripted.WithHistory(&silent{})),
				Options: session.Options{
					Cwd: "/work", SessionStore: s, SessionStoreOptions: session.StoreOptions{Flush: session.StoreEager}, MaxRestarts: c.restarts,
					OnEvent: func(r session.EventRecord) {
						mu.Lock()
						defer mu.Unlock()
						switch e := r.Event.(type) {
						case *session.MirrorFailed:
							failed = append(failed, e)
						case *session.Mirrored:
							read += e.Unreported
						case *session.Ended: // the last one
							close(told)
						}
					},
				},
			})
			require.NoError(t, err)
			for _, text := range c.prompts {
				if c.ahead && text == "die" {
					require.NoError(t, open.Mirrored(t.Context()))
					s.append = func(entries []json.RawMessage) error { // the agent's last report, and then another host's
						s.append = nil
						key := session.StoreKey{Project: "-work", Session: open.AgentSessionID()}
						if err := s.Memory.Append(t.Context(), key, entries); err != nil {
							return err
						}
						return s.Memory.Append(t.Context(), key, []json.RawMessage{json.RawMessage(`{"type":"user","uuid":"elsewhere","parentUuid":null}`)})
					}
				}
				turn, err := open.Send(t.Context(), &protocol.UserMessage{Message: protocol.UserContent{Role: "user", Content: protocol.StringContent(text)}})
				require.NoError(t, err)
				if _, err = turn.Result(t.Context()); text != "die" || c.restarts > 0 {
					require.NoError(t, err)
				} else {
					require.Error(t, err)
				}
				if text != "die" {
					require.NoError(t, open.Mirrored(t.Context()))
				}
			}
			key := session.StoreKey{Project: "-work", Session: open.AgentSessionID()}
			_ = open.Close(t.Context()) // of the one that was killed
			require.Equal(t, c.want, strings.Join(s.lines(t, key), " "))
			require.EqualValues(t, c.loads, s.loads.Load(), "the store is read only when that is needed")
			<-told
			mu.Lock()
			defer mu.Unlock()
			if c.failed == "" {
				require.Empty(t, failed)
			} else {
				require.Len(t, failed, 1)
				require.Contains(t, failed[0].String(), strings.ReplaceAll(c.failed, "ID", key.Session))
				require.ErrorIs(t, failed[0].Err, c.is)
				require.ErrorAs(t, failed[0].Err, new(*session.StoreError))
			}
			require.Equal(t, c.failed == "" && c.loads > 0 || c.restarts > 0 || c.append != nil, read > 0)
		})
	}
}

var _ agent.History = (*silent)(nil)

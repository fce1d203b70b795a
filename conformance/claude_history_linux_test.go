//go:build conformance

package conformance_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// recoveries are the events of that kind.
func (r *rig) recoveries() (died []*session.Recovering, went []*session.Recovered) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.events {
		switch e := e.Event.(type) {
		case *session.Recovering:
			died = append(died, e)
		case *session.Recovered:
			went = append(went, e)
		}
	}
	return died, went
}

// recovered waits for the event that comes last of those.
func (r *rig) recovered() {
	r.t.Helper()
	r.eventually("what was sent", func(e session.Event) bool { _, ok := e.(*session.Recovered); return ok })
}

// stored is the transcript of a session; "": there is none.
func (r *rig) stored(id string) string {
	r.t.Helper()
	names, err := filepath.Glob(filepath.Join(r.home, ".claude", "projects", "*", id+".jsonl"))
	require.NoError(r.t, err)
	if len(names) == 0 {
		return ""
	}
	content, err := os.ReadFile(names[0])
	require.NoError(r.t, err)
	return string(content)
}

// before has a turn, and waits until it is stored: 2.1.197 gives the result first.
func (r *rig) before(c *sdk.Client) {
	r.t.Helper()
	_, result := r.ask(c, "before [[scn:text]]")
	require.Eventually(r.t, func() bool { return strings.Contains(r.stored(result.SessionID), result.Text()) }, turnLimit, 10*time.Millisecond)
}

// TestWhatADeathLoses kills the agent the moment a tool call is seen, when it is seldom
// stored yet, and later, when it is: the event says what is lost, which is
// what the file lacks. A session that was not stored is begun at once, without a start that
// fails.
func TestWhatADeathLoses(t *testing.T) {
	t.Parallel()
	for _, rel := range releases() {
		for name, later := range map[string]bool{"at once": false, "later": true} {
			for _, first := range []bool{true, false} {
				t.Run(string(rel.agent)+", "+name+map[bool]string{true: ", first turn"}[first], func(t *testing.T) {
					t.Parallel()
					r := rel.rig(t)
					o := r.options()
					o.Spawner, o.MaxRestarts, o.AllowedTools = nil, 1, []string{"Bash"}
					c := r.connect(o)
					if !first {
						r.before(c)
					}
					prompt, running := r.hold()
					calls := atomic.Int32{} // the message may be sent again
					reply := func(modelapi.Call) modelapi.Reply {
						if calls.Add(1) == 1 {
							return modelapi.Reply{Blocks: []modelapi.Block{r.holding(nil)}}
						}
						return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text("All done.")}}
					}
					r.model.Script("hold", reply, reply, reply)
					turn := r.send(c, prompt)
					var mu sync.Mutex
					var shown []string
					called := make(chan struct{})
					over := make(chan struct{})
					go func() {
						defer close(over)
						for m, err := range turn.Messages(r.ctx) {
							if !assert.NoError(t, err) {
								return
							}
							if m, ok := m.(*sdk.AssistantMessage); ok {
								mu.Lock()
								shown = append(shown, m.UUID)
								mu.Unlock()
								if slices.ContainsFunc(m.Message.Content, func(b protocol.ContentBlock) bool { return b.BlockType() == "tool_use" }) {
									close(called)
								}
							}
						}
					}()
					await(r, "the call", called)
					if later {
						running()
						require.Eventually(t, func() bool { // the agent stores what it has shown after 0.1 s
							mu.Lock()
							defer mu.Unlock()
							file := r.stored(c.SessionID())
							return !slices.ContainsFunc(shown, func(id string) bool { return !strings.Contains(file, `"uuid":"`+id+`"`) })
						}, turnLimit, 10*time.Millisecond)
					}
					r.kill()
					mu.Lock()
					seen := slices.Clone(shown)
					mu.Unlock()
					result, err := turn.Result(r.ctx)
					require.NoError(t, err)
					assert.True(t, result.Recovered)
					<-over
					r.recovered()
					died, went := r.recoveries()
					require.Len(t, died, 1, "no start has failed")
					require.Len(t, went, 1)
					lost := died[0].Death.Lost
					require.True(t, lost.Known)
					file := r.stored(result.SessionID)
					for _, id := range seen {
						assert.NotEqual(t, strings.Contains(file, `"uuid":"`+id+`"`), slices.Contains(lost.Messages, id), "%s is lost, or stored", id)
					}
					assert.Equal(t, len(lost.Messages) > 0, len(lost.Tools) > 0, "the only message is that of the only call")
					if later {
						assert.Empty(t, lost.Messages)
					}
					t.Logf("lost: %+v, sent: %s, because %s", lost, went[0].Sent, went[0].Why)
					r.close(c)
				})
			}
		}
	}
}

// TestAMessageThatWasLost never reached an agent that did not read: it is sent again, also
// to one that does not say whether it knows a message.
func TestAMessageThatWasLost(t *testing.T) {
	t.Parallel()
	for _, rel := range releases() {
		t.Run(string(rel.agent), func(t *testing.T) {
			t.Parallel()
			r := rel.rig(t)
			o := r.options()
			o.Spawner, o.MaxRestarts = nil, 1
			written := make(chan string, 8)
			o.Tracer = func(context.Context, session.TracedSession) *session.Trace {
				return &session.Trace{Written: func(_ time.Time, uuid string) { written <- uuid }}
			}
			c := r.connect(o)
			r.before(c)
			for _, p := range processesNaming(r.dir) {
				require.NoError(t, syscall.Kill(p.pid, syscall.SIGSTOP))
			}
			turn := r.send(c, "are you there? [[scn:echo yes]]")
			for await(r, "the message on its way", written) != turn.UUID() {
			}
			r.kill()
			result, err := turn.Result(r.ctx)
			require.NoError(t, err)
			assert.Equal(t, "yes", result.Text())
			assert.True(t, result.Recovered)
			r.recovered()
			_, went := r.recoveries()
			require.Len(t, went, 1)
			assert.Equal(t, session.SentAgain, went[0].Sent)
			assert.Equal(t, 1, strings.Count(texts(r.modelSaw("echo")), "are you there?"))
			r.close(c)
		})
	}
}

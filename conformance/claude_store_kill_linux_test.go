//go:build conformance

package conformance_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript"
	"github.com/agent-troupe/troupe/transcript/store"
)

// An agent is killed around the moment at which it stores a call of a tool, with and without a
// process that follows. The store has the lines of its file, each once, in their order.
func TestAKilledAgentAndAStore(t *testing.T) {
	t.Parallel()
	for _, restarts := range []int{0, 1} {
		for _, wait := range []time.Duration{0, 60 * time.Millisecond, 110 * time.Millisecond, 400 * time.Millisecond} {
			t.Run(fmt.Sprintf("%d restarts, after %v", restarts, wait), func(t *testing.T) {
				t.Parallel()
				r := newRig(t)
				kept := &store.Memory{}
				o := r.options()
				o.Spawner, o.MaxRestarts, o.AllowedTools, o.SessionStore = nil, restarts, []string{"Bash"}, kept
				c := r.connect(o)
				r.before(c)
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
				running()
				time.Sleep(wait) // the moment is what is tested
				r.kill()
				_, err := turn.Result(r.ctx)
				if restarts == 0 {
					require.Error(t, err)
				} else {
					require.NoError(t, err)
				}
				id := c.SessionID()
				_ = c.Close(r.ctx) // of an agent that was killed, perhaps
				r.over(c.ID())
				var file, stored []string
				for line := range strings.Lines(r.stored(id)) {
					var head struct{ Type string }
					if json.Unmarshal([]byte(line), &head) == nil && !strings.HasPrefix(head.Type, "api-request") {
						file = append(file, strings.TrimSpace(line))
					}
				}
				key := session.StoreKey{Project: transcript.FolderName(transcript.Claude, r.dir), Session: id}
				for e, err := range kept.Load(r.ctx, key) {
					require.NoError(t, err)
					stored = append(stored, string(e))
				}
				require.NotEmpty(t, stored)
				assert.Equal(t, file, stored)
				assert.Empty(t, r.lost())
				read := 0
				r.mu.Lock()
				for _, e := range r.events {
					if e, ok := e.Event.(*session.Mirrored); ok {
						read += e.Unreported
					}
				}
				r.mu.Unlock()
				t.Logf("%d lines, %d of them were not reported", len(file), read)
			})
		}
	}
}

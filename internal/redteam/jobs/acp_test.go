package jobs

import (
	"context"
	"encoding/json"
	"runtime"
	"testing"
	"time"

	"github.com/agent-troupe/troupe/acp"
)

// repeated is a reader that gives a text n times, and then waits.
type repeated struct {
	text []byte
	left int
	over chan struct{}
	once bool
}

func (r *repeated) Read(p []byte) (int, error) {
	if r.left <= 0 {
		if !r.once {
			r.once = true
			close(r.over)
		}
		select {}
	}
	n := 0
	for n+len(r.text) <= len(p) && r.left > 0 {
		n += copy(p[n:], r.text)
		r.left--
	}
	return n, nil
}

// stuck is a writer whose reader does not read.
type stuck struct{}

func (stuck) Write([]byte) (int, error) { select {} }

// What waits for the handlers is bounded in memory, whatever the other side sends and
// however slowly it reads (SECURITY.md: input is bounded; 64 MiB).
func TestACPQueueIsBoundedInMemory(t *testing.T) {
	for name, line := range map[string]string{
		"objects that are nothing": "{}\n",
		"lines that are no JSON":   "x\n",
		"notifications":            `{"method":"x"}` + "\n",
	} {
		t.Run(name, func(t *testing.T) {
			const bytesSent = 3 << 20
			r := &repeated{text: []byte(line), left: bytesSent / len(line), over: make(chan struct{})}
			h := acp.Handler{Notification: func(context.Context, string, json.RawMessage) { select {} }}
			c := acp.NewConn(r, stuck{}, h, acp.ConnOptions{})
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			go func() { _ = c.Serve(context.Background()) }()
			select {
			case <-r.over:
			case <-time.After(6 * time.Second):
				t.Log("it does not read any more, which is good")
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			grown := int64(after.HeapAlloc) - int64(before.HeapAlloc)
			t.Logf("%d MiB for %d MiB of input", grown>>20, bytesSent>>20)
			if grown > 128<<20 {
				t.Errorf("%d MiB wait in memory for %d MiB of input (%d times as much); 64 MiB may wait", grown>>20, bytesSent>>20, grown/bytesSent)
			}
			runtime.KeepAlive(c)
		})
	}
}

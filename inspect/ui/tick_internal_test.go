package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// TestATickHasThePartOfEachHost: a page shows all hosts or one, and the waits of one are not lost behind those of another.
func TestATickHasThePartOfEachHost(t *testing.T) {
	t.Parallel()
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, rt.Shutdown(context.Background())) })
	p := &pump{w: &Window{clock: rt.Clock()}, rows: map[string]*row{}, other: map[string]*row{}}
	p.w.hub = newHub(rt.Clock(), rt.Executor(), func(context.Context) {})
	t.Cleanup(p.w.hub.close)
	add := func(host string, n int, state session.State, age time.Duration) {
		for i := range n {
			r := &row{ID: fmt.Sprint(i), Host: host, State: state, Wait: &wait{Since: rt.Clock().Now().Add(-age), LimitMS: 3_600_000}}
			p.other[host+"/"+r.ID] = r
		}
	}
	add("a", 9, session.StateRunning, 50*time.Minute)
	add("b", 2, session.StateReady, time.Minute)
	me := &reader{}
	_, ok := p.w.hub.join(me, 0)
	require.True(t, ok)
	defer p.w.hub.leave(me)
	p.tick()
	frames, _, _, ok := me.take(t.Context(), rt.Executor())
	require.True(t, ok)
	require.Len(t, frames, 1)
	var f tickFrame
	require.NoError(t, json.Unmarshal(frames[0].data, &f))
	assert.Equal(t, map[string]int{"running": 9, "ready": 2}, f.States)
	assert.Equal(t, map[string]map[string]int{"a": {"running": 9}, "b": {"ready": 2}}, f.Of)
	of := map[string]int{}
	for _, w := range f.Waits {
		of[w.Host]++
	}
	assert.Equal(t, map[string]int{"a": 6, "b": 2}, of)
}

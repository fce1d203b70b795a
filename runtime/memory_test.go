package runtime_test

import (
	goruntime "runtime"
	"slices"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/runtime"
)

// TestClosedSessionsAreGarbage: nothing of a running runtime reaches a session that was
// closed and whose user has dropped it.
func TestClosedSessionsAreGarbage(t *testing.T) {
	t.Parallel()
	for name, made := range map[string]bool{"a program for all": false, "a program for each": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkGarbage(t, made)
		})
	}
}

func checkGarbage(t *testing.T, made bool) {
	t.Helper()
	w := inProduction(t)
	open := make([]*runtime.Session, 200)
	for i := range open {
		spec := w.spec(turns(scripted.Steps{gate()}))
		spec.Options.CanUseTool = allow
		if program := spec.Program; made {
			spec.Program, spec.NewProgram = nil, func(of backend.Seams) agent.Program { return &seamed{program, of} }
		}
		open[i] = w.open(spec)
		_, err := w.send(open[i], "date").Result(t.Context())
		require.NoError(t, err)
	}
	var closed []weak.Pointer[runtime.Session]
	for _, s := range open {
		require.NoError(t, s.Close(t.Context()))
		closed = append(closed, weak.Make(s))
	}
	clear(open)
	assert.Eventually(t, func() bool {
		goruntime.GC()
		return !slices.ContainsFunc(closed, func(s weak.Pointer[runtime.Session]) bool { return s.Value() != nil })
	}, patience, time.Millisecond)
}

// seamed is a program that keeps what it was made with, which reaches the session.
type seamed struct {
	agent.Program
	seams backend.Seams
}

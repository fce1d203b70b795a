package fleet

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet/journal"
)

// A task that is requeued while it runs has its whole budget: what the attempt has used counts for the job alone.
func TestARequeuedTaskHasItsWholeBudget(t *testing.T) {
	t.Parallel()
	m, _ := one(testRules(1), spec{id: "a", budget: &Budget{USD: 1}})
	m.step(time.Unix(1, 0), steered{id: "a", what: steerRequeue}, nil)
	out := m.step(time.Unix(2, 0), ended{"a", outcome{status: Interrupted, usage: Usage{USD: 0.9}}}, nil)
	require.Len(t, out, 2)
	l, is := out[1].(launch)
	require.True(t, is)
	assert.InDelta(t, 1, l.usd, 1e-9)
	assert.Zero(t, l.used)
	assert.InDelta(t, 0.9, m.nodes["a"].total().USD, 1e-9)
	assert.InDelta(t, 0.9, m.usage.USD, 1e-9)
}

// A journal says the same of it, also if the host dies before the attempt has ended.
func TestUsageBeforeARequeueInAJournal(t *testing.T) {
	t.Parallel()
	ends := recordOf{kindAttempt, "a", 1, attemptRecord{Attempt: Attempt{Number: 1, Status: Interrupted, Usage: Usage{USD: 1.5}}, Next: modeFresh}}
	turn := func(usd float64) recordOf {
		return recordOf{kindTurn, "a", 1, turnRecord{Turns: 1, Usage: Usage{USD: usd}}}
	}
	again := recordOf{kindRequeued, "a", 0, requeuedRecord{}}
	for name, c := range map[string]struct {
		after []recordOf
		want  float64
	}{
		"it ends":                      {[]recordOf{turn(1), again, ends}, 1.5},
		"after another turn":           {[]recordOf{turn(1), again, turn(1.25), ends}, 1.5},
		"twice":                        {[]recordOf{turn(1), again, again, ends}, 1.5},
		"the host dies":                {[]recordOf{turn(1), again}, 1},
		"the host dies later":          {[]recordOf{turn(1), again, turn(1.25)}, 1.25},
		"the host has died":            {[]recordOf{turn(1), {kindHost, "", 0, hostRecord{}}, again}, 1},
		"the host dies, and the next":  {[]recordOf{turn(1), again, {kindHost, "", 0, hostRecord{}}, {kindHost, "", 0, hostRecord{}}}, 1},
		"it ends, and the host dies":   {[]recordOf{turn(1), again, ends, {kindHost, "", 0, hostRecord{}}}, 1.5},
		"and it is canceled before it": {[]recordOf{turn(1), again, {kindResult, "a", 1, TaskResult{Status: Canceled, Usage: Usage{USD: 1.5}}}, again}, 1.5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all []journal.Record
			for _, r := range append([]recordOf{{kindAdmitted, "a", 0, admittedRecord{}}, {kindStarting, "a", 1, startingRecord{Mode: modeFresh}}}, c.after...) {
				data, err := json.Marshal(r.data)
				require.NoError(t, err)
				all = append(all, journal.Record{Kind: r.kind, Task: r.task, Attempt: r.attempt, Data: data})
			}
			h, err := read(all, nil)
			require.NoError(t, err)
			assert.InDelta(t, c.want, h.tasks["a"].total().USD, 1e-9)
			assert.Zero(t, h.tasks["a"].usage, "its whole budget is left")
		})
	}
}

package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The command after acceptance is for one result: one that waits while its task begins anew does not run
// for the result that the task gets then.
func TestACommandIsForOneResult(t *testing.T) {
	t.Parallel()
	now, r := time.Unix(0, 0), testRules(1)
	r.onAccept = true
	p, _ := one(r, spec{id: "a", clears: true}, spec{id: "b", order: 1})
	step := func(in input) {
		p.step(now, in, nil)
		written{}.note(p, now, nil)
	}
	accept := func() { step(ended{"a", outcome{status: Accepted, left: &report{remains: &remains{}}}}) }
	accept()
	step(steered{id: "a", what: steerRequeue})
	assert.Equal(t, acceptance{nothing: true}, p.accepting("a", 0))
	accept()
	assert.Equal(t, acceptance{nothing: true}, p.accepting("a", 0))
	assert.Equal(t, acceptance{wanted: true}, p.accepting("a", 1))
	assert.Equal(t, acceptance{}, p.accepting("a", 1), "once")

	settledOnAccept{id: "a", requeued: 1, said: OnAccept{State: onAcceptFailed}}.step(p, nil)
	again, err := p.repeat("a")
	require.NoError(t, err)
	assert.Equal(t, 1, again.requeued)
	step(steered{id: "a", what: steerRequeue})
	accept()
	assert.Equal(t, acceptance{nothing: true}, p.accepting("a", again.requeued))
	assert.Equal(t, acceptance{wanted: true}, p.accepting("a", 2))
}

//go:build conformance

package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/sdk"
)

// TestContinueBesideResume is why Continue is left out beside Resume, where the
// vendor's SDK passes both on.
func TestContinueBesideResume(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	older := r.remembered()
	newer := r.remembered()
	assert.NotEqual(t, older, newer)

	o := r.options()
	o.Resume, o.ExtraArgs = older, map[string]sdk.Opt[string]{"continue": {}}
	_, result := r.once(o, "hi [[scn:text]]")
	assert.Equal(t, newer, result.SessionID, "with both of them the CLI continues")

	o = r.options()
	o.Resume, o.Continue = older, true
	assert.Equal(t, older, r.recalls(o).SessionID)

}

//go:build conformance

package conformance_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestContinueBesideResume has both on the command line, as the vendor's SDK has
// them: Resume says which session it is.
func TestContinueBesideResume(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	older := r.remembered()
	newer := r.remembered()
	assert.NotEqual(t, older, newer)

	o := r.options()
	o.Resume, o.Continue = older, true
	assert.Equal(t, older, r.recalls(o).SessionID)

}

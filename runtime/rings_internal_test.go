package runtime

import (
	"encoding/json"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
)

// TestARing skips intervals without a sample, and forgets the oldest ones.
func TestARing(t *testing.T) {
	t.Parallel()
	r := newRing(time.Minute, 5*time.Minute)
	at := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	put := func(after time.Duration, running, restarts float64) {
		s := sample{ofRunning: running, ofRestarts: restarts}
		r.add(at.Add(after), &s)
	}
	text := func(after time.Duration) string {
		h := r.read(at.Add(after))
		raw, _ := json.Marshal([]any{h.Series.Running, h.Series.Restarts})
		return string(raw)
	}
	assert.Equal(t, `[[null,null,null,null,null],[null,null,null,null,null]]`, text(0))
	put(10*time.Second, 3, 1)
	put(20*time.Second, 2, 1)
	put(time.Minute, 1, 0) // the end of the first minute is in it
	put(3*time.Minute, 7, 4)
	assert.Equal(t, `[[null,null,3,null,7],[null,null,2,null,4]]`, text(3*time.Minute))
	put(2*time.Minute, 9, 9) // the clock was set back
	assert.Equal(t, `[[null,null,3,null,7],[null,null,2,null,4]]`, text(3*time.Minute))
	assert.Equal(t, `[[3,null,7,null,null],[2,null,4,null,null]]`, text(5*time.Minute))
	assert.Equal(t, `[[null,null,null,null,null],[null,null,null,null,null]]`, text(time.Hour))
	put(2*time.Hour, 1, 1)
	assert.Equal(t, `[[null,null,null,null,1],[null,null,null,null,1]]`, text(2*time.Hour))
}

// TestTheSizeOfAHistory holds it to a hundredth of the 4 MiB that a window may take.
func TestTheSizeOfAHistory(t *testing.T) {
	t.Parallel()
	size := uintptr(0)
	for _, r := range newRings() {
		size += uintptr(cap(r.all)) * unsafe.Sizeof(r.all[0])
	}
	assert.LessOrEqual(t, size, uintptr(40<<10), "bytes")
}

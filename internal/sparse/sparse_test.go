package sparse_test

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/internal/sparse"
)

type inner struct {
	On   bool
	N    int8
	Text string
	Any  any
}

type closed struct{ n int }

type outer struct {
	Embedded
	Before  [300]bool
	A, B    inner
	At      time.Time
	Wait    time.Duration
	Size    uint64
	Part    float64
	All     []string
	By      map[string]int
	To      *int
	Own     closed
	Nothing struct{}
	Err     error
}

// Embedded is a field of that name.
type Embedded struct{ X, Y, Z int }

// TestEqual: what comes back is what was kept.
func TestEqual(t *testing.T) {
	t.Parallel()
	n := 7
	rapid.Check(t, func(t *rapid.T) {
		some := func(label string) bool { return rapid.Bool().Draw(t, label) }
		var v outer
		for _, set := range []func(){
			func() { v.X, v.Z = -1, 3 },
			func() { v.A = inner{true, -8, "a", "b"} },
			func() { v.B = inner{N: 1, Any: []int{2}} },
			func() { v.Before[299] = true },
			func() { v.At = time.Unix(5, 6).UTC() },
			func() { v.Wait, v.Size, v.Part = -time.Second, 1<<63, 0.5 },
			func() { v.All, v.By, v.To = []string{}, map[string]int{"a": 1}, &n },
			func() { v.Own = closed{4} },
			func() { v.Err = assert.AnError },
		} {
			if some("set") {
				set()
			}
		}
		assert.Equal(t, v, *sparse.Of(&v).Value())
	})
}

// TestManyZeros: more of them than one byte counts.
func TestManyZeros(t *testing.T) {
	t.Parallel()
	type ten struct{ A, B, C, D, E, F, G, H, I, J int }
	type hundred struct{ A, B, C, D, E, F, G, H, I, J ten }
	type many struct {
		A, B, C, D, E, F hundred
	}
	for _, set := range []func(*many){
		func(v *many) {},
		func(v *many) { v.C.F.F = 1 }, // 255 before it
		func(v *many) { v.C.F.E = 1 },
		func(v *many) { v.F.B.A = 1 }, // 510 before it
		func(v *many) { v.A.A.A, v.F.J.J = 1, 2 },
	} {
		var v many
		set(&v)
		assert.Equal(t, v, *sparse.Of(&v).Value())
	}
}

// TestHidden: a field that cannot be copied is a mistake, and not lost.
func TestHidden(t *testing.T) {
	t.Parallel()
	assert.Panics(t, func() { sparse.Of(&closed{}) })
}

// TestShared: everybody gets the same value, and one that nobody has is made again.
func TestShared(t *testing.T) {
	t.Parallel()
	s := sparse.Share(&outer{A: inner{N: 3}, All: []string{"a"}})
	first := s.Value()
	assert.Same(t, first, s.Value())
	runtime.GC()
	assert.Same(t, first, s.Value(), "somebody has it")
	was, kept := weak.Make(first), *first
	require.Eventually(t, func() bool { runtime.GC(); return was.Value() == nil }, time.Minute, time.Millisecond, "nobody keeps it")
	assert.Equal(t, kept, *s.Value())
	again := s.Value()
	assert.Same(t, again, s.Value())
}

// BenchmarkShared is the cost of a value that somebody has, and of one that is made again.
func BenchmarkShared(b *testing.B) {
	s := sparse.Share(&outer{A: inner{N: 3, Text: "a"}, All: []string{"a"}})
	b.Run("there", func(b *testing.B) {
		v := s.Value()
		for b.Loop() {
			s.Value()
		}
		runtime.KeepAlive(v)
	})
	b.Run("made", func(b *testing.B) {
		b.ReportAllocs()
		kept := sparse.Of(s.Value())
		for b.Loop() {
			kept.Value()
		}
	})
}

package protocol

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// split feeds stream to a splitter, cut where cuts say, and returns all lines.
// Each cut is the number of bytes of one read; the last one repeats.
func split(s *Splitter, stream []byte, cuts []int) []Line {
	var out []Line
	for i := 0; len(stream) > 0; i++ {
		n := 1 << 30
		if len(cuts) > 0 {
			n = max(1, cuts[min(i, len(cuts)-1)])
		}
		n = copy(s.Buffer(), stream[:min(n, len(stream))])
		s.Commit(n)
		stream = stream[n:]
		for {
			l, ok := s.Next()
			if !ok {
				break
			}
			out = append(out, l)
		}
		if i%2 == 1 {
			s.Rest() // loses nothing, whenever it is called
		}
	}
	for {
		l, ok := s.Finish()
		if !ok {
			return out
		}
		out = append(out, l)
	}
}

// reference is what the splitter must give, by the simplest means.
func reference(stream []byte, maxLine int) []Line {
	var out []Line
	for i, raw := range bytes.Split(stream, []byte("\n")) {
		last := i == bytes.Count(stream, []byte("\n"))
		switch trimmed := bytes.Trim(raw, " \t\r\v\f"); {
		case last && len(raw) == 0:
		case len(raw) > maxLine:
			out = append(out, Line{Oversize: int64(len(raw)), Head: raw[:min(len(raw), 256)]})
		case len(trimmed) > 0:
			out = append(out, Line{Data: trimmed})
		}
	}
	return out
}

func requireLines(t require.TestingT, want, got []Line) {
	require.Len(t, got, len(want))
	for i := range want {
		require.Equal(t, string(want[i].Data), string(got[i].Data), "line %d", i)
		require.Equal(t, want[i].Oversize, got[i].Oversize, "line %d", i)
		require.Equal(t, string(want[i].Head), string(got[i].Head), "line %d", i)
		require.Equal(t, want[i].Oversize > 0, got[i].Data == nil, "line %d", i)
	}
}

func TestSplitterLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	for _, c := range []struct {
		name, in string
		max      int
		want     []Line
	}{
		{"empty", "", 0, nil},
		{"one", "a\n", 0, []Line{{Data: []byte("a")}}},
		{"no newline at the end", "a\nb", 0, []Line{{Data: []byte("a")}, {Data: []byte("b")}}},
		{"blank lines and CRLF", "\n\r\n  \t\r\na\r\n\r\n", 0, []Line{{Data: []byte("a")}}},
		{"padding", " \t a b \t\r\n", 0, []Line{{Data: []byte("a b")}}},
		{"blank end", "a\n  ", 0, []Line{{Data: []byte("a")}}},
		{"as long as allowed", "12345\n", 5, []Line{{Data: []byte("12345")}}},
		{"too long", "123456\nok\n", 5, []Line{{Oversize: 6, Head: []byte("123456")}, {Data: []byte("ok")}}},
		{"too long by white space", "1234 \r\nok\n", 5, []Line{{Oversize: 6, Head: []byte("1234 \r")}, {Data: []byte("ok")}}},
		{"too long, no newline", "123456", 5, []Line{{Oversize: 6, Head: []byte("123456")}}},
		{"head is cut", long + "\n", 5, []Line{{Oversize: 300, Head: []byte(long[:256])}}},
		{"two too long", "123456\n1234567\n", 5, []Line{{Oversize: 6, Head: []byte("123456")}, {Oversize: 7, Head: []byte("1234567")}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for cut := 1; cut < 10; cut++ {
				requireLines(t, c.want, split(NewSplitter(c.max), []byte(c.in), []int{cut}))
			}
			requireLines(t, c.want, split(NewSplitter(c.max), []byte(c.in), nil))
		})
	}
}

// TestSplitterChunking: the lines depend on the bytes, not on the reads.
func TestSplitterChunking(t *testing.T) {
	t.Parallel()
	piece := rapid.OneOf(
		rapid.SampledFrom([]string{"\n", "\r\n", "\n\n", " ", "\t", "é", "日本", "\xf0\x9f\x98\x80", "\xff", `{"a":"\u00e9\\\""}`, `"`, `\`}),
		rapid.StringN(0, 20, 60),
		rapid.Map(rapid.IntRange(0, 9000), func(n int) string { return strings.Repeat("y", n) }),
	)
	rapid.Check(t, func(t *rapid.T) {
		stream := []byte(strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), ""))
		maxLine := rapid.SampledFrom([]int{1, 7, 256, 257, 4096, 10_000, 1 << 20}).Draw(t, "max")
		cuts := rapid.SliceOfN(rapid.IntRange(1, 5000), 0, 20).Draw(t, "cuts")
		got := split(NewSplitter(maxLine), bytes.Clone(stream), cuts)
		requireLines(t, reference(stream, maxLine), got)
	})
}

// TestSplitterLinesStay: a line is never written over.
func TestSplitterLinesStay(t *testing.T) {
	t.Parallel()
	var stream bytes.Buffer
	for i := range 5000 {
		fmt.Fprintf(&stream, "%d %s\n", i, strings.Repeat("z", i%700))
	}
	lines := split(NewSplitter(0), stream.Bytes(), []int{100, 5000, 40_000, 3})
	require.Len(t, lines, 5000)
	for i, l := range lines {
		assert.Equal(t, fmt.Sprintf("%d %s", i, strings.Repeat("z", i%700)), strings.TrimSpace(string(l.Data))+strings.Repeat(" ", b2i(i%700 == 0)))
		assert.Equal(t, len(l.Data), cap(l.Data), "a line must not be open to append")
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

func TestSplitterBufferFollowsTraffic(t *testing.T) {
	t.Parallel()
	s := NewSplitter(0)
	assert.Len(t, s.Buffer(), minChunk)
	fill := func() int {
		b := s.Buffer()
		for i := range b {
			b[i] = '\n'
		}
		s.Commit(len(b))
		_, ok := s.Next()
		assert.False(t, ok)
		return len(b)
	}
	grown := 0
	for range 10 {
		grown = fill()
	}
	assert.Equal(t, maxChunk, grown)
	for range 5 {
		copy(s.Buffer(), "{}\n")
		s.Commit(3)
		_, ok := s.Next()
		assert.True(t, ok)
	}
	s.Buffer()
	assert.LessOrEqual(t, cap(s.chunk), minChunk, "an idle stream holds a small chunk")
}

func TestSplitterRests(t *testing.T) {
	t.Parallel()
	s := NewSplitter(0)
	s.Commit(copy(s.Buffer(), "one\ntw"))
	l, ok := s.Next()
	require.True(t, ok)
	_, ok = s.Next()
	require.False(t, ok)
	s.Rest()
	assert.Equal(t, 2, s.Pending())
	s.Commit(copy(s.Buffer(), "o\n"))
	l2, ok := s.Next()
	require.True(t, ok)
	assert.Equal(t, []string{"one", "two"}, []string{string(l.Data), string(l2.Data)})
	s.Rest()
	assert.Zero(t, cap(s.chunk), "nothing is held of a stream that is silent")
	assert.Len(t, s.Buffer(), minChunk)
}

func TestSplitterLongLine(t *testing.T) {
	t.Parallel()
	const size = 3 << 20
	s := NewSplitter(4 << 20)
	sent := 0
	for sent < size {
		b := s.Buffer()
		require.NotEmpty(t, b)
		require.LessOrEqual(t, len(b), maxChunk)
		n := min(len(b), size-sent)
		for i := range n {
			b[i] = 'a'
		}
		s.Commit(n)
		sent += n
		_, ok := s.Next()
		require.False(t, ok)
		require.Equal(t, sent, s.Pending())
		require.LessOrEqual(t, cap(s.chunk), max(2*sent, maxChunk), "what a long line holds")
	}
	n := copy(s.Buffer(), "\nshort\nrest")
	s.Commit(n)
	l, ok := s.Next()
	require.True(t, ok)
	require.Len(t, l.Data, size)
	l, ok = s.Next()
	require.True(t, ok)
	require.Equal(t, "short", string(l.Data))
	assert.LessOrEqual(t, cap(s.chunk), maxChunk, "a short line must not keep the long one's chunk")
	assert.Equal(t, len("rest"), s.Pending())
}

func TestSplitterSkipsWithoutHolding(t *testing.T) {
	t.Parallel()
	s := NewSplitter(64 << 10)
	total := int64(0)
	for range 2000 {
		b := s.Buffer()
		for i := range b {
			b[i] = 'q'
		}
		s.Commit(len(b))
		total += int64(len(b))
		_, ok := s.Next()
		require.False(t, ok)
		require.LessOrEqual(t, cap(s.chunk), 256<<10)
		if total > 64<<10 {
			require.Zero(t, s.Pending())
		}
	}
	copy(s.Buffer(), "qq\nnext\n")
	s.Commit(8)
	l, ok := s.Next()
	require.True(t, ok)
	assert.Equal(t, total+2, l.Oversize)
	assert.Len(t, l.Head, 256)
	l, ok = s.Next()
	require.True(t, ok)
	assert.Equal(t, "next", string(l.Data))
}

func TestSplitterSkip(t *testing.T) {
	t.Parallel()
	s := NewSplitter(0)
	s.Skip() // nothing pending
	n := copy(s.Buffer(), "first\nsecond, which is lo")
	s.Commit(n)
	s.Skip() // a complete line comes first
	l, ok := s.Next()
	require.True(t, ok)
	require.Equal(t, "first", string(l.Data))
	s.Skip()
	require.Zero(t, s.Pending())
	n = copy(s.Buffer(), "ng\nthird\n")
	s.Commit(n)
	l, ok = s.Next()
	require.True(t, ok)
	assert.Equal(t, int64(len("second, which is long")), l.Oversize)
	assert.Equal(t, "second, which is long", string(l.Head))
	l, ok = s.Next()
	require.True(t, ok)
	assert.Equal(t, "third", string(l.Data))
}

func TestSplitterCommitOutOfRange(t *testing.T) {
	t.Parallel()
	s := NewSplitter(0)
	b := s.Buffer()
	assert.Panics(t, func() { s.Commit(len(b) + 1) })
	assert.Panics(t, func() { s.Commit(-1) })
	s.Commit(0)
	assert.Panics(t, func() { s.Commit(1) }, "each Buffer is committed once")
}

func TestSplitterAllocations(t *testing.T) {
	stream := bytes.Repeat([]byte(strings.Repeat("a", 199)+"\n"), 1000)
	allocs := testing.AllocsPerRun(20, func() {
		s := NewSplitter(0)
		for rest := stream; len(rest) > 0; {
			n := copy(s.Buffer(), rest)
			s.Commit(n)
			rest = rest[n:]
			for {
				if _, ok := s.Next(); !ok {
					break
				}
			}
		}
	})
	assert.Less(t, allocs, 30.0, "allocations are by chunk, not by line")
}

// TestReleasedRoomIsUsedAgain: a stream of lines that are not kept stays in its chunk.
func TestReleasedRoomIsUsedAgain(t *testing.T) {
	s := NewSplitter(0)
	line := []byte(strings.Repeat("x", 300) + "\n")
	first := &s.Buffer()[0]
	for range 100 {
		s.Commit(copy(s.Buffer(), line))
		l, ok := s.Next()
		require.True(t, ok)
		require.Same(t, first, &l.Data[0])
		_, ok = s.Next()
		require.False(t, ok)
		s.Release()
	}
	s.Commit(copy(s.Buffer(), line))
	kept, _ := s.Next()
	s.Keep()
	s.Commit(copy(s.Buffer(), bytes.ToUpper(line)))
	_, ok := s.Next()
	require.True(t, ok)
	s.Release()
	s.Commit(copy(s.Buffer(), "y\n"))
	_, ok = s.Next()
	require.True(t, ok)
	require.Equal(t, strings.Repeat("x", 300), string(kept.Data))
}

func FuzzSplitter(f *testing.F) {
	f.Add([]byte("{\"a\":1}\r\n\n  b  \nlong long line\nlast"), uint16(3), uint16(9))
	f.Add([]byte("é日本\n"), uint16(1), uint16(100))
	f.Fuzz(func(t *testing.T, stream []byte, cut, maxLine uint16) {
		limit := int(maxLine) + 1
		got := split(NewSplitter(limit), bytes.Clone(stream), []int{int(cut)%5000 + 1})
		requireLines(t, reference(stream, limit), got)
	})
}

// FuzzSplitterRelease: whatever was released, the lines are the same, and those that are
// kept do not change.
func FuzzSplitterRelease(f *testing.F) {
	f.Add([]byte("{\"a\":1}\r\n\n  b  \nlong long line\nlast"), uint16(3), uint16(9), uint64(5))
	f.Add([]byte(strings.Repeat("0123456789\n", 500)), uint16(40), uint16(100), uint64(0xF0F1))
	f.Add([]byte(strings.Repeat("0123456789\n", 500)+strings.Repeat("x", 5000)+"\nend"), uint16(700), uint16(20_000), uint64(2))
	f.Fuzz(func(t *testing.T, stream []byte, cut, maxLine uint16, keeps uint64) {
		limit := int(maxLine) + 1
		s := NewSplitter(limit)
		var got []Line
		for rest, round := stream, 0; len(rest) > 0; round++ {
			n := copy(s.Buffer(), rest[:min(len(rest), int(cut)%5000+1)])
			s.Commit(n)
			rest = rest[n:]
			from := len(got)
			for l, ok := s.Next(); ok; l, ok = s.Next() {
				got = append(got, l)
			}
			if keeps>>(round%64)&1 == 1 {
				s.Keep()
				continue
			}
			for i := range got[from:] {
				got[from+i].Data = bytes.Clone(got[from+i].Data)
			}
			s.Release()
		}
		for l, ok := s.Finish(); ok; l, ok = s.Finish() {
			got = append(got, l)
		}
		requireLines(t, reference(stream, limit), got)
	})
}

func BenchmarkSplitter(b *testing.B) {
	for _, size := range []int{200, 2000, 200_000} {
		b.Run(fmt.Sprint(size), func(b *testing.B) {
			stream := bytes.Repeat([]byte(strings.Repeat("a", size-1)+"\n"), max(1, (1<<20)/size))
			b.SetBytes(int64(len(stream)))
			b.ReportAllocs()
			lines := 0
			for b.Loop() {
				s := NewSplitter(0)
				for rest := stream; len(rest) > 0; {
					n := copy(s.Buffer(), rest)
					s.Commit(n)
					rest = rest[n:]
					for {
						if _, ok := s.Next(); !ok {
							break
						}
						lines++
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(lines), "ns/line")
		})
	}
}

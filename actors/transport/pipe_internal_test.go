package transport

import (
	"bytes"
	"io"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
)

func newPipe(exec kernel.Executor) *pipe {
	return &newMemoryProcess(kernel.NewClock(nil), exec).stdout
}

func TestAPipeHoldsWhatAPipeHolds(t *testing.T) {
	t.Parallel()
	s := sim.New(1)
	p := newPipe(s)
	n, err := p.Write(make([]byte, pipeSize))
	require.NoError(t, err)
	assert.Equal(t, pipeSize, n)
	wrote := false
	s.Go(func() {
		n, err := p.Write([]byte("more"))
		assert.NoError(t, err)
		assert.Equal(t, 4, n)
		wrote = true
	})
	require.NoError(t, s.Run(100))
	require.False(t, wrote, "it is full")
	p.push([]byte("dropped"))
	n, err = p.Read(make([]byte, 3))
	require.NoError(t, err)
	assert.Equal(t, 3, n)
	require.NoError(t, s.Run(100))
	require.False(t, wrote, "room for three")
	_, err = p.Read(make([]byte, 1))
	require.NoError(t, err)
	require.NoError(t, s.Run(100))
	require.True(t, wrote)
	require.NoError(t, p.Close())
	rest, err := io.ReadAll(p)
	require.NoError(t, err)
	assert.Len(t, rest, pipeSize)
	assert.True(t, bytes.HasSuffix(rest, []byte("more")))
}

func TestClosingAPipe(t *testing.T) {
	t.Parallel()
	for name, closing := range map[string]func(p *pipe){
		"the write end": func(p *pipe) { _ = p.Close() },
		"the read end":  func(p *pipe) { p.closeRead() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sim.New(1)
			p := newPipe(s)
			_, err := p.Write([]byte("abc"))
			require.NoError(t, err)
			closing(p)
			_, err = p.Write([]byte("x"))
			require.ErrorIs(t, err, io.ErrClosedPipe)
			rest, err := io.ReadAll(p)
			require.NoError(t, err)
			assert.Equal(t, "abc", string(rest), "what was written stays readable")
		})
	}
}

func TestClosingAPipeEndsWaits(t *testing.T) {
	t.Parallel()
	for name, closing := range map[string]func(p *pipe){
		"the write end": func(p *pipe) { _ = p.Close() },
		"the read end":  func(p *pipe) { p.closeRead() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := sim.New(1)
			empty, full := newPipe(s), newPipe(s)
			ends := 0
			s.Go(func() {
				_, err := empty.Read(make([]byte, 1))
				assert.ErrorIs(t, err, io.EOF)
				ends++
			})
			s.Go(func() {
				n, err := full.Write(make([]byte, pipeSize+1))
				assert.ErrorIs(t, err, io.ErrClosedPipe)
				assert.Equal(t, pipeSize, n)
				ends++
			})
			require.NoError(t, s.Run(100))
			require.Zero(t, ends)
			closing(empty)
			closing(full)
			require.NoError(t, s.Run(100))
			assert.Equal(t, 2, ends)
		})
	}
}

// TestAPipeCarriesEveryByte sends random pieces through a pipe, on both seams.
func TestAPipeCarriesEveryByte(t *testing.T) {
	t.Parallel()
	carry := func(exec kernel.Executor, pieces [][]byte, readSize int) []byte {
		p := newPipe(exec)
		exec.Go(func() {
			for _, piece := range pieces {
				if _, err := p.Write(piece); err != nil {
					return
				}
			}
			_ = p.Close()
		})
		got := kernel.NewPromise[[]byte]()
		exec.Go(func() {
			var all []byte
			buf := make([]byte, readSize)
			for {
				n, err := p.Read(buf)
				all = append(all, buf[:n]...)
				if err != nil {
					got.Resolve(all)
					return
				}
			}
		})
		all, _ := got.Wait(t.Context(), exec)
		return all
	}
	rapid.Check(t, func(rt *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(0, pipeSize+100), 0, 8).Draw(rt, "sizes")
		readSize := rapid.IntRange(1, 40_000).Draw(rt, "read size")
		var pieces [][]byte
		for i, n := range sizes {
			piece := make([]byte, n)
			for j := range piece {
				piece[j] = byte(i*31 + j)
			}
			pieces = append(pieces, piece)
		}
		want := bytes.Join(pieces, nil)
		require.True(rt, bytes.Equal(want, carry(sim.New(rapid.Uint64().Draw(rt, "seed")), pieces, readSize)))
		require.True(rt, bytes.Equal(want, carry(kernel.GoExecutor{}, pieces, readSize)))
	})
}

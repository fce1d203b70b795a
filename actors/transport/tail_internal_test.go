package transport

import (
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestATailKeepsTheLastBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		kept := tail{max: 16}
		all := ""
		type reading struct {
			stored []byte
			then   string
		}
		var seen []reading
		for _, p := range rapid.SliceOf(rapid.StringMatching(`[a-z]{0,40}`)).Draw(rt, "pieces") {
			kept.add([]byte(p))
			all += p
			require.Equal(rt, all[max(0, len(all)-16):], kept.String())
			stored := *kept.buf.Load()
			require.LessOrEqual(rt, len(stored), 2*16, "what is too old goes")
			seen = append(seen, reading{stored, string(stored)})
		}
		for _, r := range seen {
			require.Equal(rt, r.then, string(r.stored), "a reader may still have it")
		}
	})
}

// TestATailIsReadWhileItGrows is for the race detector.
func TestATailIsReadWhileItGrows(t *testing.T) {
	t.Parallel()
	kept := tail{max: 1000}
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for len(kept.String()) < 1000 {
			}
		})
	}
	for range 5000 {
		kept.add([]byte("xyz"))
	}
	readers.Wait()
	assert.Equal(t, strings.Repeat("xyz", 334)[2:], kept.String())
}

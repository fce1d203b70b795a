package protocol

import (
	"encoding/json"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMillis(t *testing.T) {
	t.Parallel()
	for m, want := range map[Millis]time.Duration{
		0: 0, 1.5: 1500 * time.Microsecond, -2: -2 * time.Millisecond, 120_000: 2 * time.Minute,
		1e300: math.MaxInt64, -1e300: math.MinInt64,
	} {
		assert.Equal(t, want, m.Duration())
	}
	assert.Zero(t, Millis(math.NaN()).Duration())
	b, err := Marshal(Millis(500))
	require.NoError(t, err)
	assert.Equal(t, "500", string(b))
}

func TestNullable(t *testing.T) {
	t.Parallel()
	type form struct {
		N Nullable[int] `json:"n,omitzero"`
	}
	for in, want := range map[string]Nullable[int]{`{}`: {}, `{"n":null}`: Null[int](), `{"n":0}`: Some(0)} {
		var f form
		require.NoError(t, json.Unmarshal([]byte(in), &f))
		assert.Equal(t, want, f.N, in)
		out, err := Marshal(f)
		require.NoError(t, err)
		assert.Equal(t, in, string(out))
	}
	require.Error(t, json.Unmarshal([]byte(`{"n":"x"}`), new(form)))
}

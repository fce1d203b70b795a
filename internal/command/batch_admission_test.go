package command

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/fleet"
)

func TestSizes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int64{
		"1": 1, "7b": 7, "512K": 512 << 10, "512m": 512 << 20, "8GB": 8 << 30, "8GiB": 8 << 30, "2T": 2 << 40, "8388607T": 8388607 << 40,
		"": 0, "0": 0, "-1": 0, "G": 0, "1.5G": 0, "8X": 0, "8 G": 0, "8KM": 0, "8388608T": 0, "9223372036854775808": 0,
	} {
		var s settings
		err := size(func(s *settings) *int64 { return &s.batch.admission.MaxMemory })(&s, text)
		assert.Equal(t, want == 0, err != nil, "%s: %v", text, err)
		assert.Equal(t, want, s.batch.admission.MaxMemory, text)
	}
}

// Agents that are programs start gently unless a flag says otherwise.
func TestStartsPerSecond(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		args []string
		want float64
	}{
		"a program":                {[]string{"-a", "claude"}, defaultStarts},
		"a program of ACP":         {[]string{"-a", "acp:gemini --acp"}, defaultStarts},
		"given":                    {[]string{"-a", "claude", "--starts-per-second", "0.5"}, 0.5},
		"no limit":                 {[]string{"-a", "claude", "--starts-per-second", "0"}, 0},
		"no program":               {[]string{"-a", "scripted"}, 0},
		"no program, but a number": {[]string{"-a", "scripted", "--starts-per-second", "3"}, 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := parseBatch(t, append(c.args, "tasks.jsonl"))
			require.NoError(t, err)
			err = s.chooseAgent(func(string) string { return "" })
			require.NoError(t, err)
			a, err := s.admit()
			require.NoError(t, err)
			assert.InDelta(t, c.want, a.StartsPerSecond, 0)
			assert.Equal(t, "tasks.out", a.DiskDir)
		})
	}
}

// The limits hold for the agents of the job: three starts, the first ones at 5 a second.
func TestBatchStartsGently(t *testing.T) {
	t.Parallel()
	w, file := newWorld(), taskFile(t, "tasks.jsonl", strings.Repeat("{\"prompt\":\"x\"}\n", 3))
	require.Equal(t, exitOK, w.run("batch", "-a", script(t, answering), file, "-q", "-j", "3", "--starts-per-second", "20"), w.err)
	var s fleet.Summary
	text, err := os.ReadFile(filepath.Join(outOf(file), "summary.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(text, &s))
	assert.Equal(t, 3, s.Accepted)
	assert.GreaterOrEqual(t, s.Ended.Sub(s.Started), 340*time.Millisecond)
}

package fast_test

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/bench/internal/fast"
	"github.com/agent-troupe/troupe/bench/internal/measure"
)

func TestEventsHaveTheirSize(t *testing.T) {
	t.Parallel()
	for _, prompt := range []string{`"stream 700"`, `[{"type":"text","text":"stream 700"}]`, `"hello"`} {
		in := strings.NewReader(`{"type":"control_request","request_id":"i","request":{"subtype":"initialize"}}` + "\n" +
			`{"type":"user","message":{"role":"user","content":` + prompt + `}}` + "\n")
		var out bytes.Buffer
		require.NoError(t, fast.Serve(in, &out, func(name string) string {
			return map[string]string{measure.ModeEnv: measure.Stream, measure.CountEnv: "700"}[name]
		}))
		events := 0
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, `"stream_event"`) {
				require.Len(t, line, fast.EventSize)
				events++
			}
		}
		assert.Equal(t, 700, events)
		assert.Regexp(t, `"result":"\d+ ns"`, out.String())
	}
}

func TestARefusedRequestEndsTheAgent(t *testing.T) {
	t.Parallel()
	in := strings.NewReader(`{"type":"user","message":{"role":"user","content":"hook 1"}}` + "\n" +
		`{"type":"control_response","response":{"subtype":"error","request_id":"r1","error":"no"}}` + "\n")
	require.ErrorContains(t, fast.Serve(in, &bytes.Buffer{}, os.Getenv), "refused")
}

package sessions_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
)

// fake is an agent that writes given lines in its turn and keeps what the host
// answers.
const fake = `#!/usr/bin/env python3
import sys, json, os, base64, time
out = sys.stdout.buffer
log = open(os.environ["FAKE_LOG"], "ab", buffering=0)
lines = [base64.b64decode(l) for l in open(os.environ["FAKE_LINES"]).read().split()]
want = int(os.environ.get("FAKE_WANT", "0"))
started = False
got = 0
def say(b):
    out.write(b + b"\n"); out.flush()
for line in sys.stdin.buffer:
    log.write(line)
    try: m = json.loads(line)
    except Exception: continue
    if m.get("type") == "control_request":
        sub = m["request"].get("subtype")
        say(json.dumps({"type":"control_response","response":{"subtype":"success","request_id":m["request_id"],"response":{"commands":[],"agents":[],"models":[],"hook_on_failure_supported":True}}}).encode())
    elif m.get("type") == "user" and not started:
        started = True
        if os.environ.get("FAKE_SPAWN"):
            import subprocess
            subprocess.run(["sh", "-c", os.environ["FAKE_SPAWN"]])
        for l in lines:
            if l.startswith(b"SLEEP "):
                time.sleep(float(l[6:])); continue
            say(l)
        if want == 0:
            time.sleep(0.7)
            say(json.dumps({"type":"result","subtype":"success","is_error":False,"result":"ok","session_id":"s","num_turns":1,"duration_ms":1,"duration_api_ms":1,"total_cost_usd":0,"usage":{},"uuid":"u"}).encode())
    elif m.get("type") == "control_response":
        got += 1
        if want and got >= want:
            time.sleep(0.2)
            say(json.dumps({"type":"result","subtype":"success","is_error":False,"result":"ok","session_id":"s","num_turns":1,"duration_ms":1,"duration_api_ms":1,"total_cost_usd":0,"usage":{},"uuid":"u"}).encode())
`

type answers struct {
	lines []string
	err   error
	log   []string
}

// converse runs a turn in which the agent writes the lines.
func converse(t *testing.T, o *sdk.Options, lines ...string) answers {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "agent")
	require.NoError(t, os.WriteFile(path, []byte(fake), 0o700))
	var enc []string
	for _, l := range lines {
		enc = append(enc, b64(l))
	}
	require.NoError(t, os.WriteFile(dir+"/lines", []byte(strings.Join(enc, "\n")), 0o600))
	rt, err := runtime.New(runtime.Config{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
		defer cancel()
		_ = rt.Shutdown(ctx)
	})
	o.Backend, o.Runtime, o.Cwd = sdk.Claude(sdk.ClaudeConfig{Path: path}), rt, dir
	if o.Env == nil {
		o.Env = map[string]string{}
	}
	o.Env["FAKE_LOG"], o.Env["FAKE_LINES"] = dir+"/log", dir+"/lines"
	var mu sync.Mutex // events come on goroutines of the runtime, some of them after Close
	var events []string
	o.OnEvent = func(e sdk.EventRecord) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, fmt.Sprintf("%v", e.Event))
	}
	c := sdk.NewClient(o)
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	require.NoError(t, c.Connect(ctx))
	turn, err := c.Send(ctx, sdk.UserText("go"))
	require.NoError(t, err)
	_, err = sdk.Collect(turn.Messages(ctx))
	_ = c.Close(ctx)
	raw, _ := os.ReadFile(dir + "/log")
	mu.Lock()
	a := answers{err: err, log: slices.Clone(events)}
	mu.Unlock()
	for line := range bytes.SplitSeq(raw, []byte("\n")) {
		var m struct{ Type string }
		if json.Unmarshal(line, &m) == nil && m.Type == "control_response" {
			a.lines = append(a.lines, string(line))
		}
	}
	return a
}

func b64(s string) string {
	const table = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	var b strings.Builder
	for i := 0; i < len(s); i += 3 {
		var v uint32
		n := min(3, len(s)-i)
		for j := range 3 {
			v <<= 8
			if j < n {
				v |= uint32(s[i+j])
			}
		}
		for j := range 4 {
			if j <= n {
				b.WriteByte(table[v>>(18-6*j)&63])
			} else {
				b.WriteByte('=')
			}
		}
	}
	return b.String()
}

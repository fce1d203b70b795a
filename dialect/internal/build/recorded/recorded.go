package recorded

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/agent-troupe/troupe/protocol"
)

// Line is one line that went over a pipe.
type Line struct {
	Dir   string // "sdk->cli" or "cli->sdk"
	Frame protocol.Frame
}

// FromHost reports whether the SDK wrote the line.
func (l Line) FromHost() bool { return l.Dir == "sdk->cli" }

// Lines reads a recording, without lines that are not frames.
func Lines(t *testing.T, path string) []Line {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var out []Line
	lines := bufio.NewScanner(bytes.NewReader(raw))
	lines.Buffer(nil, len(raw)+1)
	for lines.Scan() {
		var entry struct {
			Dir string          `json:"dir"`
			Msg json.RawMessage `json:"msg"`
		}
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if frame, err := protocol.ParseFrame(entry.Msg); err == nil {
			out = append(out, Line{entry.Dir, frame})
		}
	}
	if err := lines.Err(); err != nil || len(out) == 0 {
		t.Fatalf("%s: no lines: %v", path, err)
	}
	return out
}

// Exchange is a request of the agent and the SDK's answer to it.
type Exchange struct {
	ID       string
	Request  protocol.Frame
	Response json.RawMessage // inner response of a success
	Error    string          // text of an error
}

// Exchanges pairs the agent's requests of one kind with their answers. A request without an answer is left out.
func Exchanges(t *testing.T, path, subtype string) []Exchange {
	t.Helper()
	asked := map[string]protocol.Frame{}
	var out []Exchange
	for _, l := range Lines(t, path) {
		switch {
		case !l.FromHost() && l.Frame.Type == protocol.TypeControlRequest && l.Frame.Subtype == subtype:
			asked[l.Frame.RequestID] = l.Frame
		case l.FromHost() && l.Frame.Type == protocol.TypeControlResponse:
			answer, err := protocol.DecodeControlResponse(l.Frame)
			if err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			if request, ok := asked[answer.RequestID]; ok {
				out = append(out, Exchange{answer.RequestID, request, answer.Response, answer.Error})
			}
		}
	}
	if len(out) == 0 {
		t.Fatalf("%s: no %s was answered", path, subtype)
	}
	return out
}

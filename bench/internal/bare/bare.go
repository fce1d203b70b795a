package bare

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/agent-troupe/troupe/bench/internal/measure"
)

// Run has one turn with the agent and returns its figures.
func Run(agent []string, env []string, mode string, n int) (line measure.Line, err error) {
	cmd := exec.Command(agent[0], agent[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return line, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return line, err
	}
	if err := cmd.Start(); err != nil {
		return line, err
	}
	l := &loop{in: in, out: bufio.NewReaderSize(out, 64<<10)}
	line = measure.Line{Mode: mode, N: n, Sessions: 1}
	err = l.turn(mode, n, &line)
	_ = in.Close()
	_, _ = io.Copy(io.Discard, l.out) // so that it can exit
	return line, errors.Join(err, cmd.Wait())
}

type loop struct {
	in  io.Writer
	out *bufio.Reader
}

func (l *loop) turn(mode string, n int, figures *measure.Line) error {
	if _, err := io.WriteString(l.in, `{"type":"control_request","request_id":"init","request":{"subtype":"initialize",`+
		`"hooks":{"PreToolUse":[{"matcher":"Bash","hookCallbackIds":["hook_0"]}]},"sdkMcpServers":["bench"]}}`+"\n"); err != nil {
		return err
	}
	if err := l.until(`"control_response"`, figures); err != nil {
		return err
	}
	began, used := time.Now(), measure.CPU()
	if _, err := fmt.Fprintf(l.in, `{"type":"user","message":{"role":"user","content":%q},"parent_tool_use_id":null,"session_id":""}`+"\n",
		measure.Prompt(mode, n)); err != nil {
		return err
	}
	err := l.until(`"result"`, figures)
	figures.WallMillis = float64(time.Since(began).Microseconds()) / 1e3
	figures.CPUMillis = float64((measure.CPU() - used).Microseconds()) / 1e3
	return err
}

// until reads lines up to the first of a type, given with its quotes.
func (l *loop) until(typ string, figures *measure.Line) error {
	wanted := []byte(`{"type":` + typ)
	for {
		line, err := l.out.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("before the line of type %s: %w", typ, err)
		}
		figures.Messages++
		switch {
		case bytes.HasPrefix(line, []byte(`{"type":"control_request"`)):
			err = l.answer(line)
		case bytes.HasPrefix(line, wanted):
			var result struct {
				Result string `json:"result"`
			}
			err = json.Unmarshal(line, &result)
			figures.CLINanos = measure.Nanoseconds(result.Result)
			return err
		}
		if err != nil {
			return err
		}
	}
}

type request struct {
	ID      string `json:"request_id"`
	Request struct {
		Subtype string          `json:"subtype"`
		Input   json.RawMessage `json:"input"`
		Message struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Arguments struct {
					Text string `json:"text"`
				} `json:"arguments"`
			} `json:"params"`
		} `json:"message"`
	} `json:"request"`
}

func (l *loop) answer(line []byte) error {
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return err
	}
	response := []byte(`{}`)
	switch r.Request.Subtype {
	case "can_use_tool":
		response = fmt.Appendf(nil, `{"behavior":"allow","updatedInput":%s}`, r.Request.Input)
	case "mcp_message":
		result := []byte(`{}`)
		if r.Request.Message.Method == "tools/call" {
			var err error
			if result, err = json.Marshal(map[string]any{
				"content": []any{map[string]string{"type": "text", "text": r.Request.Message.Params.Arguments.Text}},
			}); err != nil {
				return err
			}
		}
		id := r.Request.Message.ID
		if id == nil {
			id = []byte("0")
		}
		response = fmt.Appendf(nil, `{"mcp_response":{"jsonrpc":"2.0","id":%s,"result":%s}}`, id, result)
	}
	_, err := fmt.Fprintf(l.in, `{"type":"control_response","response":{"subtype":"success","request_id":%q,"response":%s}}`+"\n", r.ID, response)
	return err
}

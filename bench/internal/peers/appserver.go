package peers

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"sync"
	"time"
)

// appServer is a client of a process with many sessions, which speaks the part of codex
// app-server's protocol (0.171.0) that the task needs: JSON-RPC, a message a line.
type appServer struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   tail          // of stderr
	ended chan struct{} // no more lines come

	mu    sync.Mutex
	calls []chan rpc           // by id
	turns map[string]chan turn // by thread
}

// rpc is a message, in either direction.
type rpc struct {
	ID     *int            `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *rpcError       `json:"error,omitempty"`
}

type rpcError struct {
	Code    int    `json:"code,omitempty"`
	Message string `json:"message"`
}

// turn is how a turn has ended.
type turn struct {
	Status string    `json:"status"`
	Error  *rpcError `json:"error,omitempty"`
}

type (
	threadRef struct {
		ID string `json:"id"`
	}
	threadStart struct {
		Cwd      string `json:"cwd"`
		Approval string `json:"approvalPolicy"`
		Sandbox  string `json:"sandbox"`
	}
	threadStarted struct {
		Thread threadRef `json:"thread"`
	}
	textInput struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	turnStart struct {
		ThreadID string      `json:"threadId"`
		Input    []textInput `json:"input"`
	}
	turnCompleted struct {
		ThreadID string `json:"threadId"`
		Turn     turn   `json:"turn"`
	}
)

const completed = "completed"

func startServer(cmd *exec.Cmd) (*appServer, error) {
	s := &appServer{cmd: cmd, ended: make(chan struct{}), turns: map[string]chan turn{}}
	cmd.Stderr = &s.out
	cmd.WaitDelay = time.Second
	var err error
	if s.in, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	go s.read(out)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client := map[string]any{"clientInfo": map[string]string{"name": "peers", "version": "1"}}
	if err := s.call(ctx, "initialize", client, nil); err != nil {
		s.close()
		return nil, err
	}
	return s, s.send(rpc{Method: "initialized"})
}

func (s *appServer) read(out io.Reader) {
	defer close(s.ended)
	lines := bufio.NewReader(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m rpc
		if json.Unmarshal(line, &m) != nil {
			continue
		}
		s.mu.Lock()
		switch {
		case m.Method == "turn/completed":
			var p turnCompleted
			if json.Unmarshal(m.Params, &p) != nil || s.turns[p.ThreadID] == nil {
				break
			}
			s.turns[p.ThreadID] <- p.Turn // it has room
			delete(s.turns, p.ThreadID)
		case m.Method == "" && m.ID != nil && *m.ID < len(s.calls):
			select {
			case s.calls[*m.ID] <- m:
			default: // a second answer
			}
		}
		s.mu.Unlock()
	}
}

func (s *appServer) send(m rpc) error {
	line, err := json.Marshal(m)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err = s.in.Write(append(line, '\n'))
	return err
}

func (s *appServer) call(ctx context.Context, method string, params, result any) error {
	data, err := json.Marshal(params)
	if err != nil {
		return err
	}
	answer := make(chan rpc, 1)
	s.mu.Lock()
	id := len(s.calls)
	s.calls = append(s.calls, answer)
	s.mu.Unlock()
	if err := s.send(rpc{ID: &id, Method: method, Params: data}); err != nil {
		return fmt.Errorf("%s: %w: %s", method, err, why(s.out.String()))
	}
	select {
	case m := <-answer:
		if m.Error != nil {
			return fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		if result == nil {
			return nil
		}
		return json.Unmarshal(m.Result, result)
	case <-s.ended:
		return fmt.Errorf("%s: the process has ended: %s", method, why(s.out.String()))
	case <-ctx.Done():
		return fmt.Errorf("%s: %w", method, context.Cause(ctx))
	}
}

// open starts a session in the directory.
func (s *appServer) open(ctx context.Context, dir string) (id string, err error) {
	var started threadStarted
	err = s.call(ctx, "thread/start", threadStart{Cwd: dir, Approval: "never", Sandbox: "danger-full-access"}, &started)
	return started.Thread.ID, err
}

// task has a turn, and waits for its end.
func (s *appServer) task(ctx context.Context, id, prompt string) error {
	end := make(chan turn, 1)
	s.mu.Lock()
	s.turns[id] = end
	s.mu.Unlock()
	if err := s.call(ctx, "turn/start", turnStart{ThreadID: id, Input: []textInput{{"text", prompt}}}, nil); err != nil {
		return err
	}
	select {
	case t := <-end:
		if t.Status == completed {
			return nil
		}
		if t.Error == nil {
			return fmt.Errorf("the turn ended as %s", t.Status)
		}
		return fmt.Errorf("the turn ended as %s: %s", t.Status, t.Error.Message)
	case <-s.ended:
		return fmt.Errorf("the process has ended: %s", why(s.out.String()))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// close ends the process.
func (s *appServer) close() {
	_ = s.in.Close() // it ends when its input does
	select {
	case <-s.ended:
	case <-time.After(10 * time.Second):
		_ = s.cmd.Process.Kill() // it may end just now
		<-s.ended
	}
	_ = s.cmd.Wait() // how is of no interest
}

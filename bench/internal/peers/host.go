package peers

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"sync"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/bench/internal/drive"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/sdk"
)

// hosted are embedded sessions of this process, driven as appServer does it.
type hosted struct {
	backend sdk.Backend

	mu      sync.Mutex // also of the writer
	out     *json.Encoder
	clients []*sdk.Client
}

// host serves sessions at the model of that URL until its input ends. It stores them, as the
// others do.
func host(in io.Reader, out io.Writer, url, store string) error {
	m := model.NewAnthropic(model.AnthropicConfig{Config: model.Config{URL: url}})
	h := &hosted{backend: embedded.New(embedded.Config{Model: m, Name: "m", Dir: store}), out: json.NewEncoder(out)}
	ctx := context.Background()
	lines := bufio.NewReader(in)
	line, err := lines.ReadBytes('\n')
	for ; err == nil; line, err = lines.ReadBytes('\n') {
		var m rpc
		if err := json.Unmarshal(line, &m); err != nil {
			return err
		}
		if m.ID != nil {
			go h.serve(ctx, m)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	h.mu.Lock()
	clients := h.clients
	h.mu.Unlock()
	return errors.Join(err, drive.Each(len(clients), 64, func(i int) error { return clients[i].Close(ctx) }))
}

// serve answers one call, and has the turn that it asks for.
func (h *hosted) serve(ctx context.Context, m rpc) {
	var result any = struct{}{}
	var err error
	var then func()
	switch m.Method {
	case "thread/start":
		result, err = h.open(ctx, m.Params)
	case "turn/start":
		then, err = h.turn(ctx, m.Params)
	}
	answer := rpc{ID: m.ID}
	if err == nil {
		answer.Result, err = json.Marshal(result)
	}
	if err != nil {
		answer.Error = &rpcError{Code: -32000, Message: err.Error()}
	}
	h.write(answer)
	if then != nil {
		then()
	}
}

func (h *hosted) write(m rpc) {
	h.mu.Lock()
	defer h.mu.Unlock()
	_ = h.out.Encode(m) // the other end sees that the process has gone
}

func (h *hosted) open(ctx context.Context, params json.RawMessage) (*threadStarted, error) {
	var p threadStart
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	c := sdk.NewClient(&sdk.Options{Backend: h.backend, Cwd: p.Cwd, AllowedTools: []string{"Read", "Bash"}})
	if err := c.Connect(ctx); err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clients = append(h.clients, c)
	return &threadStarted{Thread: threadRef{ID: strconv.Itoa(len(h.clients) - 1)}}, nil
}

func (h *hosted) turn(ctx context.Context, params json.RawMessage) (then func(), err error) {
	var p turnStart
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, err
	}
	i, err := strconv.Atoi(p.ThreadID)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err != nil || i < 0 || i >= len(h.clients) || len(p.Input) == 0 {
		return nil, errors.New("there is no such thread, or no input")
	}
	c := h.clients[i]
	return func() {
		ended := turnCompleted{ThreadID: p.ThreadID, Turn: turn{Status: completed}}
		t, err := c.Send(ctx, sdk.UserText(p.Input[0].Text))
		if err == nil {
			var r *sdk.ResultMessage
			if r, err = t.Result(ctx); err == nil && r.Failed() {
				err = errors.New(string(r.Raw()))
			}
		}
		if err != nil {
			ended.Turn = turn{Status: "failed", Error: &rpcError{Message: err.Error()}}
		}
		data, err := json.Marshal(ended)
		if err == nil {
			h.write(rpc{Method: "turn/completed", Params: data})
		}
	}, nil
}

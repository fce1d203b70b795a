package simtests

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// part is a session that a part of the user's is called in.
type part struct {
	rt     *runtime.Runtime
	client *sdk.Client

	mu     sync.Mutex
	failed []error
	ended  *kernel.Promise[struct{}]
}

// openPart opens a session in a separate runtime, with program as its agent.
func openPart(ctx context.Context, program agent.Program, o *sdk.Options) (*part, error) {
	rt, err := runtime.New(runtime.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	s := &part{rt: rt, ended: kernel.NewPromise[struct{}]()}
	own := *o
	own.Runtime, own.Backend, own.Spawner, own.Resume, own.Continue = rt, program, nil, "", false
	tell := own.OnEvent
	own.OnEvent = func(r session.EventRecord) {
		s.onEvent(r.Event)
		if tell != nil {
			tell(r)
		}
	}
	s.client = sdk.NewClient(&own)
	if err := s.client.Connect(ctx); err != nil {
		return nil, errors.Join(err, rt.Shutdown(context.WithoutCancel(ctx)))
	}
	return s, nil
}

func (s *part) onEvent(e session.Event) {
	switch e := e.(type) {
	case *session.CallbackFailed:
		s.mu.Lock()
		defer s.mu.Unlock()
		s.failed = append(s.failed, e.Err)
	case *session.Ended:
		s.ended.Resolve(struct{}{})
	}
}

// close ends the session and returns the failures of its callbacks.
func (s *part) close(ctx context.Context) error {
	ctx = context.WithoutCancel(ctx)
	err := s.client.Close(ctx)
	if _, waited := s.ended.Wait(ctx, kernel.GoExecutor{}); waited != nil { // the last event
		err = errors.Join(err, waited)
	}
	err = errors.Join(err, s.rt.Shutdown(ctx))
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(append(s.failed, err)...)
}

// probe is an agent that makes one request of its host and keeps the answer.
type probe struct {
	request func(*protocol.InitializeRequest) (agent.Object, error)
	answer  *kernel.Promise[json.RawMessage]
}

// ask opens a session and returns the answer to the request, or nil. The error is that
// of the session, or of its callback.
func (p *probe) ask(ctx context.Context, o *sdk.Options) (json.RawMessage, error) {
	p.answer = kernel.NewPromise[json.RawMessage]()
	s, err := openPart(ctx, p, o)
	if err != nil {
		return nil, err
	}
	answer, err := p.answer.Wait(ctx, kernel.GoExecutor{})
	if closed := s.close(ctx); closed != nil {
		err = errors.Join(closed, err)
	}
	return answer, err
}

// AgentName implements [agent.Program].
func (p *probe) AgentName() string { return "probe" }

// probeID is the id of the request.
const probeID = "probe_1"

// Serve implements [agent.Program].
func (p *probe) Serve(_ agent.Launch, port agent.Port) agent.Exit {
	for {
		line, err := port.Next(-1)
		if err != nil {
			p.answer.Fail(errors.New("the session ended before it had answered"))
			return agent.Exit{}
		}
		f, err := protocol.ParseFrame(line)
		switch {
		case err != nil:
		case f.Type == "control_request" && f.Subtype == "initialize":
			_ = write(port, reply(f.RequestID)) // a host that is gone ends Next
			p.makeRequest(port, f.Body())
		case f.Type == "control_request":
			_ = write(port, reply(f.RequestID))
		case f.Type == "control_response" && f.RequestID == probeID:
			p.answered(f)
		}
	}
}

// makeRequest makes the request.
func (p *probe) makeRequest(port agent.Port, hello json.RawMessage) {
	var in protocol.InitializeRequest
	err := protocol.Unmarshal(hello, &in)
	var request agent.Object
	if err == nil {
		request, err = p.request(&in)
	}
	if err == nil {
		err = write(port, agent.Object{"type": "control_request", "request_id": probeID, "request": request})
	}
	if err != nil {
		p.answer.Fail(err)
	}
}

func (p *probe) answered(f protocol.Frame) {
	var body struct {
		Response json.RawMessage `json:"response"`
		Error    string          `json:"error"`
	}
	switch err := json.Unmarshal(f.Body(), &body); {
	case err != nil:
		p.answer.Fail(err)
	case f.Subtype != "success":
		p.answer.Fail(errors.New("the host answers: " + body.Error))
	default:
		p.answer.Resolve(body.Response)
	}
}

func reply(id string) agent.Object {
	return agent.Object{"type": "control_response", "response": agent.Object{
		"subtype": "success", "request_id": id, "response": agent.Object{"commands": []any{}},
	}}
}

func write(port agent.Port, o agent.Object) error {
	raw, err := json.Marshal(o)
	if err != nil {
		return err
	}
	return port.Write(append(raw, '\n'))
}

// gated is an agent that makes one tool call, whose tool does nothing.
type gated struct {
	tool  string
	input agent.Object

	mu  sync.Mutex
	got Permission
}

// AgentName implements [agent.Program].
func (g *gated) AgentName() string { return "gated" }

// Serve implements [agent.Program].
func (g *gated) Serve(l agent.Launch, port agent.Port) agent.Exit {
	return agent.Run(l, port, agent.Config{Turn: func(t *agent.Turn) error {
		_, own, hosts := t.MCPTool(g.tool)
		return t.UseTools(agent.ToolCall{Name: g.tool, Input: g.input, Unknown: hosts && own == "", Run: func(_ *agent.Strand, input agent.Object) (agent.ToolResult, error) {
			raw, err := json.Marshal(input)
			g.mu.Lock()
			defer g.mu.Unlock()
			g.got.Allowed, g.got.Input = true, raw
			return agent.ToolResult{Content: "ok"}, err
		}})
	}})
}

// play has the call made, and reads what the model reads of it.
func (g *gated) play(ctx context.Context, c *sdk.Client) error {
	messages, result, err := Ask(ctx, c, "go on")
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.got.Allowed {
		return nil
	}
	for _, m := range messages {
		for _, r := range sdk.ToolResults(m) {
			g.got.Message = r.Content.Text()
		}
	}
	g.got.Interrupt = result.Failed()
	return nil
}

package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/acp/acpclient"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
	acpdialect "github.com/agent-troupe/troupe/dialect/acp"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// acpAgent is an agent of the Agent Client Protocol that dies now and then. Its processes share
// the session, and the effects of its tools.
type acpAgent struct {
	rng     *rand.Rand
	dies    float64 // before it writes a line
	deaths  int
	effects []string // calls that had their effect
}

func (*acpAgent) AgentName() string { return "acp in memory" }

// acpProcess is one process of it.
type acpProcess struct {
	*acpAgent
	port      agent.Port
	exit      *agent.Exit
	calls     int
	cancelled bool
}

type acpMessage struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result struct {
		Outcome struct {
			OptionID string `json:"optionId"`
		} `json:"outcome"`
	} `json:"result"`
}

// Serve implements [agent.Program].
func (a *acpAgent) Serve(_ agent.Launch, port agent.Port) agent.Exit {
	p := &acpProcess{acpAgent: a, port: port}
	for p.exit == nil {
		if m, ok := p.next(); ok {
			p.serve(m)
		}
	}
	return *p.exit
}

func (p *acpProcess) next() (m acpMessage, ok bool) {
	raw, err := p.port.Next(-1)
	if err != nil {
		p.exit = &agent.Exit{}
		return m, false
	}
	if json.Unmarshal(raw, &m) == nil && m.Method == "session/cancel" {
		p.cancelled = true
	}
	return m, true
}

func (p *acpProcess) write(format string, args ...any) {
	if p.exit == nil && p.rng.Float64() < p.dies {
		p.deaths++
		p.exit = &agent.Exit{Signal: "KILL"}
	}
	if p.exit == nil && p.port.Write(fmt.Appendf(nil, `{"jsonrpc":"2.0",`+format+"}\n", args...)) != nil {
		p.exit = &agent.Exit{Code: 1}
	}
}

func (p *acpProcess) update(format string, args ...any) {
	p.write(`"method":"session/update","params":{"sessionId":"acp-1","update":` + fmt.Sprintf(format, args...) + `}`)
}

func (p *acpProcess) serve(m acpMessage) {
	switch m.Method {
	case "initialize":
		p.write(`"id":%s,"result":{"protocolVersion":1,"agentCapabilities":{"loadSession":true}}`, m.ID)
	case "session/new":
		p.write(`"id":%s,"result":{"sessionId":"acp-1"}`, m.ID)
	case "session/load":
		p.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"history"}}`)
		p.write(`"id":%s,"result":{}`, m.ID)
	case "session/prompt":
		p.turn(m.ID)
	}
}

// turn is text, a call that asks, its result, and text.
func (p *acpProcess) turn(id json.RawMessage) {
	p.cancelled = false
	p.calls++
	call := fmt.Sprintf("call-%d-%d", p.deaths, p.calls)
	p.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"first"}}`)
	p.update(`{"sessionUpdate":"tool_call","toolCallId":%q,"title":"Pay","kind":"execute","status":"pending","rawInput":{"call":%q}}`, call, call)
	p.write(`"id":"ask","method":"session/request_permission","params":{"sessionId":"acp-1","toolCall":{"toolCallId":%q,"title":"Pay","kind":"execute","rawInput":{"call":%q}},`+
		`"options":[{"optionId":"yes","name":"Yes","kind":"allow_once"},{"optionId":"no","name":"No","kind":"reject_once"}]}`, call, call)
	status := "failed"
	for p.exit == nil {
		m, ok := p.next()
		if ok && m.Method == "" && string(m.ID) == `"ask"` {
			if m.Result.Outcome.OptionID == "yes" {
				p.effects = append(p.effects, call)
				status = "completed"
			}
			break
		}
	}
	if p.rng.IntN(3) > 0 { // else the call is left open
		p.update(`{"sessionUpdate":"tool_call_update","toolCallId":%q,"status":%q,"rawOutput":"done"}`, call, status)
	}
	p.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"last"}}`)
	stop := "end_turn"
	if p.cancelled {
		stop = "cancelled"
	}
	p.write(`"id":%s,"result":{"stopReason":%q}`, id, stop)
}

// acpUser is what one history shows of a session over the protocol.
type acpUser struct {
	allowed map[string]bool // calls that the callback has allowed
	calls   []string        // in the order in which the user saw them
	results map[string]int  // of calls
	ended   int             // turns with a result
	failed  int             // turns with an error
}

// callOf is the call that an input names.
func callOf(input json.RawMessage) string {
	var in struct {
		Call string `json:"call"`
	}
	_ = json.Unmarshal(input, &in)
	return in.Call
}

// overACP plays four turns, of which some are interrupted, and closes the session.
func overACP(w *world, a *acpAgent) (u acpUser, err error) {
	ctx := context.Background()
	u = acpUser{allowed: map[string]bool{}, results: map[string]int{}}
	s, err := w.Open(ctx, runtime.Spec{
		ID: "acp", Dialect: acpdialect.New("agent"), ProgramPlace: "acp",
		Translate: func(s backend.Seams, process session.Spawner) session.Spawner {
			return &acpclient.Spawner{Process: process, Seams: s}
		},
		Options: session.Options{
			Cwd: "/", MaxRestarts: 8, Spawner: transport.InMemory{Clock: w.Clock(), Exec: w.Executor(), Program: a},
			CanUseTool: func(_ context.Context, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
				if len(u.allowed)%3 == 2 {
					return protocol.PermissionResult{Behavior: protocol.BehaviorDeny, Message: "no"}, nil
				}
				u.allowed[callOf(r.Input)] = true
				return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil
			},
		},
	})
	if err != nil {
		return u, err
	}
	r, err := s.Read()
	require.NoError(w, err)
	read := w.Task(func() {
		defer r.Close()
		for {
			m, err := r.Next(ctx)
			if err != nil {
				return
			}
			u.saw(m)
		}
	})
	for i := range 4 {
		if a.rng.IntN(3) == 0 {
			interrupted := w.Task(func() {
				w.Pass(time.Duration(a.rng.IntN(3)) * time.Millisecond)
				_ = s.Call(ctx, protocol.InterruptRequest{}, nil, time.Minute) // it may have died
			})
			defer interrupted()
		}
		if err := say(s, fmt.Sprint("prompt ", i)); err != nil {
			u.failed++
		} else {
			u.ended++
		}
	}
	err = s.Close(ctx)
	read()
	return u, err
}

func (u *acpUser) saw(m protocol.Message) {
	switch m := m.(type) {
	case *protocol.AssistantMessage:
		for _, b := range m.Message.Content {
			if use, ok := b.(*protocol.ToolUseBlock); ok {
				u.calls = append(u.calls, use.ID)
			}
		}
	case *protocol.UserMessage:
		for _, b := range m.Message.Content {
			if result, ok := b.(*protocol.ToolResultBlock); ok {
				u.results[result.ToolUseID]++
			}
		}
	}
}

// TestACPWhileThingsDie: agents of the Agent Client Protocol and actors die at random moments.
// Each turn ends, with a result or an error. A call has an effect only if the callback has
// allowed it. Each call that the user saw has one result, unless its process died.
func TestACPWhileThingsDie(t *testing.T) {
	t.Parallel()
	ended, deaths, allowed, seeds := 0, 0, 0, sim.Seeds(t, 60, 5)
	for seed := range seeds {
		rng := rand.New(rand.NewPCG(seed, 23))
		a := &acpAgent{rng: rng, dies: float64(seed%3) * 0.02}
		kills := map[int]bool{}
		for range rng.IntN(3) {
			kills[rng.IntN(150)] = true
		}
		w := newWorld(t, seed, killingWhen(func(n int, _ string, at kernel.Moment) bool {
			dies := at == kernel.BeforeMessage && kills[n]
			delete(kills, n)
			return dies
		}))
		u, err := overACP(w, a)
		w.Finish()
		if a.deaths == 0 {
			require.NoError(w, err)
			require.Equal(w, 4, u.ended)
		}
		for _, call := range a.effects {
			require.True(w, u.allowed[call], "%s had its effect", call)
		}
		seen := map[string]bool{}
		for _, call := range u.calls {
			require.False(w, seen[call], "%s was shown twice", call)
			seen[call] = true
			require.LessOrEqual(w, u.results[call], 1, call)
			if a.deaths == 0 {
				require.Equal(w, 1, u.results[call], call)
			}
		}
		for call := range u.results {
			require.True(w, seen[call], "a result of %s, which was not shown", call)
		}
		ended, deaths, allowed = ended+u.ended, deaths+a.deaths, allowed+len(u.allowed)
		if err != nil {
			require.True(w, errors.As(err, new(*session.RecoveryError)) || errors.As(err, new(*session.ExitError)), "%v", err)
		}
	}
	require.Positive(t, deaths)
	require.Greater(t, ended, int(seeds))
	require.Greater(t, allowed, int(seeds))
}

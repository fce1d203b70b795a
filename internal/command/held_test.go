package command

import (
	"sync/atomic"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/session"
)

// held is an agent in this process that waits until the test lets it continue: on a busy machine no delay is long
// enough for what the test does meanwhile.
type held struct {
	play func(t *agent.Turn, wait func(*agent.Lane) error) error // a turn
	free atomic.Bool
}

func (*held) AgentName() string { return "held" }

func (h *held) Serve(l agent.Launch, p agent.Port) agent.Exit {
	wait := func(l *agent.Lane) (err error) {
		for err == nil && !h.free.Load() {
			err = l.Sleep(time.Millisecond)
		}
		return err
	}
	return agent.Run(l, p, agent.Config{Turn: func(t *agent.Turn) error { return h.play(t, wait) }})
}

// add makes it an agent of the command, with the name held.
func (h *held) add(w *world) {
	w.agents = append(w.agents, Agent{Name: h.AgentName(), Backend: func(string) (session.Backend, error) { return h, nil }})
}

// asksLater begins, and asks for a call once it is free. In its second turn it says what it has heard.
func asksLater() *held {
	return &held{play: func(t *agent.Turn, wait func(*agent.Lane) error) error {
		if t.Index() > 0 {
			return t.Text("heard <" + t.Prompt() + ">")
		}
		err := t.Text("begun")
		if err == nil {
			err = wait(t.Lane)
		}
		if err != nil {
			return err
		}
		return t.UseTools(agent.ToolCall{Name: "Bash", Gate: agent.GateAsk, Run: func(*agent.Strand, agent.Object) (agent.ToolResult, error) {
			return agent.ToolResult{Content: "done"}, nil
		}})
	}}
}

// endsLater has a task in the background that ends once it is free, and says so in another turn. After that it says
// what it has heard.
func endsLater() *held {
	return &held{play: func(t *agent.Turn, wait func(*agent.Lane) error) error {
		if t.Index() > 0 {
			return t.Text("heard <" + t.Prompt() + ">")
		}
		return t.UseTools(t.AgentCall(agent.AgentSpec{Description: "make", Background: true, Play: wait, Then: func(t *agent.Turn) error { return t.Text("it is made") }}))
	}}
}

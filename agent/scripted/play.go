package scripted

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/agent"
)

// player plays steps on a lane.
type player struct {
	*agent.Lane

	run    *run
	turn   *agent.Turn // nil in a background task
	prompt string
	answer json.RawMessage
}

func (p *player) play(steps Steps) error {
	for i, step := range steps {
		p.run.agent.Record.reach(&steps[i])
		if err := step.play(p); err != nil {
			return err
		}
	}
	return nil
}

// on is the same player on another lane.
func (p *player) on(l *agent.Lane) *player {
	q := *p
	q.Lane = l
	return &q
}

// fill replaces the names in a text.
func (p *player) fill(s string) string {
	if !strings.Contains(s, "${") {
		return s
	}
	n, history := 0, ""
	if p.turn != nil {
		n, history = p.turn.Index(), strings.Join(p.turn.History(), " | ")
	}
	return strings.NewReplacer(
		"${prompt}", p.prompt, "${turn}", strconv.Itoa(n), "${history}", history,
		"${session}", p.SessionID(), "${answer}", string(p.answer),
	).Replace(s)
}

// fillAll replaces the names in every text of a value.
func (p *player) fillAll(v any) any {
	switch v := v.(type) {
	case string:
		return p.fill(v)
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = p.fillAll(v[i])
		}
		return out
	case map[string]any:
		return p.object(v)
	}
	return v
}

func (p *player) object(m map[string]any) agent.Object {
	out := make(agent.Object, len(m))
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out[k] = p.fillAll(m[k])
	}
	return out
}

func (s Text) play(p *player) error     { return p.Text(p.fill(string(s))) }
func (s Thinking) play(p *player) error { return p.Thinking(p.fill(string(s))) }
func (s Delay) play(p *player) error    { return p.Sleep(time.Duration(s)) }

func (s Raw) play(p *player) error {
	p.Lane.Raw([]byte(p.fill(string(s)) + "\n"))
	return p.Err()
}

func (s Stderr) play(p *player) error {
	p.Lane.Stderr(p.fill(string(s)))
	return p.Err()
}

func (s *Partial) play(p *player) error {
	st := agent.Stream{Pause: s.Pause}
	for _, c := range s.Chunks {
		st.Chunks = append(st.Chunks, p.fill(c))
	}
	if st.Chunks == nil {
		n := s.Chunk
		if n <= 0 {
			n = 16
		}
		st.Chunks = agent.Chunks(p.fill(s.Text), n)
	}
	return p.Stream(st)
}

// caller is a step that is a tool call and may so be one of several.
type caller interface {
	Step
	call(p *player) agent.ToolCall
}

func (s *ToolUse) play(p *player) error  { return p.UseTools(s.call(p)) }
func (s *MCPCall) play(p *player) error  { return p.UseTools(s.call(p)) }
func (s *SubAgent) play(p *player) error { return p.UseTools(s.call(p)) }
func (s *Shell) play(p *player) error    { return p.UseTools(s.call(p)) }

func (s Parallel) play(p *player) error {
	calls := make([]agent.ToolCall, 0, len(s))
	for i, step := range s {
		p.run.agent.Record.reach(&s[i])
		if c, ok := step.(caller); ok { // Parse lets nothing else in
			calls = append(calls, c.call(p))
		}
	}
	return p.UseTools(calls...)
}

func (s *ToolUse) call(p *player) agent.ToolCall {
	id := s.ID
	if id == "" {
		id = "toolu_" + strings.ReplaceAll(p.UUID(), "-", "")[:12]
	}
	server, tool, hosts := p.MCPTool(s.Name)
	return agent.ToolCall{
		ID: id, Name: s.Name, Input: p.object(s.Input), Gate: s.Gate, Ask: p.object(s.Ask), Unknown: hosts && tool == "",
		Run: func(st *agent.Strand, input agent.Object) (agent.ToolResult, error) {
			in, err := json.Marshal(input)
			if err != nil {
				return agent.ToolResult{}, err
			}
			if s.Effect != "" {
				if err := p.run.agent.effect(s.Effect, s.Name+" "+id+" "+string(in)); err != nil {
					return agent.ToolResult{}, err
				}
			}
			if err := p.on(p.On(st)).play(s.Steps); err != nil {
				return agent.ToolResult{}, err
			}
			if err := s.work(st, id, input); err != nil {
				return agent.ToolResult{}, err
			}
			if s.Error != "" {
				return agent.ToolResult{Content: p.fill(s.Error), IsError: true}, nil
			}
			if hosts {
				return st.CallMCP(server, tool, id, input, 0)
			}
			r := agent.ToolResult{Content: strings.ReplaceAll(p.fill(s.Result), "${input}", string(in))}
			if s.Structured != nil {
				r.Structured = p.object(s.Structured)
			}
			return r, nil
		},
	}
}

// work is the time the tool takes.
func (s *ToolUse) work(st *agent.Strand, id string, input agent.Object) error {
	if s.Name != "Bash" {
		return st.Sleep(s.Takes)
	}
	description, _ := input["description"].(string)
	return st.Command(id, description, s.Takes)
}

func (s *MCPCall) call(p *player) agent.ToolCall {
	id := s.ID
	if id == "" {
		id = "toolu_" + strings.ReplaceAll(p.UUID(), "-", "")[:12]
	}
	return agent.ToolCall{
		ID: id, Name: p.MCPToolName(s.Server, s.Tool), Input: p.object(s.Arguments), Gate: s.Gate,
		Run: func(st *agent.Strand, input agent.Object) (agent.ToolResult, error) {
			return st.CallMCP(s.Server, s.Tool, id, input, s.Limit)
		},
	}
}

func (s *SubAgent) call(p *player) agent.ToolCall {
	return p.AgentCall(agent.AgentSpec{
		Description: p.fill(s.Description), Prompt: p.fill(s.Prompt), Type: s.Type,
		Background: s.Background, Report: p.fill(s.Report),
		Play: func(l *agent.Lane) error { return p.on(l).play(s.Steps) },
		Then: p.then(s.Then),
	})
}

func (s *Shell) call(p *player) agent.ToolCall {
	return p.ShellCall(agent.ShellSpec{
		Command: p.fill(s.Command), Description: p.fill(s.Description),
		Took: s.Takes, ExitCode: s.ExitCode, Gate: s.Gate, Then: p.then(s.Then),
	})
}

// then is the turn that follows a background task.
func (p *player) then(steps Steps) func(*agent.Turn) error {
	if steps == nil {
		steps = Steps{Text("Noted: ${prompt}")}
	}
	return func(t *agent.Turn) error { return p.run.player(t).play(steps) }
}

func (s *Hook) play(p *player) error {
	answers, err := p.Hook(s.Event, s.Subject, p.object(s.Input))
	for _, a := range answers {
		p.answer = a.Raw
	}
	return err
}

func (s *APIRetry) play(p *player) error {
	or := func(n, d int) int {
		if n == 0 {
			return d
		}
		return n
	}
	text := cmp.Or(s.Error, "overloaded")
	p.Lane.System("api_retry", agent.Object{
		"attempt": or(s.Attempt, 1), "max_retries": or(s.MaxRetries, 10),
		"retry_delay_ms": s.Delay.Milliseconds(), "error_status": or(s.Status, 529), "error": text,
	})
	return p.Sleep(s.Delay)
}

func (s *System) play(p *player) error {
	p.Lane.System(s.Subtype, p.object(s.Fields))
	return p.Err()
}

func (s *Message) play(p *player) error {
	p.Emit(p.object(s.Fields))
	return p.Err()
}

func (s *Result) play(p *player) error {
	if p.turn == nil {
		return nil
	}
	r := agent.Result{
		Subtype: s.Subtype, IsError: s.IsError, Errors: s.Errors, StopReason: s.StopReason,
		TerminalReason: s.TerminalReason, APIErrorStatus: s.APIErrorStatus, Cost: s.Cost,
		Structured: p.fillAll(s.Structured), More: p.object(s.Fields),
	}
	if s.Text != nil {
		r.Text = agent.Say(p.fill(*s.Text))
	}
	if s.Usage != nil {
		r.More["usage"] = p.object(s.Usage)
	}
	return p.turn.Finish(r)
}

func (s *Exit) play(*player) error {
	return &agent.ExitError{Exit: agent.Exit{Code: s.Code, Signal: s.Signal}}
}

func (s *Huge) play(p *player) error {
	return p.Stream(agent.Stream{Chunks: []string{string(bytes.Repeat([]byte{'x'}, int(s.Bytes)))}})
}

func (s *Spawn) play(p *player) error { return p.run.agent.spawn(Child(*s)) }

package scripted

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/agent-troupe/troupe/agent"
)

// Record keeps what an agent got from its host, and which steps of its script it
// reached. Give it to one agent with [WithRecord]. The zero value is empty and ready; it
// is safe for concurrent use. Of an agent with several conversations it holds all of
// them, in the order in which things happened.
type Record struct {
	mu       sync.Mutex
	script   *Script
	prompts  []string
	answers  []Told
	requests []Told
	reached  map[*Step]bool
}

// Told is an answer or a request that an agent got from its host.
type Told struct {
	// Subtype is the request's, such as can_use_tool, hook_callback or mcp_message of
	// an answer, or interrupt of a request.
	Subtype string
	// About is the tool of can_use_tool, the event of hook_callback, the server of
	// mcp_message; "" for all others.
	About string
	// Body is the response member of an answer, or the request member of a request, or
	// nil.
	Body json.RawMessage
	// Error is the text of an error answer, or says that the host closed stdin before
	// it had answered; "" otherwise.
	Error string
}

// WithRecord keeps in r what the agent gets from its host, and which steps it reaches.
func WithRecord(r *Record) Option { return func(a *Agent) { a.Record = r } }

// Prompts are the prompts of the turns that began, in order. Turns that an agent starts
// itself, after a background task, have no prompt.
func (r *Record) Prompts() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.prompts)
}

// Answers are the answers to the agent's requests, in the order in which they came.
func (r *Record) Answers() []Told {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.answers)
}

// Requests are the host's control requests, initialize the first.
func (r *Record) Requests() []Told {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

// Unreached names the steps that did not begin, in the order of the script, such as
// "turns[1].steps[0]: text". The steps of a tool whose call was denied are among them.
// Of resumed and on_stop_block all steps count, those of default never: they are played
// when nothing else remains. Before the agent has started the list is empty.
func (r *Record) Unreached() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.script == nil {
		return nil
	}
	var missing []string
	walk := func(path string, steps Steps) {
		eachStep(path, steps, func(path string, s *Step) {
			if !r.reached[s] {
				missing = append(missing, fmt.Sprintf("%s: %s", path, kindOfStep(*s)))
			}
		})
	}
	for i, t := range r.script.Turns {
		walk(fmt.Sprintf("turns[%d].steps", i), t.Steps)
	}
	for i, t := range r.script.Resumed {
		walk(fmt.Sprintf("resumed[%d].steps", i), t.Steps)
	}
	walk("on_stop_block", r.script.OnStopBlock)
	return missing
}

// eachStep calls fn for steps and the steps inside them. Equal steps differ by their
// place in a list.
func eachStep(path string, steps Steps, fn func(path string, s *Step)) {
	for i := range steps {
		at := fmt.Sprintf("%s[%d]", path, i)
		fn(at, &steps[i])
		switch s := steps[i].(type) {
		case Parallel:
			eachStep(at+".parallel", Steps(s), fn)
		case *ToolUse:
			eachStep(at+".tool_use.steps", s.Steps, fn)
		case *SubAgent:
			eachStep(at+".agent.steps", s.Steps, fn)
			eachStep(at+".agent.then", s.Then, fn)
		case *Shell:
			eachStep(at+".shell.then", s.Then, fn)
		}
	}
}

// The methods below record; a nil record keeps nothing.

func (r *Record) begin(s *Script) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.script = s
}

func (r *Record) reach(s *Step) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reached == nil {
		r.reached = make(map[*Step]bool)
	}
	r.reached[s] = true
}

func (r *Record) turn(t *agent.Turn) {
	if r == nil || t.Task() != nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.prompts = append(r.prompts, t.Prompt())
}

func (r *Record) request(q *agent.Request) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, Told{Subtype: q.Subtype, Body: slices.Clone(q.Body)})
}

func (r *Record) answer(request agent.Object, a agent.Answer) {
	if r == nil {
		return
	}
	text := func(o agent.Object, key string) string { s, _ := o[key].(string); return s }
	told := Told{Subtype: text(request, "subtype"), Body: slices.Clone(a.Body), Error: a.Error}
	switch told.Subtype {
	case "can_use_tool":
		told.About = text(request, "tool_name")
	case "hook_callback":
		input, _ := request["input"].(agent.Object)
		told.About = text(input, "hook_event_name")
	case "mcp_message":
		told.About = text(request, "server_name")
	}
	if a.Closed {
		told.Error = "the host closed stdin"
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers = append(r.answers, told)
}

package sdk_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/agent-troupe/troupe/agent"
)

// acpAgent is a scripted agent of the Agent Client Protocol in memory. Its processes share the
// record of what they were sent, and the sessions.
type acpAgent struct {
	capabilities string // JSON of agentCapabilities; "": none
	// answers replace the answer to a method: a result, or an error if it has a member code.
	// "exit" ends the process, "silence" does not answer.
	answers map[string]string
	// prompt plays a turn, and returns the result of session/prompt as JSON, or "exit".
	prompt func(p *acpPlay, text string) string
	// opens is written before session/new, load and resume are answered.
	opens func(p *acpPlay)
	first string // written at once, before anything is read

	mu   sync.Mutex
	got  []string // method and params of what came, in order
	runs int
}

func (*acpAgent) AgentName() string { return "acp in memory" }

func (a *acpAgent) requests() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]string(nil), a.got...)
}

// methods are the methods that came.
func (a *acpAgent) methods() []string {
	var all []string
	for _, r := range a.requests() {
		method, _, _ := strings.Cut(r, " ")
		all = append(all, method)
	}
	return all
}

// params are those of the last request of a method.
func (a *acpAgent) params(method string) string {
	all := a.requests()
	for i := len(all) - 1; i >= 0; i-- {
		if got, params, _ := strings.Cut(all[i], " "); got == method {
			return params
		}
	}
	return ""
}

// acpPlay is one process of an acpAgent.
type acpPlay struct {
	*acpAgent
	port      agent.Port
	run       int // from 1
	cancelled bool
	asked     int
	waiting   []acpLine
	exit      *agent.Exit
}

type acpLine struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  json.RawMessage `json:"error"`
}

// Serve implements [agent.Program].
func (a *acpAgent) Serve(_ agent.Launch, port agent.Port) agent.Exit {
	a.mu.Lock()
	a.runs++
	p := &acpPlay{acpAgent: a, port: port, run: a.runs}
	a.mu.Unlock()
	if a.first != "" {
		p.write(a.first)
	}
	for p.exit == nil {
		line, ok := p.next()
		if !ok {
			break
		}
		p.serve(line)
	}
	return *p.exit
}

// next is the next line; false: the process has ended, or none came in time.
func (p *acpPlay) next() (acpLine, bool) {
	if len(p.waiting) > 0 {
		line := p.waiting[0]
		p.waiting = p.waiting[1:]
		return line, true
	}
	raw, err := p.port.Next(-1)
	switch {
	case err != nil:
		p.exit = &agent.Exit{}
		if err == agent.ErrKilled { //nolint:errorlint // as it is
			p.exit = &agent.Exit{Signal: "KILL"}
		}
		return acpLine{}, false
	}
	var line acpLine
	if err := json.Unmarshal(raw, &line); err != nil {
		p.exit = &agent.Exit{Code: 3}
		return line, false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if line.Method != "" {
		p.got = append(p.got, line.Method+" "+string(line.Params))
	} else {
		p.got = append(p.got, "answer "+string(line.Result)+string(line.Error))
	}
	if line.Method == "session/cancel" {
		p.cancelled = true
	}
	return line, true
}

func (p *acpPlay) write(text string) {
	if p.port.Write([]byte(text+"\n")) != nil && p.exit == nil {
		p.exit = &agent.Exit{Code: 1}
	}
}

// update sends a session/update.
func (p *acpPlay) update(u string) {
	p.write(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"acp-1","update":` + u + `}}`)
}

// say sends a piece of text.
func (p *acpPlay) say(text string) {
	p.update(fmt.Sprintf(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":%q}}`, text))
}

// ask makes a request and waits for its answer.
func (p *acpPlay) ask(params string) (result string, ok bool) {
	p.asked++
	id := fmt.Sprintf(`"ask-%d"`, p.asked)
	p.write(`{"jsonrpc":"2.0","id":` + id + `,"method":"session/request_permission","params":` + params + `}`)
	var kept []acpLine
	for {
		line, ok := p.next()
		if !ok {
			return "", false
		}
		if line.Method == "" && string(line.ID) == id {
			p.waiting = append(kept, p.waiting...)
			return string(line.Result) + string(line.Error), true
		}
		kept = append(kept, line)
	}
}

// untilCancelled waits for session/cancel.
func (p *acpPlay) untilCancelled() {
	for !p.cancelled && p.exit == nil {
		p.next()
	}
}

func (p *acpPlay) serve(line acpLine) {
	if line.ID == nil || line.Method == "" {
		return
	}
	if answer, ok := p.answers[line.Method]; ok {
		p.answer(line.ID, answer)
		return
	}
	switch line.Method {
	case "initialize":
		capabilities := p.capabilities
		if capabilities == "" {
			capabilities = "{}"
		}
		p.answer(line.ID, `{"protocolVersion":1,"agentCapabilities":`+capabilities+`}`)
	case "session/new":
		if p.opens != nil {
			p.opens(p)
		}
		p.answer(line.ID, `{"sessionId":"acp-1"}`)
	case "session/load", "session/resume":
		if p.opens != nil {
			p.opens(p)
		}
		p.answer(line.ID, `{}`)
	case "session/prompt":
		p.cancelled = false
		var in struct {
			Prompt []struct {
				Text string `json:"text"`
			} `json:"prompt"`
		}
		_ = json.Unmarshal(line.Params, &in)
		text := ""
		for _, b := range in.Prompt {
			text += b.Text
		}
		result := `{"stopReason":"end_turn"}`
		if p.prompt != nil {
			result = p.prompt(p, text)
		} else {
			p.say("answer to " + text)
		}
		p.answer(line.ID, result)
	default:
		p.answer(line.ID, `{"code":-32601,"message":"not here"}`)
	}
}

// answer answers a request.
func (p *acpPlay) answer(id json.RawMessage, answer string) {
	switch {
	case p.exit != nil || answer == "silence":
	case answer == "exit":
		p.exit = &agent.Exit{Code: 7}
	case strings.Contains(answer, `"code":`):
		p.write(`{"jsonrpc":"2.0","id":` + string(id) + `,"error":` + answer + `}`)
	default:
		p.write(`{"jsonrpc":"2.0","id":` + string(id) + `,"result":` + answer + `}`)
	}
}

package simtests

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
)

// notice is what the oracles read of a system line.
type notice struct {
	Task       string `json:"task_id"`
	Parent     string `json:"parent_task_id"`
	ToolUse    string `json:"tool_use_id"`
	TaskType   string `json:"task_type"`
	Background bool   `json:"is_backgrounded"`
	Depth      int    `json:"spawn_depth"`
	Status     string `json:"status"`
	Output     string `json:"output_file"`
	Patch      struct {
		Background bool `json:"is_backgrounded"`
	} `json:"patch"`
	// Members of a compaction's status.
	Compacted string `json:"compact_result"`
	// Members of api_retry.
	Attempt  int    `json:"attempt"`
	Most     int    `json:"max_retries"`
	Code     int    `json:"error_status"`
	Error    string `json:"error"`
	DelayFor int    `json:"retry_delay_ms"`
}

// tally is what the agent has said of its work in a process. The world's mutex guards it.
type tally struct {
	began            map[string]*use    // sub-agents, and the calls that have started them
	calls            map[string]string  // of tasks
	apart            map[string]bool    // of them, those in the background
	up               map[string]string  // of them, those that another one has started, and that one
	shares           map[string]float64 // and the most that each may spend, in US dollars, if there is a budget
	refused          []string           // calls of the turn that the host has denied
	unset, to, stays int                // calls that say nothing of the background, that ask for it, and that do not
	vague            bool
	completed        int
	failed           int

	compacting bool // the agent has said that it compacts
	compacted  int  // and that it has done so, without the boundary
	models     map[string]tokens
	fails      map[string]*failures // by conversation
}

// deepest is how deep sub-agents may be in others.
const deepest = 3

// denial is a call that was denied, in a result.
type denial struct {
	ToolUse string `json:"tool_use_id"`
}

// failures are the requests of a conversation in a row that had no whole answer.
type failures struct {
	row   int
	last  *answered
	fault modeltest.Fault // of the last one
}

func newTally() tally {
	return tally{began: make(map[string]*use), calls: make(map[string]string), apart: make(map[string]bool), up: make(map[string]string), shares: make(map[string]float64), models: make(map[string]tokens), fails: make(map[string]*failures)}
}

// hearsOf looks at a system line.
func (m *mind) hearsOf(subtype string, line []byte) {
	var in notice
	if json.Unmarshal(line, &in) != nil {
		return
	}
	m.w.mu.Lock()
	var wrong []string
	t := &m.tally
	switch subtype {
	case "task_started":
		t.calls[in.Task] = in.ToolUse
		m.puts(&in, in.Background && in.TaskType != "local_agent")
		if in.TaskType == "local_agent" {
			m.aside[in.Task] = in.Background || m.aside[in.Parent]
			t.starts(&in, m.uses[in.ToolUse])
			t.shares[in.Task] = (m.budget - m.spent(nil)) / 2
			if in.Depth > deepest {
				wrong = append(wrong, fmt.Sprintf("limits: %s starts a sub-agent %d deep", m.lane, in.Depth))
			}
		}
	case "task_updated":
		m.puts(&in, in.Patch.Background)
	case "task_notification":
		wrong = m.finishes(&in)
	case "status":
		wrong = t.compacts(m.lane, &in)
	case boundaryAs:
		if t.compacted--; t.compacted < 0 {
			wrong = append(wrong, fmt.Sprintf("compacted: %s writes a boundary, and did not say that it has compacted", m.lane))
		}
		if m.hooking.stays[""] {
			wrong = append(wrong, fmt.Sprintf("hooked: %s compacts its conversation, and a hook has blocked that", m.lane))
		}
	case "api_retry":
		wrong = m.retries(&in)
	case "session_state_changed":
		wrong = m.idles(line)
	}
	m.w.mu.Unlock()
	m.complain(wrong)
}

// puts notes that the command of a task is in the background; mu is held.
func (m *mind) puts(in *notice, background bool) {
	if u := m.uses[m.tally.calls[in.Task]]; u != nil && background {
		for _, o := range slices.Concat([]*use{u}, u.also, u.changed) {
			o.background = true
		}
	}
}

func (t *tally) starts(in *notice, u *use) {
	t.began[in.Task], t.up[in.Task] = u, in.Parent
	if in.Background {
		t.apart[in.Task] = true
	}
	var asks struct {
		Background *bool `json:"run_in_background"`
	}
	if u == nil || len(u.also) > 0 || json.Unmarshal([]byte(u.input), &asks) != nil {
		t.vague = true
		return
	}
	switch {
	case asks.Background == nil:
		t.unset++
	case *asks.Background:
		t.to++
	default:
		t.stays++
	}
}

// compacts follows the states of compactions: the host sees those of the session's own conversation.
func (t *tally) compacts(lane string, in *notice) []string {
	switch {
	case in.Status == "compacting":
		t.compacting = true
	case in.Compacted == "":
		return nil
	case !t.compacting:
		return []string{fmt.Sprintf("compacted: %s says that a compaction has ended, and none had begun", lane)}
	default:
		t.compacting = false
	}
	if in.Compacted == "success" {
		t.compacted++
	}
	return nil
}

// finishes looks at the end of a task; mu is held.
func (m *mind) finishes(in *notice) (wrong []string) {
	if _, is := m.tally.began[in.Task]; is {
		switch in.Status {
		case "completed":
			m.tally.completed++
			wrong = m.hooking.ends(m.lane, in.Task, true)
		case "failed":
			m.tally.failed++
		}
		if m.tally.apart[in.Task] && in.Status != "stopped" && in.Status != "killed" {
			m.notices[in.Task] = true
		}
		return wrong
	}
	u := m.uses[in.ToolUse]
	if u == nil || !u.background || len(u.also) > 0 || in.Output == "" || in.Status != "completed" && in.Status != "failed" {
		return nil
	}
	m.notices[in.Task] = true
	for _, p := range m.procs {
		if p.use != u || !p.gone || p.status.Signal != "" || p.output == "" || m.w.happened(faultDisk) {
			continue
		}
		content, err := os.ReadFile(in.Output)
		if err != nil || !strings.Contains(string(content), strings.TrimSpace(p.output)) {
			wrong = append(wrong, fmt.Sprintf("said: the command %s in the background has ended, and its file has not what it printed, %q: %.300q (%v)", u.id, p.output, content, err))
		}
		if ok := in.Status == "completed"; ok != (p.status.Code == 0) {
			wrong = append(wrong, fmt.Sprintf("said: %s says that the command %s is %s, and its exit code is %d", m.lane, u.id, in.Status, p.status.Code))
		}
	}
	return wrong
}

// attempts is how often a request may be repeated after a wait.
func (m *mind) attempts() int {
	if n := m.e.Config.Retries; n != 0 {
		return max(n, 0)
	}
	return embeddedRetries
}

// retries checks what the agent says of a request that it will repeat: the status is one that the last
// request of a conversation had, and the word for it is the right one. mu is held.
func (m *mind) retries(in *notice) (wrong []string) {
	if m.w.happened(faultRetries) { // the world has made it up
		return nil
	}
	was := slices.ContainsFunc(sortedKeys(m.tally.fails), func(id string) bool {
		f := m.tally.fails[id]
		return f.row > 0 && (f.fault.Status == in.Code || f.fault.Status == 0 && in.Code < 300)
	})
	word := map[int]string{429: "rate_limit", 529: "overloaded", 500: "server_error", 401: "authentication_failed"}[in.Code]
	if !was || word != "" && word != in.Error || in.Attempt < 1 || in.Attempt > in.Most || in.Most != m.attempts() {
		wrong = append(wrong, fmt.Sprintf("limits: %s says that it repeats a request for the %d of %dth time because of %d (%s), and that is not so", m.lane, in.Attempt, in.Most, in.Code, in.Error))
	}
	return wrong
}

// sends counts a request; mu is held.
func (m *mind) sends(r *modeltest.Request, a *answered, f *modeltest.Fault) {
	id := r.User
	if a.aside || len(r.Tools) == 0 { // the conversation does not have it
		id += " aside"
	}
	of := m.tally.fails[id]
	if of == nil {
		of = &failures{}
		m.tally.fails[id] = of
	}
	if of.last != nil && of.last.whole {
		of.row = 0
	}
	of.row++
	of.last, of.fault = a, *f
}

// patient checks that a turn which ends because of its model has asked that often enough; mu is held.
func (m *mind) patient(in *frame) []string {
	f := m.tally.fails[m.session]
	if in.Terminal != "api_error" || f == nil || f.last.whole || m.cut || m.fallback {
		return nil
	}
	brief := f.fault.Status == 529 || f.fault.Status == 500 || f.fault.NoConnection || f.fault.Status == 0 && f.fault.BreakAt > 0
	if brief && f.row <= m.attempts() {
		return []string{fmt.Sprintf("limits: %s gives up after %d requests, and may repeat them %d times: %+v", m.lane, f.row, m.attempts(), f.fault)}
	}
	return nil
}

// stats are those of sub-agents, as results have them.
type stats struct {
	Spawned    int `json:"spawned"`
	Completed  int `json:"completed"`
	Failed     int `json:"failed"`
	Background int `json:"started_in_background"`
	Requested  struct {
		Background int `json:"background"`
		Foreground int `json:"foreground"`
		Unset      int `json:"unset"`
	} `json:"requested"`
}

// tallies checks what the result of a turn says of all that was before: of sub-agents, of compactions, of
// the use of models. mu is held.
func (m *mind) tallies(in *frame) (wrong []string) {
	t := &m.tally
	if s := in.Subagents; s != nil && !t.vague {
		r := s.Requested
		if s.Spawned != len(t.began) || s.Background != len(t.apart) || s.Completed < t.completed || s.Failed < t.failed ||
			r.Unset != t.unset || r.Background != t.to || r.Foreground != t.stays || s.Completed+s.Failed > s.Spawned {
			wrong = append(wrong, fmt.Sprintf("usage: %s says %+v of its sub-agents, and %d were started, %d of them in the background, %d completed, %d failed; %d, %d and %d said nothing of the background, asked for it, and did not",
				m.lane, *s, len(t.began), len(t.apart), t.completed, t.failed, t.unset, t.to, t.stays))
		}
	}
	if t.compacting || t.compacted != 0 {
		wrong = append(wrong, fmt.Sprintf("compacted: %s ends a turn within a compaction", m.lane))
	}
	t.compacting, t.compacted = false, 0
	for _, id := range t.refused {
		if m.well && !slices.ContainsFunc(in.Denials, func(d denial) bool { return d.ToolUse == id }) {
			wrong = append(wrong, fmt.Sprintf("gated: %s does not say in the result that %s was denied", m.lane, id))
		}
	}
	t.refused = nil
	for _, name := range sortedKeys(in.ByModel) {
		u, before, fresh, p := in.ByModel[name], t.models[name], in.Fresh[name], m.profiles().Model(name)
		if u.InputOf != before.InputOf+fresh.InputOf || u.OutputOf != before.OutputOf+fresh.OutputOf || u.CacheReadOf != before.CacheReadOf+fresh.CacheReadOf {
			wrong = append(wrong, fmt.Sprintf("usage: %s says that %s has used %+v, which is not the sum of %+v before and %+v since", m.lane, name, u, before, fresh))
		}
		t.models[name] = u
		cost, basis := 0.0, ""
		if p.Price != nil {
			cost = p.Price.Cost(model.Usage{Input: u.InputOf, Output: u.OutputOf, CacheRead: u.CacheReadOf, CacheWrite: u.CacheWriteOf, CacheHour: u.HourOf})
			basis = "list"
		}
		if diff := cost - u.CostOf; diff > 1e-9 || diff < -1e-9 || u.Basis != basis || u.Window != p.Window || u.MostOutput != p.MaxOutput {
			wrong = append(wrong, fmt.Sprintf("usage: %s says of %s %+v, which is not what the profile says, %+v and %v US dollars", m.lane, name, u, p, cost))
		}
	}
	return wrong
}

// reports checks what the result of a call says of the sub-agent that it has waited for; mu is held.
func (m *mind) reports(u *use, raw json.RawMessage) (wrong []string) {
	var in struct {
		Status string   `json:"status"`
		Agent  string   `json:"agentId"`
		Model  string   `json:"resolvedModel"`
		Tools  []string `json:"toolsUsed"`
		Calls  int      `json:"totalToolUseCount"`
	}
	if u.name != "Agent" || json.Unmarshal(raw, &in) != nil || in.Status != "completed" || len(u.also) > 0 {
		return nil
	}
	calls, vague := 0, false
	for _, id := range m.order {
		o := m.uses[id]
		if o == nil || o.agent != in.Agent || o.message == "" {
			continue
		}
		calls++
		vague = vague || m.doubled
		if o.well && !slices.Contains(in.Tools, o.name) {
			wrong = append(wrong, fmt.Sprintf("said: the result of %s says that its sub-agent has used %v, and it has used %s", u.id, in.Tools, o.name))
		}
	}
	if sorted := slices.Sorted(slices.Values(in.Tools)); len(slices.Compact(sorted)) < len(in.Tools) {
		wrong = append(wrong, fmt.Sprintf("said: the result of %s names tools of its sub-agent twice: %v", u.id, in.Tools))
	}
	if !vague && !m.lost && in.Calls != calls {
		wrong = append(wrong, fmt.Sprintf("said: the result of %s says that its sub-agent has made %d calls, and it has made %d", u.id, in.Calls, calls))
	}
	if asked := m.models[in.Agent]; asked != "" && asked != in.Model && !m.fallback {
		wrong = append(wrong, fmt.Sprintf("said: the result of %s says that its sub-agent has the model %q, and it has asked %q", u.id, in.Model, asked))
	}
	return wrong
}

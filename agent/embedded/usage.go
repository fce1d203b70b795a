package embedded

import (
	"time"
	"unicode/utf8"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
)

// count adds what an answer has used, and returns what it costs; name is the model that was
// asked: servers answer with other names, or none. The cost of a model whose price is not
// known is 0.
func (t *talk) count(name string, u *model.Usage) float64 {
	add(&t.spent, u)
	return t.countAside(name, u)
}

// countAside is count for an answer that is not part of the turn: a summary shows only in the
// usage of its model, as observed.
func (t *talk) countAside(name string, u *model.Usage) float64 {
	cost := t.priceOf(name, u)
	m := t.usedOf(name)
	add(&m.usage, u)
	add(&m.fresh, u)
	m.cost += cost
	m.freshCost += cost
	return cost
}

// lost adds what an answer has used that broke off or was interrupted. Its usage is not known
// to the end, so what it said is estimated, with three characters for a token, unless it ended
// with an error of the endpoint's (observed on Claude Code 2.1.329).
func (t *talk) lost(l *agent.Lane, a *answer, estimate bool) {
	if a.id != "" && l.Err() == nil { // an interrupted one shows only in the usage of its model, as observed
		add(&t.spent, &a.usage)
	}
	t.lostAside(l, a, estimate)
}

// lostAside is lost for an answer that is not part of the turn.
func (t *talk) lostAside(l *agent.Lane, a *answer, estimate bool) {
	if a.id == "" {
		return
	}
	said := 0
	for i := range a.blocks {
		said += utf8.RuneCountInString(a.blocks[i].Text) + len(a.blocks[i].Name) + len(a.blocks[i].Input)
	}
	if a.half != nil {
		said += utf8.RuneCountInString(a.half.Text)
	}
	const perToken = 3
	u := a.usage
	if estimate || l.Err() != nil {
		u.Output = max(u.Output, (said+perToken/2)/perToken)
	}
	cost := t.priceOf(t.model(l), &u)
	m := t.usedOf(t.model(l))
	add(&m.usage, &u)
	add(&m.fresh, &u)
	m.cost += cost
	m.freshCost += cost
	l.Spend(cost)
}

func (t *talk) priceOf(name string, u *model.Usage) float64 {
	if p := t.cfg.Profiles.Model(name).Price; p != nil {
		return p.Cost(*u)
	}
	return 0
}

func (t *talk) usedOf(name string) *used {
	t = t.session()
	for i := range t.all {
		if t.all[i].model == name {
			return &t.all[i]
		}
	}
	t.all = append(t.all, used{model: name})
	return &t.all[len(t.all)-1]
}

func add(to, u *model.Usage) {
	to.Input, to.Output, to.Reasoning = to.Input+u.Input, to.Output+u.Output, to.Reasoning+u.Reasoning
	to.CacheRead, to.CacheWrite, to.CacheHour = to.CacheRead+u.CacheRead, to.CacheWrite+u.CacheWrite, to.CacheHour+u.CacheHour
}

// firsts are the times of the first answer of a turn.
type firsts struct {
	sent, event, frame time.Time // zero: not yet
	usage              model.Usage
	unsaid             bool // no stream had begun before it
	late               bool // it came in one piece, behind a stream that had said nothing of it
}

// used is what the result of a turn says of it.
func (t *talk) used(turn *agent.Turn) agent.Object {
	t.begin(turn)
	t.turnOf = nil // it is over
	all, fresh := agent.Object{}, agent.Object{}
	for i := range t.all {
		m := &t.all[i]
		all[m.model] = t.modelUsage(m.model, &m.usage, m.cost)
		if m.fresh.Input+m.fresh.Output+m.fresh.CacheRead+m.fresh.CacheWrite > 0 {
			fresh[m.model] = t.modelUsage(m.model, &m.fresh, m.freshCost)
		}
		m.fresh, m.freshCost = model.Usage{}, 0
	}
	return agent.Object{
		"usage": usageOf(&t.spent), "modelUsage": all, "model_usage_since_last_result": fresh,
		"duration_ms": t.seams.Clock.Now().Sub(t.began).Milliseconds(), "duration_api_ms": t.inAPI.Milliseconds(),
		"subagent_stats": t.crew.stats(), "safety_stops": t.stops,
	}
}

// answered is what the result of a turn says of its first answer.
func (t *talk) answered(turn *agent.Turn) agent.Object {
	t.begin(turn)
	f := &t.first
	if f.event.IsZero() || f.frame.IsZero() {
		return nil
	}
	o := agent.Object{
		"time_to_request_ms": f.sent.Sub(t.began).Milliseconds(), "request_sent_wall_ms": f.sent.UnixMilli(),
		"ttft_ms": f.event.Sub(t.began).Milliseconds(), "ttft_stream_ms": f.event.Sub(f.sent).Milliseconds(),
		"first_content_frame_ms":     f.frame.Sub(t.began).Milliseconds(),
		"first_request_input_tokens": f.usage.Input, "first_request_cache_read_input_tokens": f.usage.CacheRead,
	}
	if f.late || f.unsaid { // as observed
		delete(o, "first_content_frame_ms")
	}
	if f.unsaid { // as observed
		for _, of := range []string{"time_to_request_ms", "request_sent_wall_ms", "ttft_stream_ms", "first_request_input_tokens", "first_request_cache_read_input_tokens"} {
			delete(o, of)
		}
	}
	if t.checking.over {
		o["terminal_reason"], o["check_output"] = "check_failed", t.checking.failed
	}
	return o
}

// modelUsage is what one model has used, with the members observed on Claude Code 2.1.329.
func (t *talk) modelUsage(name string, u *model.Usage, cost float64) agent.Object {
	profile := t.cfg.Profiles.Model(name)
	o := agent.Object{
		"inputTokens": u.Input, "outputTokens": u.Output, "thinkingTokens": u.Reasoning,
		"cacheReadInputTokens": u.CacheRead, "cacheCreationInputTokens": u.CacheWrite,
		"cacheCreationEphemeral5mInputTokens": u.CacheWrite - u.CacheHour, "cacheCreationEphemeral1hInputTokens": u.CacheHour,
		"webSearchRequests": 0, "costUSD": cost, "contextWindow": profile.Window, "maxOutputTokens": profile.MaxOutput,
		"canonicalModel": name, "provider": t.cfg.Model.Codec().Name(),
	}
	if profile.Price != nil {
		o["costBasis"] = "list"
	}
	return o
}

func startUsage(u *model.Usage) agent.Object {
	return agent.Object{
		"input_tokens": u.Input, "output_tokens": u.Output,
		"cache_creation_input_tokens": u.CacheWrite, "cache_read_input_tokens": u.CacheRead,
	}
}

func usageOf(u *model.Usage) agent.Object {
	o := startUsage(u)
	o["server_tool_use"] = agent.Object{"web_search_requests": 0, "web_fetch_requests": 0}
	o["service_tier"], o["speed"], o["inference_geo"], o["iterations"] = "standard", "standard", "", []any{}
	if u.Batched {
		o["service_tier"] = "batch"
	}
	o["cache_creation"] = agent.Object{"ephemeral_5m_input_tokens": u.CacheWrite - u.CacheHour, "ephemeral_1h_input_tokens": u.CacheHour}
	o["output_tokens_details"] = agent.Object{"thinking_tokens": u.Reasoning}
	return o
}

// noUsage is that of a message which the agent writes itself.
func noUsage() agent.Object {
	o := usageOf(&model.Usage{})
	for _, name := range []string{"service_tier", "speed", "inference_geo", "iterations", "output_tokens_details"} {
		o[name] = nil
	}
	return o
}

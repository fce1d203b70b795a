package embedded

import (
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
)

// count adds what an answer has used, and returns what it costs; name is the model that was
// asked: servers answer with other names, or none. The cost of a model whose price is not
// known is 0.
func (t *talk) count(name string, u *model.Usage) float64 {
	profile := t.cfg.Profiles.Model(name)
	cost := 0.0
	if profile.Price != nil {
		cost = profile.Price.Cost(*u)
	}
	add(&t.spent, u)
	for i := range t.all {
		if t.all[i].model == name {
			add(&t.all[i].usage, u)
			t.all[i].cost += cost
			return cost
		}
	}
	t.all = append(t.all, used{name, model.Usage{}, cost})
	add(&t.all[len(t.all)-1].usage, u)
	return cost
}

func add(to, u *model.Usage) {
	to.Input, to.Output = to.Input+u.Input, to.Output+u.Output
	to.CacheRead, to.CacheWrite = to.CacheRead+u.CacheRead, to.CacheWrite+u.CacheWrite
}

// used is what the result of a turn says of it.
func (t *talk) used(turn *agent.Turn) agent.Object {
	t.begin(turn)
	t.turnOf = nil // it is over
	models := agent.Object{}
	for _, m := range t.all {
		profile := t.cfg.Profiles.Model(m.model)
		models[m.model] = agent.Object{
			"inputTokens": m.usage.Input, "outputTokens": m.usage.Output,
			"cacheReadInputTokens": m.usage.CacheRead, "cacheCreationInputTokens": m.usage.CacheWrite,
			"webSearchRequests": 0, "costUSD": m.cost, "contextWindow": profile.Window, "maxOutputTokens": profile.MaxOutput,
		}
	}
	return agent.Object{
		"usage": usageOf(&t.spent), "modelUsage": models,
		"duration_ms": t.seams.Clock.Now().Sub(t.began).Milliseconds(), "duration_api_ms": t.inAPI.Milliseconds(),
	}
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
	o["service_tier"] = "standard"
	return o
}

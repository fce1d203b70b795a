package peers

import (
	"context"
	"fmt"
)

// Agent is what was found of an agent.
type Agent struct {
	Name    string   `json:"name"`
	Version string   `json:"version,omitempty"`
	Rounds  []Cost   `json:"rounds,omitempty"`
	Further *Further `json:"further,omitempty"` // nil for an agent with a process for each session
}

// Cost is what the task costs, of one session in a process.
type Cost struct {
	First    float64 `json:"first_s"` // until the first request
	CPU      float64 `json:"cpu_s"`
	Memory   float64 `json:"memory_b"`
	Requests float64 `json:"requests_b"`
}

// Further is what each further session costs where one process has many.
type Further struct {
	Sessions int     `json:"sessions"`
	Idle     float64 `json:"idle_b"`
	Busy     float64 `json:"busy_b"`
	Open     float64 `json:"open_s"` // processor time
	Task     float64 `json:"task_s"` // processor time
}

const mb = 1 << 20

// InTurn has each agent do the task once in each round, so that other work on the machine meets
// all of them, and then measures the further sessions. It returns why agents were not measured, too.
func InTurn(ctx context.Context, c Config) (agents []Agent, missing []string, err error) {
	b, end, err := start(c)
	if err != nil {
		return nil, nil, err
	}
	defer end()
	peers, missing, err := b.wanted(ctx)
	if err != nil {
		return nil, nil, err
	}
	failed := make([]bool, len(peers))
	fail := func(i int, err error) error {
		failed[i] = true
		missing = append(missing, fmt.Sprintf("%s: %v", peers[i].name, err))
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if peers[i].own() {
			return fmt.Errorf("%s: %w", peers[i].name, err)
		}
		return nil
	}
	for _, p := range peers {
		agents = append(agents, Agent{Name: p.name, Version: p.version})
		p.script(b.server, b.Hold)
	}
	for range c.Rounds {
		for i := range peers {
			if failed[i] {
				continue
			}
			f, err := b.run(ctx, &peers[i], 1, alone)
			if err != nil {
				if err := fail(i, err); err != nil {
					return nil, nil, err
				}
				continue
			}
			agents[i].Rounds = append(agents[i].Rounds, Cost{
				First: f.first.Seconds(), CPU: f.cpu.Seconds(), Memory: f.mb * mb, Requests: f.kb * 1024,
			})
		}
	}
	for i, p := range peers {
		if failed[i] || p.serve == nil || c.Many == 0 {
			continue
		}
		r, err := b.together(ctx, p)
		if err != nil {
			if err := fail(i, err); err != nil {
				return nil, nil, err
			}
			continue
		}
		s := r.sharing
		agents[i].Further = &Further{Sessions: s.sessions, Idle: s.idle * mb, Busy: s.busy * mb, Open: s.open.Seconds(), Task: s.task.Seconds()}
	}
	return agents, append(missing, notMeasured...), nil
}

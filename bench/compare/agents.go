package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/bench/internal/peers"
)

const (
	tasks   = "agents"
	further = "further"
	// doPeers is this program as the parent of the agents: it ends every process that it has.
	doPeers = "peers"
)

// found is what the child with the role doPeers prints.
type found struct {
	Agents  []peers.Agent `json:"agents"`
	Missing []string      `json:"missing"`
}

// asParent measures the agents of a configuration in JSON, and prints what it has found.
func asParent(ctx context.Context, config string) error {
	var c peers.Config
	if err := json.Unmarshal([]byte(config), &c); err != nil {
		return err
	}
	agents, missing, err := peers.InTurn(ctx, c)
	return show(found{agents, missing}, err)
}

// agents are the agents of bench/peers.
func (b *bench) agents(ctx context.Context) error {
	c := peers.Config{Agents: b.packages, Install: b.install, Rounds: b.fewer(), Many: 50, Hold: 6 * time.Second}
	if b.smoke {
		c.Only, c.Many = []string{peers.Own}, 0
	}
	config, err := json.Marshal(c)
	if err != nil {
		return err
	}
	var got found
	parent := &host{name: doPeers, env: []string{roleEnv + "=" + doPeers}, command: func(config string) []string { return []string{b.self, config} }, limit: 10 * time.Minute}
	if err := parent.run(ctx, string(config), nil, &got); err != nil {
		if runtime.GOOS != "linux" {
			b.report.Missing = append(b.report.Missing, "agents: "+err.Error())
			return nil
		}
		return err
	}
	for _, line := range got.Missing {
		b.report.Missing = append(b.report.Missing, "agents: "+strings.ReplaceAll(line, b.packages, "PACKAGES"))
	}
	rows := []row{
		{Name: "to the first request", Unit: seconds}, {Name: "processor time", Unit: seconds}, {Name: "memory", Unit: bytes}, {Name: "size of its requests", Unit: bytes},
	}
	s := &section{}
	one := &section{Rows: []row{
		{Name: "memory, idle", Unit: bytes}, {Name: "memory, busy", Unit: bytes}, {Name: "processor time to open", Unit: seconds}, {Name: "processor time of the task", Unit: seconds},
	}}
	for _, a := range got.Agents {
		if len(a.Rounds) == 0 {
			continue
		}
		name := strings.TrimSpace(a.Name + " " + a.Version)
		if a.Name == peers.Own {
			name = "Troupe's embedded agent"
		}
		s.Columns = append(s.Columns, name)
		var values [4]cell
		for _, r := range a.Rounds {
			for i, v := range []float64{r.First, r.CPU, r.Memory, r.Requests} {
				values[i].Rounds = append(values[i].Rounds, v)
			}
		}
		for i := range rows {
			rows[i].Cells = append(rows[i].Cells, values[i])
		}
		if f := a.Further; f != nil {
			one.Columns = append(one.Columns, name)
			for i, v := range []float64{f.Idle, f.Busy, f.Open, f.Task} {
				one.Rows[i].Cells = append(one.Rows[i].Cells, cell{Rounds: []float64{v}})
			}
		}
	}
	if len(s.Columns) == 0 {
		return errors.New("no agent was measured")
	}
	s.Rows = rows
	b.report.Sections[tasks] = s
	if len(one.Columns) > 0 {
		b.report.Sections[further] = one
	} else {
		b.report.Missing = append(b.report.Missing, fmt.Sprintf("many sessions of one process: no agent has them with %d sessions", c.Many))
	}
	return nil
}

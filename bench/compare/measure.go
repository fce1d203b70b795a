package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/agent-troupe/troupe/bench/internal/measure"
	"github.com/agent-troupe/troupe/bench/internal/throughput"
	"github.com/agent-troupe/troupe/conformance"
	"github.com/agent-troupe/troupe/conformance/modelapi"
)

// Names of the sections, which -only takes.
const (
	calls      = "calls"
	starts     = "start"
	sessions   = "sessions"
	batches    = "batch"
	recoveries = "recovery"
	faults     = "faults"
)

// sizes say how much is measured.
type sizes struct {
	rounds        int
	events, calls int // of a turn
	idle, busy    int // sessions
	tasks, atOnce int
}

var (
	whole = sizes{rounds: 9, events: 50_000, calls: 3000, idle: 50, busy: 20, tasks: 200, atOnce: 16}
	least = sizes{rounds: 1, events: 100, calls: 10, idle: 2, busy: 2, tasks: 4, atOnce: 2}
)

// fewer is a number of rounds for what takes long.
func (s sizes) fewer() int { return (s.rounds + 1) / 2 }

type bench struct {
	sizes
	packages       string // directory
	install, smoke bool

	self   string // the program, which is the minimal agent too
	hosts  []*host
	report *report
}

// probe is one run of a host. It returns a value for each row; 0: it is not known.
type probe func(ctx context.Context, h *host) ([]float64, error)

// table measures rows of a section: in each round, each host runs once.
func (b *bench) table(ctx context.Context, name string, hosts []*host, rows []row, rounds int, measure probe) error {
	s := b.section(name, hosts)
	for i := range rows {
		rows[i].Cells = make([]cell, len(hosts))
	}
	for range rounds {
		for k, h := range hosts {
			if rows[0].Cells[k].Note != "" {
				continue
			}
			values, err := measure(ctx, h)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			why := remark("not measured")
			if err != nil && !errors.As(err, &why) {
				if h.own() {
					return fmt.Errorf("%s: %w", name, err)
				}
				b.miss(h, rows[0].Name, err)
			}
			for i := range rows {
				c := &rows[i].Cells[k]
				switch {
				case err != nil:
					*c = cell{Note: string(why)}
				case values[i] > 0:
					c.Rounds = append(c.Rounds, values[i])
				default:
					c.Note = "not known here"
				}
			}
		}
	}
	s.Rows = append(s.Rows, rows...)
	return nil
}

// remark is an error of a probe that is not a failure: the cell shows it.
type remark string

func (r remark) Error() string { return string(r) }

// section is the one of that name; it is made for these hosts if it is not there.
func (b *bench) section(name string, hosts []*host) *section {
	s := b.report.Sections[name]
	if s == nil {
		s = &section{}
		for _, h := range hosts {
			s.Columns = append(s.Columns, h.name)
		}
		b.report.Sections[name] = s
	}
	return s
}

// miss adds why a host was not measured, once for each reason.
func (b *bench) miss(h *host, row string, err error) {
	line := h.name + ": " + err.Error()
	if h.err == nil {
		line = h.name + ", " + row + ": " + err.Error()
	}
	if !slices.Contains(b.report.Missing, line) {
		b.report.Missing = append(b.report.Missing, line)
	}
}

// turn is one run of a host with the minimal agent.
func (b *bench) turn(ctx context.Context, h *host, mode string, n, sessions int) (line measure.Line, err error) {
	err = h.run(ctx, b.self, nil, &line, doTurn, mode, strconv.Itoa(n), strconv.Itoa(sessions))
	return line, err
}

func (b *bench) calls(ctx context.Context) error {
	err := b.table(ctx, calls, b.hosts, []row{{Name: "event", Unit: seconds}}, b.rounds, func(ctx context.Context, h *host) ([]float64, error) {
		line, err := b.turn(ctx, h, measure.Stream, b.events, 1)
		return []float64{line.WallMillis / 1e3 / float64(b.events)}, err
	})
	for _, m := range []struct{ name, mode string }{{"hook", measure.Hook}, {"permission", measure.Perm}, {"tool", measure.MCP}} {
		if err != nil {
			return err
		}
		err = b.table(ctx, calls, b.hosts, []row{{Name: m.name, Unit: seconds}}, b.rounds, func(ctx context.Context, h *host) ([]float64, error) {
			line, err := b.turn(ctx, h, m.mode, b.sizes.calls, 1)
			return []float64{float64(line.CLINanos) / 1e9 / float64(b.sizes.calls)}, err
		})
	}
	return err
}

func (b *bench) start(ctx context.Context) error {
	whole := func(agent string, env []string) probe {
		return func(ctx context.Context, h *host) ([]float64, error) {
			began := time.Now()
			err := h.run(ctx, agent, env, &measure.Line{}, doTurn, measure.Work, "0", "1")
			return []float64{time.Since(began).Seconds()}, err
		}
	}
	if err := b.table(ctx, starts, b.hosts, []row{{Name: "minimal agent", Unit: seconds}}, b.rounds, whole(b.self, nil)); err != nil {
		return err
	}
	if b.smoke {
		return nil
	}
	claude, err := conformance.Claude.Installed()
	if err != nil {
		b.report.Missing = append(b.report.Missing, fmt.Sprintf("start with Claude Code %s: %v", conformance.Claude.Version(), err))
		return nil
	}
	b.report.Versions = append(b.report.Versions, version{"Claude Code", conformance.Claude.Version()})
	home, err := os.MkdirTemp("", "troupe-compare-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(home) }() // it is in the directory for temporary files
	server, err := modelapi.Start(modelapi.Config{Answer: func(modelapi.Call) modelapi.Reply {
		return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text("It is done.")}}
	}})
	if err != nil {
		return err
	}
	defer func() { _ = server.Close() }() // it has no other client
	with := whole(claude, conformance.OfflineEnv(server.URL(), home))
	return b.table(ctx, starts, b.hosts, []row{{Name: "Claude Code", Unit: seconds}}, b.fewer(), func(ctx context.Context, h *host) ([]float64, error) {
		switch h.name {
		case bareLoop:
			return nil, tooBare
		case qoderSDK:
			return nil, otherAgent
		}
		return with(ctx, h)
	})
}

func (b *bench) sessions(ctx context.Context) error {
	hosts := b.hosts[1:] // the bare loop holds no session
	each := func(mb, n float64) float64 { return mb / n * (1 << 20) }
	n := float64(b.idle)
	err := b.table(ctx, sessions, hosts, []row{{Name: "idle, memory", Unit: bytes}, {Name: "to open", Unit: seconds}}, b.fewer(), func(ctx context.Context, h *host) ([]float64, error) {
		line, err := b.turn(ctx, h, measure.Idle, 0, b.idle)
		return []float64{each(line.RSS-line.Base, n), line.CPUMillis / 1e3 / n}, err
	})
	if err != nil {
		return err
	}
	events := b.events / b.busy
	return b.table(ctx, sessions, hosts, []row{{Name: "busy, processor time of an event", Unit: seconds}, {Name: "busy, memory", Unit: bytes}}, b.fewer(), func(ctx context.Context, h *host) ([]float64, error) {
		line, err := b.turn(ctx, h, measure.Stream, events, b.busy)
		return []float64{line.CPUMillis / 1e3 / float64(b.busy*events), each(line.Peak-line.Base, float64(b.busy))}, err
	})
}

// batch has a round of the jobs of package throughput, which has three columns, and of each SDK.
func (b *bench) batch(ctx context.Context) error {
	names := []*host{b.hosts[0], b.hosts[1], {name: keptJob}, b.hosts[2], b.hosts[3]}
	var last throughput.Figures
	args := []string{doBatch, "20", strconv.Itoa(b.tasks), strconv.Itoa(b.atOnce)}
	return b.table(ctx, batches, names, []row{{Name: "a task", Unit: seconds}}, b.fewer(), func(ctx context.Context, h *host) ([]float64, error) {
		switch h.name {
		case bareLoop: // has the others of this repository done, too
			err := b.hosts[1].run(ctx, b.self, nil, &last, args...)
			if err != nil {
				return nil, err
			}
			return []float64{1 / last.Bare[0]}, nil
		case troupe:
			return []float64{1 / last.Plain[0]}, nil
		case keptJob:
			return []float64{1 / last.Kept[0]}, nil
		}
		var line measure.Line
		err := h.run(ctx, b.self, nil, &line, args...)
		return []float64{line.WallMillis / 1e3 / float64(b.tasks)}, err
	})
}

// Why hosts are measured with the minimal agent only.
const (
	tooBare    = remark("does not answer all that Claude Code asks")
	otherAgent = remark("does not drive Claude Code")
)

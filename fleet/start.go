package fleet

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"os"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

func start(ctx context.Context, job Job, tasks iter.Seq2[Task, error]) (*Handle, error) {
	job.withDefaults()
	if err := cmp.Or(job.check(), job.ready()); err != nil {
		return nil, err
	}
	if tasks != nil && job.Queue != nil {
		return nil, &session.ConfigError{Option: "Queue", Problem: "cannot be used with Stream: each program must know all tasks", Fix: "use Run"}
	}
	if tasks != nil && job.Sample != 0 {
		return nil, &session.ConfigError{Option: "Sample", Problem: "has no use with Stream, whose tasks are not known", Fix: "use Run, or stream only the samples"}
	}
	entries, err := job.entries(job.Tasks, 0, tasks == nil)
	if err != nil {
		return nil, err
	}
	e := &env{job: job}
	if e.rt, _ = job.Options.Runtime.(*runtime.Runtime); e.rt == nil {
		if e.rt, err = runtime.New(runtime.Config{StateDir: job.StateDir()}); err != nil {
			return nil, err
		}
		e.own = true
	}
	e.exec, e.clock, e.marker = e.rt.Executor(), e.rt.Clock(), e.rt.NewMarker()
	began := e.clock.Now()
	c := newCarrier(e)
	found, err := c.records.open(ctx, e, entries, tasks == nil)
	if err != nil {
		return nil, errors.Join(err, c.shutdown())
	}
	e.account = cmp.Or(job.Account, accountOf(job.Options))
	account := e.rt.Account(e.account)
	if until := found.parked.Until; until.After(began) && until.After(account.Stat().Parked) {
		account.Park(until, found.parked.Why)
	}
	e.ctx, e.cancel = context.WithCancel(ctx)
	e.hard, e.kill = context.WithCancel(context.WithoutCancel(ctx))
	e.calls, e.cut = context.WithCancel(e.hard)
	if job.Queue != nil {
		e.worker = cmp.Or(job.Worker, fmt.Sprintf("%s:%d:%s", hostName(), os.Getpid(), kernel.NewID(e.rt.Rand())))
		c.records.others, c.records.worker = job.Files, e.worker
		c.shared = newShared(e, c.records)
		c.runner.shared = c.shared
		if job.Move {
			c.runner.sessions = newSessions(e.root)
		}
	}
	c.source = newSource(e, c.records, &found, tasks)
	c.runner.markers = found.markers
	entries, unsampled := job.sample(entries, &found)
	b := &box{env: e, carrier: c, ctx: ctx, over: make(chan struct{}), handles: map[string]*handle{}, tenures: map[string]*timers{}}
	e.send = b.send
	b.m = newMachine(rules{
		concurrency: job.Concurrency, attempts: job.Attempts, starts: job.MaxStarts, equal: job.EqualFailures,
		backoff: job.Backoff, rand: e.rt.Rand(), failOn: job.FailOn, budget: job.Budget, pace: job.Pace, park: max(job.MaxPark, 0), patience: job.patience(),
		account: account, began: began, worker: e.worker, share: job.Share, host: hostName(), grace: job.QueueGrace, affinity: job.Affinity, move: job.Move, subagents: job.subagents(), onAccept: job.OnAccept != "",
		unsampled: unsampled, deferred: job.Deferred, source: tasks != nil, fence: found.fence, wake: b,
		parked: found.parked.Until,
	})
	if job.Pace != nil {
		e.watch(new(gauge))
	}
	if err := b.begin(entries, tasks == nil); err != nil {
		return nil, errors.Join(err, c.shutdown())
	}
	return &Handle{b: b}, nil
}

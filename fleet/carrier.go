package fleet

import (
	"context"
	"errors"
	"time"

	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/fleet/sharedmcp"
	"github.com/agent-troupe/troupe/internal/kernel"
)

// carrier carries out what the machine wants, one batch at a time. It knows what a batch says,
// and nothing else of tasks.
type carrier struct {
	*env
	records  *records
	source   *source
	runner   *runner
	spaces   *workspaces
	shared   *shared // nil: no other program may have tasks
	reporter *reporter
}

func newCarrier(e *env) *carrier {
	c := &carrier{env: e, records: &records{clock: e.clock}}
	c.spaces = &workspaces{env: e, records: c.records}
	c.reporter = &reporter{env: e, records: c.records}
	c.runner = &runner{env: e, records: c.records, spaces: c.spaces}
	if c.runner.servers = e.job.SharedMCP; e.job.SharedMCP == nil {
		c.runner.servers = sharedmcp.New(e.rt, sharedmcp.Options{Dir: e.job.SharedMCPDir, Marker: e.marker})
	}
	return c
}

// open clears up after earlier hosts, and admits the first tasks.
func (c *carrier) open(ctx context.Context, entries []*entry, last bool) error {
	if err := c.sweep(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	if len(c.source.found.tasks) > 0 { // an earlier process may have died before it wrote what the journal has
		c.reporter.outdated()
	}
	if err := c.source.admit(ctx, entries, last); err != nil {
		return err
	}
	if c.shared != nil {
		c.shared.begin()
	}
	return nil
}

// carry writes the records of a batch, and does what follows from them. halted: it was the last.
func (c *carrier) carry(ctx context.Context, now time.Time, batch []work) (halted bool) {
	err := c.records.append(ctx, c.recordsOf(batch)...)
	if err != nil {
		c.fail(err)
		c.tell(unwritten{})
	} else {
		c.tell(written{})
	}
	for i := range batch {
		if c.perform(ctx, batch[i], err); isHalt(batch[i].effect) {
			halted = true
		}
	}
	if !halted {
		c.reporter.update(now)
	}
	return halted
}

func isHalt(e effect) bool { _, is := e.(halt); return is }

// recordsOf are the records of a batch.
func (c *carrier) recordsOf(batch []work) (all []journal.Record) {
	if c.root == "" {
		return nil
	}
	add := func(kind, task string, attempt int, data any) {
		all = append(all, c.records.record(kind, task, attempt, data))
	}
	for _, w := range batch {
		switch e := w.effect.(type) {
		case again:
			add(kindAttempt, e.id, e.number, e.record)
		case finish:
			if !e.folded { // the machine looks at it again once it is written
				e.result.TextFile, e.result.StructuredFile = c.records.fold(c.hard, e.result, e.number)
			}
			add(kindResult, e.id, len(e.result.Attempts), resultRecord{inFiles(e.result), e.starts, e.base})
		case parking:
			add(kindParked, "", 0, parkedRecord{e.until, e.why})
		case admitting:
			add(kindAdmitted, e.id, 0, admittedRecord{Hash: e.hash})
		case canceling:
			add(kindCanceled, e.id, 0, struct{}{})
		case requeued:
			add(kindRequeued, e.id, 0, requeuedRecord{e.number})
		case answering:
			add(kindDecided, e.task, e.attempt, e.record)
		}
	}
	return all
}

// perform does what an effect asks for. failed is the error of the journal: then what a record
// says has not happened.
func (c *carrier) perform(ctx context.Context, w work, failed error) {
	switch e := w.effect.(type) {
	case launch:
		if c.shared == nil || e.with.held { // else once the queue has given it the task
			c.told(Event{Kind: EventStarted, Task: e.id, Attempt: e.number, Detail: string(e.mode)})
		}
		c.runner.launch(e, w.handle)
	case again:
		if a := &e.record.Attempt; e.told {
			c.told(Event{Kind: EventEnded, Task: e.id, Attempt: e.number, Status: a.Status, Detail: a.Error})
		}
	case finish:
		if r := e.result; failed == nil {
			c.reporter.outdated()
			c.told(Event{Kind: EventFinished, Task: r.ID, Attempt: len(r.Attempts), Status: r.Status, Detail: r.Error, Result: r})
		}
	case claim:
		c.exec.Go(func() { c.post(c.shared.claim(e)) })
	case decide:
		c.exec.Go(func() { c.post(recorded{e.Decision, c.job.Queue.Decide(c.calls, e.Decision), e.reply}) })
	case clearUp:
		c.spaces.clearUp(e, failed)
	case runAgain:
		c.exec.Go(func() { c.spaces.runAgain(c.hard, e.id, e.of) })
	case canceling:
		if failed == nil && w.handle != nil {
			w.handle.stop()
		}
	case requeued:
		if failed != nil {
			break
		}
		if e.runs && w.handle != nil {
			w.handle.stop()
		}
		c.reporter.outdated()
		c.told(Event{Kind: EventRequeued, Task: e.id})
	case answered:
		e.settle(failed)
	case outdated:
		c.reporter.outdated()
	case pull:
		c.source.begin(ctx, e.n)
	default:
		if ev, ok := eventOf(w.effect); ok {
			c.told(ev)
		}
	}
}

// eventOf is the event that is all that an effect asks for.
func eventOf(e effect) (Event, bool) {
	switch e := e.(type) {
	case tell:
		return e.Event, true
	case pausing:
		if e.on {
			return Event{Kind: EventPaused}, true
		}
		return Event{Kind: EventResumed}, true
	case troubled:
		return Event{Kind: EventOutage, Detail: e.String()}, true
	case recovered:
		return Event{Kind: EventRecovered, Detail: e.String()}, true
	case paced:
		return Event{Kind: EventPaced, Detail: e.String()}, true
	case parking:
		return Event{Kind: EventParked, Detail: e.until.Format(time.RFC3339) + ": " + e.why}, true
	case unparked:
		return Event{Kind: EventUnparked}, true
	case warnBudget:
		return Event{Kind: EventWarning, Detail: "four fifths of the job's budget of " + e.limit + " are spent"}, true
	}
	return Event{}, false
}

// close writes the files, lets go of everything, and returns the error of the job.
func (c *carrier) close(ctx context.Context) error {
	c.source.close()
	c.cancel()
	end, _ := question(c.env, func(to *kernel.Promise[closing]) note { return closingOf{to} })
	if c.shared != nil {
		c.shared.close(end.held)
	}
	var errs []error
	if c.root != "" {
		errs = append(errs, c.reporter.project(end.results), c.reporter.summarize(&end))
	}
	c.kill()
	c.cut()
	errs = append(errs, c.shutdown())
	if stop := end.progress.Stop; stop != nil && (end.left > 0 || end.cause != nil) {
		errs = append(errs, &StoppedError{Stop: *stop, Left: end.left, Err: errors.Join(end.cause, context.Cause(ctx))})
	}
	return errors.Join(errs...)
}

// shutdown ends the resources that belong to the job.
func (c *carrier) shutdown() error {
	var err error
	if c.job.SharedMCP == nil {
		err = c.runner.servers.Close(context.Background())
	}
	if c.own {
		err = errors.Join(err, c.rt.Shutdown(context.Background()))
	}
	if c.records.log != nil {
		err = errors.Join(err, c.records.log.Close())
	}
	return err
}

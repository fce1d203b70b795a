package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/estimate"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/runtime"
)

// batchCommand is troupe batch.
func batchCommand(ctx context.Context, p process, c *console, s *settings) int {
	if s.onMachines() {
		return batchOnMachines(ctx, p, c, s)
	}
	if s.machines.lease > 0 || s.machines.labels != nil || s.machines.move || s.gave("account") {
		return c.usage(&usageError{"--lease, --account, --move and --host-label are for a job of many machines", "add --nats URL"})
	}
	if err := p.unlessEnded(func() error { return s.askedFor(p) }); err != nil {
		return c.usage(err)
	}
	defer s.removeDemonstration()
	if err := s.placeDemonstrations(p.getenv); err != nil {
		c.note("%v", err)
		return exitStart
	}
	s.tellDemonstration(p.getenv, c)
	s.tellEndpoint(c)
	s.allow(c)
	var plan string
	if err := p.unlessEnded(func() (err error) { plan, err = s.checkAll(ctx, p, c); return err }); err != nil {
		return c.usage(err)
	}
	job := &s.batch.job
	if s.batch.dryRun {
		if code := c.print(plan); code != exitOK || job.Sample == 0 {
			return code
		}
	}
	if err := s.makeOut(); err != nil {
		return c.usage(err)
	}
	rt, err := runtime.New(runtime.Config{StateDir: job.StateDir(), Admission: s.batch.admission, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		c.note("%v", err)
		return exitStart
	}
	defer func() {
		over, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
		defer cancel()
		_ = rt.Shutdown(over)
	}()
	unshow, err := s.show(rt, p, c, !s.batch.noControl)
	if err != nil {
		return c.usage(err)
	}
	defer unshow()
	s.opts.Runtime = rt
	return s.playBatch(ctx, p, c)
}

// askedFor reads what the arguments name.
func (s *settings) askedFor(p process) error {
	if err := s.completeBatch(); err != nil {
		return err
	}
	s.batch.job.Command = typed(p.args[1:])
	if err := s.readBatch(p); err != nil {
		return &usageError{problem: err.Error()}
	}
	return s.chooseAgent(p.getenv)
}

// checkAll finds the mistakes that can be found before anything is made, and says what would be done.
func (s *settings) checkAll(ctx context.Context, p process, c *console) (plan string, err error) {
	job := &s.batch.job
	job.Options = &s.opts
	if s.batch.admission, err = s.admit(); err != nil {
		return "", err
	}
	if plan, err = s.checkBatch(); err == nil && !job.Resume {
		err = job.CheckWorkspaces(ctx)
	}
	if err != nil {
		return "", s.placed(err)
	}
	if s.asJSON && (s.batch.dryRun || job.Sample > 0) {
		return "", &usageError{"--json is for the summary of a whole job", "leave it out with --dry-run and --estimate"}
	}
	if _, err := s.webhook(ctx, p, c); err != nil {
		return "", err
	}
	return plan, s.checkEvents()
}

// makeOut makes the directory of the job.
func (s *settings) makeOut() error {
	if err := os.MkdirAll(s.batch.job.Out, 0o700); err != nil {
		return &usageError{"--out: " + err.Error(), "give a directory that can be written"}
	}
	return nil
}

// notStarted says why a job does not start. Other tasks than those of the journal are a mistake in the arguments.
func notStarted(c *console, err error) int {
	if errors.Is(err, fleet.ErrOtherTasks) {
		return c.usage(err)
	}
	c.note("%v", err)
	return exitStart
}

// readBatch reads the tasks.
func (s *settings) readBatch(p process) error {
	name := s.words[0]
	in := p.stdin
	if name == "-" {
		name = "stdin"
	} else {
		f, err := os.Open(name)
		if err != nil {
			return err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	tasks, places, err := readTasks(name, s.batch.format, s.batch.template, s.batch.sets, in)
	s.batch.job.Tasks, s.batch.places = s.withJobs(tasks), places
	return err
}

// withJobs gives the workspaces and verifiers that --set has made what the flags say of all.
func (s *settings) withJobs(tasks []fleet.Task) []fleet.Task {
	if len(s.batch.sets) == 0 {
		return tasks
	}
	for i := range tasks {
		t := &tasks[i]
		if of := s.batch.job.Workspace; of != nil && t.Workspace != nil {
			w := *of
			w.Kind, w.From, w.Rev = cmp.Or(t.Workspace.Kind, w.Kind), cmp.Or(t.Workspace.From, w.From), cmp.Or(t.Workspace.Rev, w.Rev)
			w.Setup, w.Teardown, w.Remove = cmp.Or(t.Workspace.Setup, w.Setup), cmp.Or(t.Workspace.Teardown, w.Teardown), t.Workspace.Remove || w.Remove
			t.Workspace = &w
		}
		if of := s.batch.job.Verify; of != nil && t.Verify != nil {
			v := *of
			v.Command, v.Prompt, v.Rounds = cmp.Or(t.Verify.Command, v.Command), cmp.Or(t.Verify.Prompt, v.Prompt), cmp.Or(t.Verify.Rounds, v.Rounds)
			v.Timeout = cmp.Or(t.Verify.Timeout, v.Timeout)
			t.Verify = &v
		}
	}
	return tasks
}

// checkBatch finds every mistake before anything starts, and says what would be done.
func (s *settings) checkBatch() (string, error) {
	job := &s.batch.job
	plans, err := job.Preview()
	if err != nil {
		return "", err
	}
	_, err = os.Stat(filepath.Join(job.Out, journal.Name))
	switch {
	case err == nil && !job.Resume && (!s.batch.dryRun || job.Sample > 0):
		return "", fmt.Errorf("%s has the journal of a job already; add --resume to continue it, or give another --out", job.Out)
	case err != nil && job.Resume:
		return "", fmt.Errorf("%s has no journal to go on with; leave --resume out", job.Out)
	}
	var b strings.Builder
	many := strconv.Itoa(atATime(job))
	if job.Pace != nil {
		many = "2 and more"
	}
	fmt.Fprintf(&b, "%s for %s, %s at a time; results go to %s\n", shown.Count(len(job.Tasks), "task"), s.agent, many, job.Out)
	for i := range job.Tasks {
		t := &job.Tasks[i]
		after := ""
		if len(t.After) > 0 {
			after = ", after " + strings.Join(t.After, ", ")
		}
		fmt.Fprintf(&b, "  %-20s %s%s\n", t.ID, shorten(t.Prompt, 60), after)
		if how := planLine(&plans[i]); i == 0 || how != planLine(&plans[i-1]) {
			fmt.Fprintf(&b, "  %-20s %s\n", "", how)
		}
	}
	return b.String(), nil
}

// shorten is the beginning of a text on one line.
func shorten(text string, most int) string {
	text = printable(strings.Join(strings.Fields(text), " "))
	if r := []rune(text); len(r) > most {
		text = string(r[:most-1]) + "…"
	}
	return text
}

// writtenSince reports whether a file was written after a time. File systems have coarser
// clocks, so a second before it is after it.
func writtenSince(file string, t time.Time) bool {
	st, err := os.Stat(file)
	return err == nil && !st.ModTime().Before(t.Add(-time.Second))
}

// playBatch runs the job to its end.
func (s *settings) playBatch(ctx context.Context, p process, c *console) (code int) {
	job := s.batch.job
	hook, err := s.webhook(ctx, p, c)
	if err != nil {
		return c.usage(err)
	}
	defer hook.wait()
	events, err := s.openEvents(p, c)
	if err != nil {
		return c.usage(err)
	}
	defer func() { code = events.close(code) }()
	progress := newProgress(c, s.quiet, len(job.Tasks), job.Out)
	job.OnEvent = func(e fleet.Event) {
		events.write(e)
		progress.event(e)
		hook.event(e)
	}
	if ended := p.ended(); ended != nil {
		return c.usage(ended)
	}
	h, err := fleet.Start(ctx, job)
	if err != nil {
		return notStarted(c, err)
	}
	progress.begin(h)
	defer s.openControl(c, h)()
	if rt, ok := s.opts.Runtime.(*runtime.Runtime); ok {
		defer s.openWindow(c, rt, h)()
	}
	w := &batchWatch{h: h, c: c, over: make(chan struct{})}
	go w.watch(p.signals)
	var failed error
	var results []fleet.TaskResult // of the samples
	for r, err := range h.Results(context.WithoutCancel(ctx)) {
		if err != nil {
			failed = err
			break
		}
		progress.result(&r)
		if job.Sample > 0 {
			results = append(results, r)
		}
	}
	<-h.Done()
	close(w.over)
	progress.end()
	var stopped *fleet.StoppedError
	if errors.As(failed, &stopped) && stopped.Reason == fleet.StopSample {
		failed = nil // as it was asked to
	}
	after := h.Snapshot()
	code = s.afterAcceptance(c, &after, s.summary(c, h.Progress(), failed, w.signal()))
	if job.Sample > 0 && code != exitOutput && code != exitPipe {
		if err := c.text(s.estimateText(estimate.New(len(job.Tasks), results))); err != nil {
			return c.outputLost(err)
		}
	}
	return code
}

// afterAcceptance says for how many tasks the command of --on-accept has not ended with 0.
func (s *settings) afterAcceptance(c *console, j *fleet.Snapshot, code int) int {
	count := map[fleet.OnAcceptState]int{}
	for i := range j.Tasks {
		if t := &j.Tasks[i]; t.OnAccept != nil {
			count[t.OnAccept.State]++
		}
	}
	delete(count, "done")
	if len(count) == 0 {
		return code
	}
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%s for %s", state, shown.Count(count[state], "task")))
	}
	c.note("the command of --on-accept is %s; troupe ctl %s on-accept TASK has it run again", strings.Join(parts, ", "), s.batch.job.Out)
	return max(code, exitResult)
}

// summary prints how the job ended, and returns the exit code.
func (s *settings) summary(c *console, p fleet.Progress, failed error, sig os.Signal) int {
	accepted, left := p.ByStatus[fleet.Accepted], p.Total-p.Finished
	text := fmt.Sprintf("%d of %s accepted", accepted, shown.Count(p.Total, "task"))
	for _, status := range sortedStatuses(p.ByStatus) {
		if status != fleet.Accepted {
			text += fmt.Sprintf(", %d %s", p.ByStatus[status], status)
		}
	}
	if left > 0 {
		how := "--resume runs them"
		if s.onMachines() {
			how = "the workers go on"
		}
		text += fmt.Sprintf(", %d left (%s)", left, how)
	}
	text += "; " + spent(p.Usage)
	if p.Denied > 0 {
		text += fmt.Sprintf("; %s %s denied", shown.Count(p.Denied, "call of tools"), shown.Verb(p.Denied, "was", "were"))
	}
	text += "\n"
	if s.asJSON {
		raw, err := os.ReadFile(filepath.Join(s.batch.job.Out, "summary.json"))
		if err != nil {
			c.note("there is no summary: %v", err)
		}
		text = string(raw)
	} else if report := filepath.Join(s.batch.job.Out, "report.html"); writtenSince(report, p.Started) {
		text += report + "\n"
	}
	if err := c.text(text); err != nil {
		return c.outputLost(err)
	}
	var stopped *fleet.StoppedError
	number, signaled := sig.(syscall.Signal)
	switch {
	case signaled && left > 0:
		return exitSignal + int(number)
	case failed != nil && (!errors.As(failed, &stopped) || stopped.Reason == fleet.StopJournal || stopped.Reason == fleet.StopOutage || stopped.Reason == "error"):
		c.note("%v", failed)
		return exitDied
	case failed != nil:
		c.note("%v", failed)
		return exitResult
	case accepted < p.Total:
		return exitResult
	}
	return exitOK
}

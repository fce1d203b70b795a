package command

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/fleet/journal"
)

// onMachines reports whether troupe batch is about a job of many machines.
func (s *settings) onMachines() bool {
	return s.gave("nats") || s.machines.detach || s.machines.attach != ""
}

// batchOnMachines is troupe batch for a job that workers run.
func batchOnMachines(ctx context.Context, p process, c *console, s *settings) (code int) {
	if err := errors.Join(s.completeServers(p, "troupe batch --nats")); err != nil {
		return c.usage(err)
	}
	if err := s.needsServers("troupe batch for many machines"); err != nil {
		return c.usage(err)
	}
	hook, err := s.webhook(ctx, p, c)
	if err != nil {
		return c.usage(err)
	}
	if s.machines.attach != "" {
		return s.attach(ctx, p, c, hook)
	}
	if s.machines.detach && s.batch.webhook != "" {
		return c.usage(&usageError{"--webhook posts from this program, which ends with --detach", "leave one of them out, or give --webhook to --attach"})
	}
	dir, err := os.MkdirTemp("", "troupe-submit-")
	if err != nil {
		return machinesFailed(c, err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	var spec *specification
	if err := p.unlessEnded(func() (err error) { spec, err = s.submission(ctx, p, dir); return err }); err != nil {
		return c.usage(err)
	}
	raw, err := json.Marshal(spec)
	if err != nil {
		return c.usage(&usageError{problem: err.Error()})
	}
	if err := s.checkEvents(); err != nil {
		return c.usage(err)
	}
	e := s.entry(spec)
	if s.batch.dryRun {
		return c.print(fmt.Sprintf("job %s: %s for %s, a specification of %d bytes for the servers at %s\n", e.Job, shown.Count(e.Tasks, "task"), e.Agent, len(raw), withoutToken(s.machines.servers.URLs)))
	}
	var events *eventFile
	if !s.machines.detach {
		if err := s.makeOut(); err != nil {
			return c.usage(err)
		}
		if events, err = s.openEvents(p, c); err != nil {
			return c.usage(err)
		}
	}
	defer func() { code = events.close(code) }()
	ctx, stop := untilSignal(ctx, p)
	defer stop()
	cluster, err := s.connect(ctx, p)
	if err != nil {
		return machinesFailed(c, err)
	}
	defer cluster.Close()
	if err := cluster.Submit(ctx, e, raw, spec.files()...); errors.Is(err, ErrJobThere) {
		return c.usage(&usageError{fmt.Sprintf("job %s: %v", e.Job, err), "give another --id, or troupe batch --attach " + e.Job})
	} else if err != nil {
		return machinesFailed(c, err)
	}
	c.note("job %s: the servers have it, with %s; it goes on without this program\n%s", e.Job, shown.Count(e.Tasks, "task"), s.attachLine(e.Job))
	s.tellHosts(ctx, c, cluster, &e)
	if s.machines.detach {
		return exitOK
	}
	return s.follow(ctx, c, cluster, e, spec, hook, events)
}

// submission reads and checks the job that the arguments say. Its files are made in dir.
func (s *settings) submission(ctx context.Context, p process, dir string) (*specification, error) {
	s.machines.elsewhere = true
	if err := s.completeBatch(); err != nil {
		return nil, err
	}
	s.batch.job.Command = typed(p.args[1:])
	if err := s.readBatch(p); err != nil {
		return nil, &usageError{problem: err.Error()}
	}
	agent, err := s.chooseElsewhere(p.getenv)
	if err != nil {
		return nil, err
	}
	if s.machines.agentVersion != "" && !isProgram(s.agent) {
		return nil, &usageError{"--agent-version is for claude and qoder, and not for " + s.agent, "leave it out"}
	}
	s.batch.job.Options = &s.opts
	if err := s.batch.job.Validate(); err != nil {
		return nil, s.placed(err)
	}
	if id := s.batch.job.ID; id != "" && !jobName.MatchString(id) {
		return nil, &usageError{fmt.Sprintf("--id: %q is no name of a job", id), "take 1 to 64 letters, digits, - and _"}
	}
	if _, err := os.Stat(filepath.Join(s.batch.job.Out, journal.Name)); err == nil && !s.machines.detach {
		return nil, &usageError{s.batch.job.Out + " has the journal of a job already", "give another --out, or --attach JOB to go on with that job"}
	}
	if l := s.machines.lease; l%time.Second != 0 {
		return nil, &usageError{fmt.Sprintf("--lease: %v has a part of a second", l), "take whole seconds"}
	}
	return s.specify(ctx, agent, dir)
}

// attachLine says how the results of a job are taken.
func (s *settings) attachLine(job string) string {
	return fmt.Sprintf("troupe batch --attach %s --nats %s --out DIR takes its results", job, withoutToken(s.machines.servers.URLs))
}

var (
	noJobName = regexp.MustCompile(`[^A-Za-z0-9_-]+`)
	jobName   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

// entry is that of a new job. Without --id, its name is that of its tasks with a number.
func (s *settings) entry(spec *specification) JobEntry {
	name := s.batch.job.ID
	if name == "" {
		base := filepath.Base(s.batch.job.Title)
		base = noJobName.ReplaceAllString(base[:len(base)-len(filepath.Ext(base))], "-")
		name = fmt.Sprintf("%s-%06x", cmp.Or(base[:min(len(base), 40)], "job"), rand.N(1<<24))
	}
	e := JobEntry{
		Job: name, State: JobOpen, Protocol: spec.Protocol, Title: s.batch.job.Title, Agent: s.agent, Tasks: len(spec.Tasks),
		Labels: s.machines.labels, AgentVersion: s.machines.agentVersion, Account: s.batch.job.Account, Submitter: ownName(), Submitted: time.Now().UTC(),
	}
	if s.machines.lease > 0 {
		e.Lease = s.machines.lease.String()
	}
	return e
}

// tellHosts says which workers there are for a job.
func (s *settings) tellHosts(ctx context.Context, c *console, cluster Cluster, e *JobEntry) {
	hosts, err := cluster.Hosts(ctx)
	if err != nil || s.quiet {
		return
	}
	why := unrun(e, hosts)
	if anyPath := s.path != "" || s.opts.PathToExecutable != ""; why == "" && !anyPath && !s.inCloud() {
		fit := func(h HostEntry) bool { return lacks(e.Agent, e.AgentVersion, h.Agents, h.Releases) == "" }
		if !slices.ContainsFunc(hosts, fit) {
			why = "none has " + strings.TrimSpace(e.Agent+" "+e.AgentVersion)
		}
	}
	if why != "" {
		c.note("no worker runs it now (%s): start troupe worker on a machine that has %s", printable(why), strings.TrimSpace(e.Agent+" "+e.AgentVersion))
	}
}

// attach takes the results of a job that was submitted before.
func (s *settings) attach(ctx context.Context, p process, c *console, hook *webhook) (code int) {
	if len(s.words) > 0 {
		return c.usage(&usageError{"--attach takes no TASKS: the servers have them", "leave " + s.words[0] + " out"})
	}
	for _, g := range s.given {
		if !slices.Contains(localFlags(), g.name) || slices.Contains([]string{"agent", "id", "format", "template", "set", "detach", "lease", "host-label"}, g.name) {
			return c.usage(&usageError{fmt.Sprintf("--%s is for a job that is submitted", g.name), "leave it out: --attach takes results"})
		}
	}
	events, err := s.openEvents(p, c)
	if err != nil {
		return c.usage(err)
	}
	defer func() { code = events.close(code) }()
	ctx, stop := untilSignal(ctx, p)
	defer stop()
	cluster, err := s.connect(ctx, p)
	if err != nil {
		return machinesFailed(c, err)
	}
	defer cluster.Close()
	e, err := jobNamed(ctx, cluster, s.machines.attach)
	if err != nil {
		return machinesFailed(c, err)
	}
	raw, err := cluster.Specification(ctx, e.Job)
	if err != nil {
		return machinesFailed(c, err)
	}
	var spec specification
	if err := json.Unmarshal(raw, &spec); err != nil {
		return machinesFailed(c, fmt.Errorf("job %s: its specification cannot be read: %w", e.Job, err))
	}
	s.batch.job.Out = cmp.Or(s.batch.job.Out, e.Job+".out")
	s.batch.job.Title, s.batch.job.Command, s.batch.job.Tasks, s.agent = e.Title, spec.Command, spec.Tasks, e.Agent
	return s.follow(ctx, c, cluster, e, &spec, hook, events)
}

// jobNamed is a job of the directory.
func jobNamed(ctx context.Context, cluster Cluster, name string) (JobEntry, error) {
	all, err := cluster.Jobs(ctx)
	if err != nil {
		return JobEntry{}, err
	}
	i := slices.IndexFunc(all, func(e JobEntry) bool { return e.Job == name })
	if i < 0 {
		return JobEntry{}, fmt.Errorf("job %s: %w: troupe jobs lists them", name, ErrNoJob)
	}
	return all[i], nil
}

func machinesFailed(c *console, err error) int {
	c.note("%s", printable(err.Error()))
	return exitResult
}

// follow takes the results of a job into --out until it is over. A signal ends that, and the job continues.
func (s *settings) follow(ctx context.Context, c *console, cluster Cluster, e JobEntry, spec *specification, hook *webhook, events *eventFile) int {
	tasks, files, end, err := cluster.Open(ctx, e)
	if err != nil {
		return machinesFailed(c, err)
	}
	defer end()
	of := s.batch.job
	job := fleet.Job{ID: e.Job, Title: of.Title, Command: spec.Command, Tasks: spec.Tasks, Hashes: spec.Hashes, Out: of.Out, Queue: tasks, Files: files, Share: fleet.ShareSubmit}
	if _, err := os.Stat(filepath.Join(job.Out, journal.Name)); err == nil {
		job.Resume = true
	}
	s.batch.job = job
	progress := newProgress(c, s.quiet, len(job.Tasks), job.Out)
	job.OnEvent = func(e fleet.Event) {
		events.write(e)
		progress.event(e)
	}
	if err := s.makeOut(); err != nil {
		return c.usage(err)
	}
	h, err := fleet.Start(context.WithoutCancel(ctx), job)
	if err != nil {
		return notStarted(c, err)
	}
	progress.begin(h)
	defer s.openControl(c, h)()
	defer context.AfterFunc(ctx, h.Cancel)()
	var beside sync.WaitGroup
	watching, stop := context.WithCancel(ctx)
	defer hook.wait()
	defer beside.Wait()
	defer stop()
	beside.Go(func() { hook.follow(watching, h) })
	if !s.quiet {
		beside.Go(func() { s.tellUnrun(watching, c, cluster, &e) })
	}
	var failed error
	for r, err := range h.Results(context.WithoutCancel(ctx)) {
		if err != nil {
			failed = err
			break
		}
		progress.result(&r)
	}
	<-h.Done()
	progress.end()
	if at := h.Progress(); ctx.Err() != nil && at.Finished < at.Total {
		c.note("job %s goes on\n%s", e.Job, s.attachLine(e.Job))
		failed = nil
	} else if failed == nil {
		s.over(ctx, c, cluster, e.Job, func(ctx context.Context) (bool, error) { return requeued(ctx, tasks) })
	}
	return s.summary(c, h.Progress(), failed, signalOf(ctx))
}

// over says in the directory that a job is over, for troupe jobs and for workers that come. Without that
// they find out by themselves. again looks, after that, whether a task was requeued meanwhile: the job was
// opened for it, perhaps before that.
func (s *settings) over(ctx context.Context, c *console, cluster Cluster, job string, again func(context.Context) (bool, error)) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
	defer cancel()
	err := cluster.Over(within, job)
	if err == nil {
		var open bool
		if open, err = again(within); open {
			err = cluster.NotOver(within, job)
		}
	}
	if err != nil && !s.quiet {
		c.note("job %s is over, but the directory of jobs does not say so: %s", job, printable(err.Error()))
	}
}

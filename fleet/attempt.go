package fleet

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"text/template"
	"time"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/fleet/journal"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/protocol/view"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// runner runs attempts, each on a separate task.
type runner struct {
	*env
	records *records
	spaces  *workspaces
	shared  *shared // nil: no other program may have the tasks
	servers servers
	// sessions are kept for other programs; nil without Job.Move.
	sessions *sessions
	markers  []string // of earlier hosts
}

// servers are MCP servers that sessions share.
type servers interface {
	Share(ctx context.Context, o *sdk.Options) (release func(), err error)
	Close(ctx context.Context) error
}

// attempt is one start of a task. It belongs to its task alone, and talks to the job by
// messages.
type attempt struct {
	launch
	*handle
	task       *Task
	opts       *sdk.Options
	ownEnv     map[string]string // Options.Env without what the job adds
	workspace  Workspace
	verify     *Verify
	prompts    []string // as they are sent
	space      space
	shellLimit time.Duration
	fence      uint64 // of the lease

	client   *sdk.Client
	stalls   *stallWatch
	began    time.Time // of the last turn
	sent     time.Time // when the model last got something to answer: a message, or the result of a tool
	costs    view.Costs
	spent    Usage // so far
	limited  *protocol.RateLimitMessage
	refused  bool
	script   journal.File              // the transcript; nil: none
	unkept   error                     // why the transcript is not complete
	refusals refusals                  // of the turn
	asked    bool                      // a model was
	ready    bool                      // the agent was
	proved   time.Time                 // when the machine was last notified that the model's API works
	waits    *kernel.Promise[struct{}] // settled if the attempt was interrupted because a call waits for a person
	judged   string                    // looked of the workspace after its last verification; "": not looked at
	acted    bool                      // a tool was called since then that does more than read
	from     *TaskNote                 // of the program whose session and workspace it continues with
	arrived  bool                      // it does
	stays    string                    // why its session cannot continue elsewhere; ""
	kept     string                    // name of the last parcel
	unmoved  string                    // why the last turn is not in it; "": it is
	parcels  int                       // that were put
	report
}

// report is what an attempt leaves for the task's result.
type report struct {
	Text       string
	Structured json.RawMessage
	Verdict    *Verdict
	Denied     int
	Denials    []Denial // the first of them
	ToolCalls  int
	Session    string
	Workspace  string
	Transcript string
	Diff       string
	warnings   []string
	err        error
	decided    string // why Before decided without a start
	started    time.Time
	how        Mode
	note       string // of Attempt
	place      space
	adopted    bool // what an earlier host had left running was ended
	remains    *remains
}

// attempt runs the attempt to its end. It never returns before the agent's processes are gone.
func (r *runner) attempt(ctx context.Context, a *attempt) (o outcome) {
	a.started = r.clock.Now()
	if stop, o := r.before(ctx, a); stop {
		return o
	}
	timeout := cmp.Or(time.Duration(a.task.Timeout), r.job.Timeout)
	limited, cancel := context.WithCancelCause(ctx)
	defer cancel(context.Canceled)
	if timeout > 0 {
		timer := r.clock.AfterFunc(timeout, func() { cancel(&timeLimit{timeout}) })
		defer timer.Stop()
	}
	if left := r.wallLeft(a); left > 0 {
		timer := r.clock.AfterFunc(left, func() { cancel(&budgetSpent{limit: "wall"}) })
		defer timer.Stop()
	}
	err := r.prepare(limited, a)
	if err == nil {
		err = a.stalls.explain(a.hard, r.exec, a.began, r.converse(limited, a))
	}
	if cause := context.Cause(limited); cause != nil && err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Canceled, err)
		} else { // a *timeLimit, or a *budgetSpent
			err = &cut{cause, err}
		}
	}
	return r.conclude(context.WithoutCancel(ctx), a, err)
}

// cut is the end of an attempt at a limit. The outcome of its work no longer counts.
type cut struct{ cause, err error }

func (e *cut) Error() string   { return e.cause.Error() }
func (e *cut) Unwrap() []error { return []error{e.cause, e.err} }

// before asks Job.Before.
func (r *runner) before(ctx context.Context, a *attempt) (bool, outcome) {
	if r.job.Before == nil {
		return false, outcome{}
	}
	var d Decision
	err := guard("Job.Before", func() (err error) { d, err = r.job.Before(ctx, a.task); return err })
	o := outcome{session: a.session, turns: a.turns, space: a.launch.space}
	switch {
	case err != nil && ctx.Err() != nil:
		o.status, o.why = Interrupted, err.Error()
	case err != nil:
		a.err = fmt.Errorf("before: %w", err)
		o.status, o.why, o.retry = NotStarted, a.err.Error(), true
	case d.Skip:
		o.status, a.decided = Skipped, cmp.Or(d.Why, "Before skipped it")
	case d.Fail:
		o.status, a.decided = Failed, cmp.Or(d.Why, "Before failed it")
	default:
		return false, outcome{}
	}
	return true, o
}

// prepare makes options, workspace and journal ready. After it an agent may start.
func (r *runner) prepare(ctx context.Context, a *attempt) error {
	if err := r.configure(ctx, a); err != nil {
		return err
	}
	r.reconsider(a)
	if err := r.adoptFor(ctx, a); err != nil {
		return err
	}
	if err := r.arrive(ctx, a); err != nil {
		return err
	}
	if err := r.fill(a); err != nil {
		return err
	}
	var err error
	s := a.with.space
	if a.mode == modeFresh {
		s, err = r.spaces.makeSpace(ctx, a)
	} else {
		a.space = s
	}
	if err == nil {
		err = r.spaces.useSpace(ctx, a, s)
	}
	a.Workspace = s.Dir
	if err == nil && a.mode == modeFresh && a.task.ExpectChange {
		if s.State, err = r.spaces.stateOf(ctx, a, s); err != nil {
			err = &badWorkspace{dir: s.Dir, err: err}
		}
	}
	if err != nil && a.mode == modeFresh && shortage(err) != "" { // the next start makes another one
		a.Workspace = ""
		return errors.Join(err, r.spaces.discard(ctx, a, s))
	}
	if err != nil {
		return err
	}
	a.space = s // no later attempt uses a workspace whose Setup failed
	a.opts.Cwd = a.space.work()
	if a.mode == modeResume {
		a.opts.Resume, a.opts.SessionID = a.session, ""
	} else if a.session = a.opts.SessionID; a.session == "" && !overACP(a.opts) {
		a.session = kernel.NewUUID(r.rt.Rand())
		a.opts.SessionID = a.session
	}
	a.Session = a.session
	if err := r.jot(ctx, a, a.turns, true, true); err != nil {
		return err
	}
	return r.records.starting(ctx, a)
}

// overACP reports whether the agent is one of the Agent Client Protocol. It makes the id of its
// session itself, and cannot have a policy.
func overACP(o *sdk.Options) bool { return o.Backend != nil && o.Backend.AgentName() == acpAgent }

// acpAgent is the name of the backend of acp/acpclient, which fleet does not link.
const acpAgent = "acp"

// configure makes the options of the attempt.
func (r *runner) configure(ctx context.Context, a *attempt) error {
	o, err := overlay(r.job.Options, a.task.Options)
	if err != nil {
		return &sdk.ConfigError{Option: "options", Problem: err.Error(), Fix: "see sdk.LoadOptions"}
	}
	a.opts, a.workspace, a.verify = o, r.job.workspaceOf(a.task), r.job.Verify
	if a.task.Verify != nil {
		a.verify = a.task.Verify
	}
	if r.job.Configure != nil {
		if err := guard("Job.Configure", func() error { return r.job.Configure(ctx, a.task, o) }); err != nil {
			return fmt.Errorf("configure: %w", err)
		}
	}
	if r.job.Budget.neverSpent(o) || r.job.budgetOf(a.task).neverSpent(o) { // Configure has changed the backend
		return &sdk.ConfigError{Option: "Budget.USD", Problem: noDollars, Fix: "set Budget.Credits, or a budget of tokens"}
	}
	o.Runtime, o.Discard = r.rt, false
	a.stalls = watchStalls(o)
	if o.Isolation == "" && (r.job.Out == "" || r.rt.StateDir() != "") { // the next host of a job resumes its sessions
		o.Isolation = session.IsolationAuto
	}
	if !r.job.Attended {
		o.Unattended = true
		o.Limits.StallKill = cmp.Or(o.Limits.StallKill, stallKill) // no person is there to end it
	}
	if err := r.permit(a); err != nil {
		return err
	}
	if r.job.Subagents != nil {
		r.limit(a, o)
	}
	if r.job.Move && r.shared != nil {
		if a.stays = unmovable(o); a.stays == "" {
			o.SessionStore = r.sessions
		}
	}
	a.ownEnv = o.Env
	env := maps.Clone(o.Env)
	if env == nil {
		env = map[string]string{}
	}
	for _, v := range a.variables() {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	env[r.marker] = "1"
	if r.job.Deferred && a.mode == modeResume {
		env[continues] = "1"
	}
	o.Env = env
	if name := backendName(o); name == claude.Name || name == embedded || o.MaxBudgetUSD.Or(0) > 0 {
		if usd := leastUSD(a.usd, o.MaxBudgetUSD.Or(0)); usd > 0 {
			o.MaxBudgetUSD = sdk.Some(usd)
		}
	}
	return nil
}

const (
	// continues has a session of the embedded agent that is resumed make the request again that it had
	// made before, and leave the message out.
	continues = "TROUPE_EMBEDDED_CONTINUES"
	// waitsWithin is how often a session that waits for a batch says so, at least.
	waitsWithin = 10 * time.Minute
)

// ports is how many ports a slot has for itself, from firstPort on.
const (
	firstPort = 20000
	ports     = 100
)

// variables are what agents, setups and verifiers get to tell tasks apart.
func (a *attempt) variables() []string {
	return []string{
		"TROUPE_TASK=" + a.task.ID,
		fmt.Sprintf("TROUPE_SLOT=%d", a.slot),
		fmt.Sprintf("TROUPE_PORT_BASE=%d", firstPort+ports*a.slot),
		fmt.Sprintf("TROUPE_FENCE=%d", a.fence),
	}
}

func (t *Task) template(text string) (*template.Template, error) {
	if len(t.After) == 0 {
		return nil, nil //nolint:nilnil // the text is none
	}
	return template.New("prompt").Option("missingkey=error").Parse(text)
}

// fill makes the prompts of the task, and prefaces a later session with the fate of the
// one before.
func (r *runner) fill(a *attempt) error {
	a.prompts = nil
	for _, p := range a.task.prompts() {
		t, err := a.task.template(p)
		if err != nil {
			return &sdk.ConfigError{Option: "prompt", Problem: err.Error(), Fix: "see package text/template"}
		}
		if t != nil {
			var b bytes.Buffer
			if err := t.Execute(&b, map[string]any{"Results": a.results()}); err != nil {
				return &sdk.ConfigError{Option: "prompt", Problem: err.Error(), Fix: "only the tasks of after have results"}
			}
			p = b.String()
		}
		a.prompts = append(a.prompts, p)
	}
	if a.turns >= len(a.prompts) && a.mode == modeResume {
		return nil // only the verification is left
	}
	if a.mode != modeResume {
		a.turns = 0
	}
	if a.task.Slash {
		return nil // a command has nothing before it
	}
	// The message comes first: agents show the begin of a prompt as the title of a session.
	switch next := &a.prompts[a.turns]; a.mode {
	case modeResume:
		*next += "\n\n[You were interrupted while you worked on this message, and some of it may be done already. " +
			"Look before you repeat a step, and finish it." + a.with.told + "]"
	case modeAgain:
		if a.why == "" { // nothing was done yet
			break
		}
		*next += "\n\n[An earlier attempt at this task ended early, and its conversation is lost (" + short(a.why) + "). " +
			"Its work may still be in this directory: look before you repeat a step.]"
	}
	return nil
}

func short(text string) string {
	return shown.Head(strings.Join(strings.Fields(text), " "), 200)
}

// results are those that a template may use.
func (a *attempt) results() map[string]TaskResult {
	all := make(map[string]TaskResult, len(a.with.results))
	for id, t := range a.with.results {
		all[id] = *t
	}
	return all
}

// doing notes what an attempt has begun.
func (r *runner) doing(a *attempt, what string) { r.tell(doing{a.id, a.number, what}) }

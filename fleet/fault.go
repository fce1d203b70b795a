package fleet

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/fleet/sharedmcp"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// sharedBy says which resource an error is about that all attempts need. Its failure counts
// for no task.
func sharedBy(err error) resource {
	var (
		breaker *session.BreakerOpenError
		start   *sdk.StartError
		retries *session.RetryLimitError
		result  *sdk.ResultError
		limit   *timeLimit
		spent   *budgetSpent
		auth    *sdk.AuthError
	)
	switch {
	case err == nil, errors.As(err, &limit), errors.As(err, &spent), errors.As(err, &auth):
		return ofTask
	case shortage(err) != "":
		return ofMachine
	case errors.As(err, new(*sharedmcp.StartError)):
		if errors.As(err, &start) && !sdk.Retryable(err) {
			return ofTask // its command cannot work
		}
		return ofServer
	case errors.As(err, &breaker):
		if breaker.Kind == session.BreakerProvider {
			return ofAPI
		}
		return ofProgram
	case errors.As(err, &retries):
		if !retries.Refused() {
			return ofAPI
		}
	case errors.As(err, &result):
		if resultVerdict(result).status == Overloaded {
			return ofAPI
		}
	case errors.As(err, &start):
		if own, ok := errors.AsType[interface {
			error
			OfSession() bool
		}](err); !ok || !own.OfSession() {
			return ofProgram
		}
	case duringStart(err):
		return ofProgram
	}
	return ofTask
}

// duringStart reports whether the agent ended, or did not answer, before it was ready.
func duringStart(err error) bool {
	if exit, ok := errors.AsType[*sdk.ExitError](err); ok {
		return exit.During == "initialize"
	}
	late, ok := errors.AsType[*sdk.TimeoutError](err)
	return ok && late.What == "initialize"
}

// shortage says what this machine is short of, and what to do; "": the error is another one.
func shortage(err error) string {
	for _, of := range []struct {
		what string
		is   []error
	}{
		{"the limit of open files is reached: raise it (ulimit -n), or run fewer tasks at a time (-j, Job.Concurrency)", []error{syscall.EMFILE, syscall.ENFILE}},
		{"the limit of processes is reached: raise it (ulimit -u, or the pids cgroup), or run fewer tasks at a time (-j, Job.Concurrency)", []error{syscall.EAGAIN}},
		{"there is no memory left: run fewer tasks at a time (-j, Job.Concurrency; --max-memory)", []error{syscall.ENOMEM}},
		{"the disk is full: free some space (--min-free-disk)", []error{syscall.ENOSPC, syscall.EDQUOT}},
		{"the disk cannot be used", []error{syscall.EIO, syscall.EROFS}},
	} {
		for _, errno := range of.is {
			if errors.Is(err, errno) {
				return of.what
			}
		}
	}
	return ""
}

// blame completes an outcome by what the attempt knows.
func (r *runner) blame(a *attempt, err error, o *outcome) {
	o.unstarted = !a.ready && a.client == nil || !a.ready && o.fault != ofTask
	if hint := shortage(err); hint != "" {
		o.why = fmt.Sprintf("%s (%s)", o.why, hint)
	}
	exit, early := errors.AsType[*sdk.ExitError](err)
	switch {
	case a.mode == modeResume && early && exit.During == "initialize" && unknownSession(exit):
		// The agent had not stored the session when the host died. The task is not at fault.
		o.session, o.turns, o.free, o.fault, o.unstarted = "", 0, true, ofTask, false
	case o.unstarted && a.mode != modeResume:
		o.session = ""
	}
	if o.fault == ofAPI && !o.gated && r.job.Patience == 0 && inMemory(a.opts) {
		o.fault = ofTask
	}
}

// unknownSession reports whether an agent ended because it does not know the session.
func unknownSession(e *sdk.ExitError) bool {
	text := claude.New().Traits().UnknownSession
	return text != "" && strings.Contains(e.StderrTail+e.LastResult, text)
}

// inMemory reports whether an agent is neither a program nor in the cloud.
func inMemory(o *sdk.Options) bool {
	if o == nil || o.Spawner != nil {
		return false
	}
	_, is := o.Backend.(agent.Program)
	return is
}

// provesEach is how often an attempt says that the model's API works.
const provesEach = 10 * time.Second

// proves reports to the machine that the model has answered.
func (r *runner) proves(a *attempt, m *sdk.AssistantMessage) {
	now := r.clock.Now()
	if m.Error != "" || m.APIErrorStatus != 0 || now.Sub(a.proved) < provesEach {
		return
	}
	a.proved = now
	r.post(reached{a.task.ID, ofAPI, a.sent})
}

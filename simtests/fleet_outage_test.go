package simtests_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/simtests"
)

// What may be away for a while.
const (
	theProgram = "program"
	theAPI     = "API"
	theMachine = "machine"
)

// away is an agent's program that ends at once.
type away struct{}

func (away) AgentName() string                         { return "claude" }
func (away) Serve(agent.Launch, agent.Port) agent.Exit { return agent.Exit{Code: 1} }

// outage is a time in which something is away that all tasks need.
type outage struct {
	of       string
	from, to time.Time
	starts   int
}

// outages is a job in a world where things are away, each for less than the patience.
type outages struct {
	*batch
	all []*outage
}

// on is the outage of something now; nil: it works.
func (o *outages) on(what string) *outage { return o.at(what, time.Now()) }

func (o *outages) at(what string, at time.Time) *outage {
	for _, x := range o.all {
		if x.of == what && !at.Before(x.from) && at.Before(x.to) {
			return x
		}
	}
	return nil
}

func newOutages(w *simtests.World) *outages {
	o := &outages{batch: newBatch(w)}
	o.spent, o.steps = 0, 0
	r, now := w.Rand(), time.Now()
	for _, what := range []string{theProgram, theAPI, theMachine} {
		for range r.IntN(3) { // two of one kind may be one that lasts twice as long
			from := now.Add(time.Minute + time.Duration(r.IntN(600))*time.Second)
			o.all = append(o.all, &outage{of: what, from: from, to: from.Add(time.Duration(1+r.IntN(720)) * time.Second)})
		}
	}
	j := &o.job
	j.Attempts, j.MaxStarts, j.EqualFailures, j.Patience = 2, 4, 2, 30*time.Minute // three hosts may die
	j.Budget, j.Approvals = nil, nil
	for i := range j.Tasks {
		t := &j.Tasks[i]
		t.Timeout, t.Budget, t.ExpectTools, t.Verify = 0, nil, false, &fleet.Verify{Check: o.verify}
		t.NotBefore = now.Add(time.Duration(r.IntN(900)) * time.Second)
	}
	j.Configure, j.OnEvent = o.configure, func(e fleet.Event) {
		if e.Kind == fleet.EventStarted {
			for _, what := range []string{theProgram, theAPI, theMachine} {
				if x := o.on(what); x != nil {
					x.starts++
				}
			}
		}
		o.saw(e)
	}
	return o
}

// configure gives an attempt an agent that fails if something is away: at its start, or when one
// of its turns begins.
func (o *outages) configure(_ context.Context, t *fleet.Task, opts *sdk.Options) error {
	if o.on(theProgram) != nil {
		opts.Backend = away{}
		return nil
	}
	takes := time.Duration(1+o.Rand().IntN(60)) * time.Second
	script := &scripted.Script{Transcript: true}
	for i := range 1 + len(t.Turns) {
		steps := scripted.Steps{scripted.Delay(takes), scripted.Text("done")}
		if o.at(theAPI, time.Now().Add(time.Duration(i)*takes)) != nil {
			o.running[t.ID].presses, o.pressed = true, true
			text := "overloaded"
			steps = scripted.Steps{scripted.Delay(takes), &scripted.Result{Subtype: "success", IsError: new(true), Text: &text, APIErrorStatus: 529}}
		}
		script.Turns = append(script.Turns, scripted.Turn{Steps: steps})
	}
	opts.Backend = scripted.New(scripted.WithScript(script), scripted.WithHistory(o.history))
	return nil
}

// verify needs the machine.
func (o *outages) verify(_ context.Context, c fleet.Candidate) (fleet.Verdict, error) {
	if o.on(theMachine) != nil {
		return fleet.Verdict{}, fmt.Errorf("fork: %w", syscall.EAGAIN)
	}
	o.said[c.Task.ID] = fleet.Accepted
	return fleet.Verdict{OK: true}, nil
}

// play runs hosts until one comes to the end of the job. Some die, and one in which the program
// has not started yet waits for it no longer than a minute.
func (o *outages) play() {
	deaths := o.Rand().IntN(4)
	for host := 0; ; host++ {
		require.Less(o, host, 60, "the job comes to its end")
		h := hostOf{after: -1}
		if host < deaths {
			h.after = 20 + o.Rand().IntN(60)
		}
		err := o.host(h)
		var stopped *fleet.StoppedError
		switch {
		case err == nil:
			still := o.handle.Progress().Outage
			o.must(still == "", "held: everything was accepted, and the job still waits for %s", still)
			return
		case o.dead:
			o.crash()
		case errors.As(err, &stopped):
			o.must(stopped.Reason == fleet.StopOutage && o.on(theProgram) != nil && strings.Contains(err.Error(), theProgram), "patient: the job stopped after an outage that was shorter: %v", err)
			o.Sometimes("a host found the program away", true)
			o.Sleep(time.Minute)
		default:
			require.NoError(o, err)
		}
	}
}

// check: no task is lost, and few attempts were made in vain.
func (o *outages) check() {
	for id, status := range o.known { //troupe:maporder each by itself
		o.must(status == fleet.Accepted, "lost: %s is %s, and nothing was away for longer than the patience", id, status)
	}
	o.must(len(o.known) == len(o.job.Tasks), "lost: %d results of %d tasks", len(o.known), len(o.job.Tasks))
	hosts := 8 // each may find out anew
	for _, x := range o.all {
		lasts := x.to.Sub(x.from)
		most := int(lasts/(7*time.Second)) + hosts*(6+4) + len(o.job.Tasks)
		o.must(x.starts <= most, "held: %d attempts started while the %s was away for %v", x.starts, x.of, lasts)
		o.Sometimes("an outage was seen: "+x.of, x.starts > 0)
	}
}

func anOutage(w *simtests.World) {
	o := newOutages(w)
	o.play()
	o.check()
}

// TestExploreOutages: no task is lost to an outage of the program, the API or the machine that is
// shorter than the patience, whenever it comes and whenever hosts die; and nothing storms.
func TestExploreOutages(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(60), Cost: 4, Twice: 1}, anOutage)
}

// The planted bugs of outages have to be found by this one.
func TestPlantedBugsOfOutages(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(20), Twice: -1, Shrink: -1, DoNotKeep: true}, anOutage)
}

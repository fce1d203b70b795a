package actors

import (
	"fmt"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// timer is a timer of the supervisor in one incarnation of an actor: tokens of
// others mean nothing to it.
type timer struct {
	of    string // name of the incarnation
	token uint64
}

// describe asks for the actors below the one that it is sent to. From: the user.
type describe struct {
	reply *kernel.Promise[[]session.ActorInfo]
}

func (describe) ToSession()   {}
func (describe) ToCallbacks() {}

// driver carries out a supervisor's decisions inside an actor.
type driver[M any] struct {
	sup *supervisor.Supervisor
	// spawn starts a child under name, which holds its incarnation. Unless it is up at once,
	// up is called later.
	spawn func(c *kernel.Context[M], child, name string) (at kernel.Located, up bool, err error)
	timer func(timer) M
	// halt stops a child, or kills it.
	halt func(c *kernel.Context[M], l liveChild, kill bool)
	// ended is called when the supervisor has stopped or given up for good.
	ended func(c *kernel.Context[M], reason error)

	live []liveChild
}

type liveChild struct {
	name        string // given to spawn
	child       string
	incarnation int
	at          kernel.Located
}

// child is the specification of an actor of the session's own: it is permanent.
func (k *Core) child(name string) supervisor.Child {
	return supervisor.Child{Name: name, Backoff: k.cfg.Supervisors.Backoffs[name]}
}

func childName(child string, incarnation int) string { return fmt.Sprintf("%s#%d", child, incarnation) }

func (d *driver[M]) start(c *kernel.Context[M]) {
	d.do(c, d.sup.Start(c.Now()))
}

// want starts a child unless it was started before.
func (d *driver[M]) want(c *kernel.Context[M], child supervisor.Child) error {
	actions, err := d.sup.StartChild(c.Now(), child)
	d.do(c, actions)
	return err
}

// fire takes a timer, unless it is one of an incarnation before.
func (d *driver[M]) fire(c *kernel.Context[M], t timer) {
	if t.of == c.Self().Name() {
		d.do(c, d.sup.Timer(c.Now(), supervisor.Token(t.token)))
	}
}

func (d *driver[M]) stop(c *kernel.Context[M], reason error) {
	d.do(c, d.sup.Stop(c.Now(), reason))
}

// down feeds the end of a child to the supervisor and returns the child's name
// without its incarnation.
func (d *driver[M]) down(c *kernel.Context[M], dead kernel.Down, before func(child string)) {
	i := d.find(dead.Name)
	if i < 0 {
		return
	}
	l := d.live[i]
	d.live = slices.Delete(d.live, i, i+1)
	before(l.child)
	d.do(c, d.sup.ChildDown(c.Now(), l.child, l.incarnation, dead.Reason))
}

func (d *driver[M]) do(c *kernel.Context[M], actions []supervisor.Action) {
	type failure struct {
		*supervisor.StartChild
		err error
	}
	for {
		var failures []failure
		for _, action := range actions {
			switch a := action.(type) {
			case *supervisor.StartChild:
				name := childName(a.Name, a.Incarnation)
				at, up, err := d.spawn(c, a.Name, name)
				if err != nil {
					failures = append(failures, failure{a, err})
					continue
				}
				d.live = append(d.live, liveChild{name, a.Name, a.Incarnation, at})
				if up {
					d.sup.ChildUp(c.Now(), a.Name, a.Incarnation)
				}
			case *supervisor.StopChild:
				d.stopChild(c, a.Name, a.Incarnation, false)
			case *supervisor.KillChild:
				d.stopChild(c, a.Name, a.Incarnation, true)
			case *supervisor.SetTimer:
				c.After(a.After, d.timer(timer{of: c.Self().Name(), token: uint64(a.Token)}))
			case *supervisor.Stopped:
				d.ended(c, a.Reason)
			}
		}
		if len(failures) == 0 {
			return
		}
		// Told last: a supervisor's decisions are carried out before its next input.
		actions = nil
		for _, f := range failures {
			actions = append(actions, d.sup.ChildDown(c.Now(), f.Name, f.Incarnation, f.err)...)
		}
	}
}

func (d *driver[M]) stopChild(c *kernel.Context[M], child string, incarnation int, kill bool) {
	if i := d.find(childName(child, incarnation)); i >= 0 {
		d.halt(c, d.live[i], kill)
	}
}

// up says that the present incarnation of a child has started.
func (d *driver[M]) up(c *kernel.Context[M], child string) {
	if i := slices.IndexFunc(d.live, func(l liveChild) bool { return l.child == child }); i >= 0 {
		d.sup.ChildUp(c.Now(), child, d.live[i].incarnation)
	}
}

// find is the place of a child in live; -1 when it is not there.
func (d *driver[M]) find(name string) int {
	return slices.IndexFunc(d.live, func(l liveChild) bool { return l.name == name })
}

// describe lists the children for Tree.
func (d *driver[M]) describe(now time.Time, prefix, parent string) []session.ActorInfo {
	var infos []session.ActorInfo
	failures, limit := d.sup.Recent(now)
	for _, s := range d.sup.Snapshot() {
		info := session.ActorInfo{Name: prefix + childName(s.Name, s.Incarnation), State: s.State.String(), Restarts: s.Restarts, Parent: parent, Started: s.StartedAt, FailedAt: s.FailedAt}
		if failures > 0 {
			info.WindowFailures, info.WindowLimit, info.WindowMS = failures, limit.Max, limit.Window.Milliseconds()
		}
		if s.Reason != nil {
			info.LastFailure = s.Reason.Error()
		}
		if i := d.find(childName(s.Name, s.Incarnation)); i >= 0 {
			at := d.live[i].at
			info.Depth, info.Handled, info.OldestMS = at.Depth(), at.Handled(), at.Waited(now).Milliseconds()
		}
		infos = append(infos, info)
	}
	return infos
}

func observe(emit func(session.Event)) func(supervisor.Event) {
	return func(e supervisor.Event) {
		switch e.(type) {
		case *supervisor.ChildFailed, *supervisor.ChildKilled, *supervisor.ChildStuck, *supervisor.NotRestarted,
			*supervisor.RestartScheduled, *supervisor.Restarted, *supervisor.IntensityExceeded, *supervisor.Escalated:
			emit(&session.Supervision{Decision: e})
		}
	}
}

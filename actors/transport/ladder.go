package transport

import (
	"errors"
	"time"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/session"
)

// stageTimer is the end of the present stage, if it has one.
func (k *Link) stageTimer() (machine.Stage, time.Time, bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.stage, k.stageEnd, k.phase == machine.Up && k.stage > machine.Open
}

// Ending is the wait for the end of the process in the present stage; false: the ladder
// has not begun, or the process has ended.
func (k *Link) Ending() (session.Wait, bool) {
	stage, end, climbing := k.stageTimer()
	if !climbing || end.IsZero() {
		return session.Wait{}, false
	}
	var w session.Wait
	g := k.cfg.Graces
	switch stage {
	case machine.ClosedStdin:
		w = session.Wait{What: "close: the exit after the end of stdin", Limit: g.EOF, SetBy: "Graces.EOF"}
	case machine.Terminated:
		w = session.Wait{What: "close: the exit after SIGTERM", Limit: g.Terminate, SetBy: "Graces.Terminate"}
	default:
		w = session.Wait{What: "close: the exit after SIGKILL", Limit: g.Sweep, SetBy: "Graces.Sweep"}
	}
	w.Since = end.Add(-w.Limit)
	w.Age = k.cfg.Clock.Now().Sub(w.Since)
	return w, true
}

// stageOver starts the next stage when a stage did not end the process within its
// grace.
func (k *Link) stageOver(stage machine.Stage, now time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	switch {
	case stage != k.stage || k.phase != machine.Up:
	case stage == machine.Killed:
		k.phase = machine.Exited
		k.up.Store(false)
		k.cfg.Exec.Go(k.unkillable)
	default:
		k.late = stage+1 == machine.Killed
		k.climbTo(stage+1, now)
	}
}

// want asks for the close ladder, from stage on. why, if it is not empty, is a reason
// of the link's own, which an [session.ExitError] says.
func (k *Link) want(stage machine.Stage, why string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.why == "" && k.wanted == machine.Open {
		k.why = why
	}
	k.wanted = max(k.wanted, stage)
}

// climbTo goes up the ladder to at least stage; mu is held. A process that is
// still being launched is dealt with when it is up.
func (k *Link) climbTo(stage machine.Stage, now time.Time) {
	if stage <= k.stage {
		return
	}
	k.stage = stage
	switch k.phase {
	case machine.Idle:
		k.phase = machine.Gone
		k.cfg.Exec.Go(func() { k.end(func() {}) })
	case machine.Launching:
		k.stopLaunch(errClosing)
	case machine.Up:
		k.act(now)
	}
}

// advance climbs to the stage that is wanted, and acts on one that was wanted
// before the process was up.
func (k *Link) advance() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.climbTo(k.wanted, k.cfg.Clock.Now())
	if k.phase == machine.Up && k.stage > machine.Open && k.stageEnd.IsZero() {
		k.act(k.cfg.Clock.Now())
	}
}

func (k *Link) act(now time.Time) {
	switch k.stage {
	case machine.Open:
	case machine.ClosedStdin:
		if k.writer.CloseAfterFlush() {
			k.cfg.Exec.Go(k.writer.run)
		}
		k.stageEnd = now.Add(k.cfg.Graces.EOF)
	case machine.Terminated:
		k.signal = session.SignalTerminate.String()
		_ = k.proc.Signal(session.SignalTerminate) // a process that is gone needs no signal
		k.stageEnd = now.Add(k.cfg.Graces.Terminate)
	case machine.Killed:
		k.signal = "SIGKILL"
		_ = k.proc.Kill()
		k.stageEnd = now.Add(k.cfg.Graces.Sweep)
	}
}

var errClosing = errors.New("the session was closed while its agent was being started")

// Abort ends the process at once. It needs no actor: it is the last resort of a
// session that cannot be supervised any more.
func (k *Link) Abort() { k.abort(false) }

// Expire is Abort by a caller whose time to wait is over.
func (k *Link) Expire() { k.abort(true) }

// Abandon is Abort when no actor is left: the reader no longer waits for credit.
func (k *Link) Abandon() {
	k.abort(false)
	k.resume()
}

func (k *Link) abort(late bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.phase == machine.Gone {
		return
	}
	k.late = k.late || late && k.stage < machine.Killed
	k.wanted = machine.Killed
	k.climbTo(machine.Killed, k.cfg.Clock.Now())
	if k.unattended == nil {
		k.unattended = k.cfg.Clock.AfterFunc(k.cfg.Graces.Sweep, func() { k.stageOver(machine.Killed, k.cfg.Clock.Now()) })
	}
}

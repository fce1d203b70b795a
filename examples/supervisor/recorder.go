package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// keepCalm is a strategy: it restarts what failed, alone, unless a restart cannot help.
type keepCalm struct{}

// Decide implements [supervisor.Strategy].
func (keepCalm) Decide(failed supervisor.Failed, _ []supervisor.ChildState) supervisor.Decision {
	if errors.Is(failed.Reason, errFull) {
		return supervisor.Decision{Escalate: true, Why: "no restart empties a disk"}
	}
	return supervisor.Decision{Restart: []string{failed.Child}, Why: "a new one may do better"}
}

// newRecorder returns a child that writes to a disk: the lines that it is sent, and when the
// agent begins to work. The function is called for each incarnation, so that each has new
// variables.
func newRecorder(d *disk) (*session.Child, *session.Ref[string]) {
	return session.NewChild(supervisor.Child{Name: "recorder"}, func() session.Behavior[string] {
		turns := 0
		return session.Behavior[string]{
			Start: func(context.Context) error { fmt.Println("recorder: starts"); return nil },
			Event: func(_ context.Context, r session.EventRecord) error {
				if e, ok := r.Event.(*session.StateChanged); ok && e.To == session.StateRunning.String() {
					turns++
					fmt.Println("recorder: turn", turns)
				}
				return nil
			},
			Handle: func(_ context.Context, line string) error { return d.write(line) },
		}
	})
}

var (
	errJam  = errors.New("the disk is jammed")
	errFull = errors.New("the disk is full")
)

// disk fails when its time has come.
type disk struct{ lines, jams, full int }

func (d *disk) write(line string) error {
	d.lines++
	switch d.lines {
	case d.jams:
		return errJam
	case d.full:
		return errFull
	}
	fmt.Println("recorder:", line)
	return nil
}

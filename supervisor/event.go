package supervisor

import (
	"fmt"
	"log/slog"
	"strings"
	"time"
)

// Event is an observation or a decision of a supervisor. Events are in the order in which
// they happened. The concrete types are *ChildStarted, *ChildFailed,
// *ChildStopped, *ChildKilled, *ChildStuck, *NotRestarted, *RestartScheduled, *Restarted,
// *IntensityExceeded, *Escalated, *Stopping and *Stopped. Do not modify them.
type Event interface {
	fmt.Stringer
	slog.LogValuer
	// When returns the time of the input that caused the event.
	When() time.Time
	isEvent()
}

// Origin has the fields of every event.
type Origin struct {
	At         time.Time // time of the input that caused the event
	Supervisor string    // Spec.Name
}

// When implements [Event].
func (o *Origin) When() time.Time { return o.At }

func (*Origin) isEvent() {}

// ChildStarted says that the supervisor has asked for an incarnation of a child.
type ChildStarted struct {
	Origin
	Child       string // its name
	Incarnation int    // 1 for the first
}

// ChildFailed says that a child ended unexpectedly: with a reason, or without one though
// it is permanent.
type ChildFailed struct {
	Origin
	Child       string // its name
	Incarnation int    // the one that ended
	Reason      error  // nil: a permanent child ended normally
}

// ChildStopped says that a child ended because it was asked to, or normally.
type ChildStopped struct {
	Origin
	Child       string // its name
	Incarnation int    // the one that ended
	Reason      error  // why it failed while it was being stopped, or nil
}

// ChildKilled says that the supervisor kills a child.
type ChildKilled struct {
	Origin
	Child       string // its name
	Incarnation int    // the one that is killed
	Why         string // the deadline that it missed, or that it has no deadline
}

// NotRestarted says that a child failed and stays down.
type NotRestarted struct {
	Origin
	Child       string // its name
	Incarnation int    // the one that failed
	Reason      error  // why it failed; nil if a permanent child ended normally
	Why         string // why it is not restarted: its class, or the strategy's reason
}

// ChildStuck says that a child was killed and has not ended within its deadline. The
// supervisor no longer waits for it. If it ends later, a ChildStopped follows, unless the
// supervisor has stopped by then.
type ChildStuck struct {
	Origin
	Child       string // its name
	Incarnation int    // the one that was killed
}

// RestartScheduled says that the children that a restart affects are down, and that the
// supervisor will start Children after Delay. A failure or a call of RestartChild during
// the delay may schedule the restart again.
type RestartScheduled struct {
	Origin
	Child    string        // the last child that caused the restart
	Reason   error         // why the child failed, or the reason given to RestartChild
	Why      string        // why the strategy restarts these children; may be empty
	Delay    time.Duration // from Origin.At; 0: at once
	Children []string      // the children that will be started, in order
}

// Restarted says that the supervisor has asked for the children of a restart again.
type Restarted struct {
	Origin
	Child    string   // the last child that caused the restart
	Children []string // the children that were started, in order
}

// IntensityExceeded says that there were more failures than the intensity allows.
type IntensityExceeded struct {
	Origin
	Child    string    // the child whose failure exceeded the intensity
	Failures int       // number of failures within the window, including this one
	Limit    Intensity // the intensity that was exceeded
}

// Escalated says that the supervisor has given up and its children are down.
type Escalated struct {
	Origin
	Failure *Failure // what the parent supervisor gets as the reason
}

// Stopping says that the supervisor has begun to stop its children and will not restart
// them.
type Stopping struct {
	Origin
	Reason error // see Stopped.Reason
}

// Stopped is the last event and the last action: the supervisor has ended.
type Stopped struct {
	Origin
	// Reason is what was passed to Stop, an error that matches ErrSignificant,
	// or the *Failure that was escalated.
	Reason error
	Stuck  []string // names of the children that did not end, in order
}

func (e *ChildStarted) String() string { return e.text("%s started", life(e.Child, e.Incarnation)) }

func (e *ChildFailed) String() string {
	return e.text("%s failed: %s", life(e.Child, e.Incarnation), reasonText(e.Reason))
}

func (e *ChildStopped) String() string {
	return e.text("%s stopped%s", life(e.Child, e.Incarnation), because(e.Reason))
}

func (e *ChildStuck) String() string { return e.text("%s %v", life(e.Child, e.Incarnation), ErrStuck) }

func (e *ChildKilled) String() string {
	return e.text("%s killed: %s", life(e.Child, e.Incarnation), e.Why)
}

func (e *NotRestarted) String() string {
	return e.text("%s is not restarted (%s)%s", life(e.Child, e.Incarnation), e.Why, because(e.Reason))
}

func (e *RestartScheduled) String() string {
	return e.text("restart of %s in %v%s", strings.Join(e.Children, ", "), e.Delay, because(e.Reason))
}

func (e *Restarted) String() string { return e.text("restarted %s", strings.Join(e.Children, ", ")) }

func (e *IntensityExceeded) String() string {
	if e.Limit.Max < 0 {
		return e.text("%s failed and is never to be restarted", e.Child)
	}
	return e.text("%s within %v, %d allowed", failures(e.Failures), e.Limit.Window, e.Limit.Max)
}

func (e *Escalated) String() string { return e.text("escalated%s", because(e.Failure)) }

func (e *Stopping) String() string { return e.text("stopping%s", because(e.Reason)) }

func (e *Stopped) String() string {
	stuck := ""
	if len(e.Stuck) > 0 {
		stuck = " without " + strings.Join(e.Stuck, ", ")
	}
	return e.text("stopped%s%s", stuck, because(e.Reason))
}

func (o *Origin) text(format string, args ...any) string {
	return oneLine(o.Supervisor + ": " + fmt.Sprintf(format, args...))
}

func because(reason error) string {
	if reason == nil {
		return ""
	}
	return ": " + reason.Error()
}

// LogValue implements [slog.LogValuer].
func (e *ChildStarted) LogValue() slog.Value {
	return e.group("child_started", childAttr(e.Child), incarnationAttr(e.Incarnation))
}

// LogValue implements [slog.LogValuer].
func (e *ChildFailed) LogValue() slog.Value {
	return e.group("child_failed", childAttr(e.Child), incarnationAttr(e.Incarnation), reasonAttr(e.Reason))
}

// LogValue implements [slog.LogValuer].
func (e *ChildStopped) LogValue() slog.Value {
	return e.group("child_stopped", childAttr(e.Child), incarnationAttr(e.Incarnation), reasonAttr(e.Reason))
}

// LogValue implements [slog.LogValuer].
func (e *ChildStuck) LogValue() slog.Value {
	return e.group("child_stuck", childAttr(e.Child), incarnationAttr(e.Incarnation))
}

// LogValue implements [slog.LogValuer].
func (e *ChildKilled) LogValue() slog.Value {
	return e.group("child_killed", childAttr(e.Child), incarnationAttr(e.Incarnation), whyAttr(e.Why))
}

// LogValue implements [slog.LogValuer].
func (e *NotRestarted) LogValue() slog.Value {
	return e.group("not_restarted", childAttr(e.Child), incarnationAttr(e.Incarnation), reasonAttr(e.Reason), whyAttr(e.Why))
}

// LogValue implements [slog.LogValuer].
func (e *RestartScheduled) LogValue() slog.Value {
	return e.group("restart_scheduled", childAttr(e.Child), reasonAttr(e.Reason), whyAttr(e.Why),
		slog.Duration("delay", e.Delay), slog.Any("children", e.Children))
}

// LogValue implements [slog.LogValuer].
func (e *Restarted) LogValue() slog.Value {
	return e.group("restarted", childAttr(e.Child), slog.Any("children", e.Children))
}

// LogValue implements [slog.LogValuer].
func (e *IntensityExceeded) LogValue() slog.Value {
	return e.group("intensity_exceeded", childAttr(e.Child), slog.Int("failures", e.Failures),
		slog.Int("max", e.Limit.Max), slog.Duration("window", e.Limit.Window))
}

// LogValue implements [slog.LogValuer].
func (e *Escalated) LogValue() slog.Value {
	return e.group("escalated", slog.Any("failure", e.Failure))
}

// LogValue implements [slog.LogValuer].
func (e *Stopping) LogValue() slog.Value { return e.group("stopping", reasonAttr(e.Reason)) }

// LogValue implements [slog.LogValuer].
func (e *Stopped) LogValue() slog.Value {
	attrs := []slog.Attr{reasonAttr(e.Reason)}
	if len(e.Stuck) > 0 {
		attrs = append(attrs, slog.Any("stuck", e.Stuck))
	}
	return e.group("stopped", attrs...)
}

func (o *Origin) group(event string, attrs ...slog.Attr) slog.Value {
	head := []slog.Attr{slog.String("event", event), slog.String("supervisor", o.Supervisor)}
	return slog.GroupValue(append(head, attrs...)...)
}

func childAttr(name string) slog.Attr { return slog.String("child", name) }
func incarnationAttr(n int) slog.Attr { return slog.Int("incarnation", n) }

// whyAttr is the attribute of a decision's reason. Without one it is the zero Attr, which
// handlers leave out.
func whyAttr(why string) slog.Attr {
	if why == "" {
		return slog.Attr{}
	}
	return slog.String("why", why)
}

// reasonAttr is the attribute of a reason. For a nil reason it is the zero Attr, which
// handlers leave out.
func reasonAttr(reason error) slog.Attr {
	if reason == nil {
		return slog.Attr{}
	}
	return slog.String("reason", reason.Error())
}

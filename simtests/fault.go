package simtests

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/agent/cloud/cloudtest"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/model/modeltest"
)

// Fault is something that goes wrong in a world. Make one with the functions of
// this package, such as [AgentCrash], and give it to [World.Faults]. Whether it
// happens is drawn from the seed, each time that it could.
type Fault struct {
	name string
	kind faultKind
	p    float64
	on   string // of callbacks: which
	d    time.Duration
	n    int
	// status is the HTTP status of APIRetryStorm.
	status int
	text   string
	cloud  func(*rand.Rand) cloudtest.Fault // of faultRequest and faultStream
	model  func(*rand.Rand) modeltest.Fault // of faultModel
	// command changes what a command does; of faultCommand.
	command func(*rand.Rand, *Ran)
	errno   syscall.Errno // of faultDisk
	from    time.Duration
	until   time.Duration // 0: no end
	most    int           // 0: no limit
}

type faultKind int

const (
	faultExit faultKind = iota
	faultTrapTerm
	faultStay
	faultStall
	faultSplit
	faultInsert
	faultRepeat
	faultDrop
	faultSwap
	faultSlow
	faultPanic
	faultGoexit
	faultError
	faultActor
	faultJump
	faultShutdown
	faultDeaf
	faultCrashInTool
	faultCrashWaiting
	faultRetries
	faultCancel
	faultReorder
	faultZero
	faultOutlive
	faultInside
	faultStep
	faultFleet
	faultNoTranscript
	faultCutTranscript
	faultLag
	faultConsumerStall
	faultConsumerLeaves
	faultRequest // of the cloud, no stream
	faultAnswer  // of the cloud, any
	faultStream
	faultModel
	faultCommand
	faultDisk
)

// P sets the probability, from 0 to 1, that the fault happens each time it could.
func (f Fault) P(p float64) Fault { f.p = p; return f }

// During limits the fault to a part of virtual time, since the world began. until 0: no
// end.
func (f Fault) During(from, until time.Duration) Fault { f.from, f.until = from, until; return f }

// AtMost limits how often the fault happens in one history.
func (f Fault) AtMost(n int) Fault { f.most = n; return f }

// Name is the fault's name in traces and reports.
func (f Fault) Name() string { return f.name }

// AgentCrash kills the agent with SIGKILL before it writes a line.
func AgentCrash(p float64) Fault { return Fault{name: "AgentCrash", kind: faultExit, p: p, n: -9} }

// AgentExit ends the agent with an exit code before it writes a line. 143 is
// SIGTERM, and 137 SIGKILL, as a shell reports them.
func AgentExit(p float64, code int) Fault {
	return Fault{name: fmt.Sprintf("AgentExit(%d)", code), kind: faultExit, p: p, n: code}
}

// CrashInTool kills the agent with SIGKILL after a tool call had its effect and before
// the agent writes the tool's result.
func CrashInTool(p float64) Fault {
	return Fault{name: "CrashInTool", kind: faultCrashInTool, p: p, n: -9}
}

// CrashWaiting kills the agent with SIGKILL once it has waited for d for a line of the
// host, between turns or for an answer. It is drawn each time the agent begins to wait.
func CrashWaiting(p float64, d time.Duration) Fault {
	return Fault{name: "CrashWaiting", kind: faultCrashWaiting, p: p, d: d}
}

// IgnoreTerm makes an agent ignore SIGTERM. It is drawn for each process.
func IgnoreTerm(p float64) Fault { return Fault{name: "IgnoreTerm", kind: faultTrapTerm, p: p} }

// StayAfterEOF makes an agent stay when its stdin is closed. It is drawn for each
// process.
func StayAfterEOF(p float64) Fault { return Fault{name: "StayAfterEOF", kind: faultStay, p: p} }

// StallStdout makes an agent wait for d before it writes a line.
func StallStdout(p float64, d time.Duration) Fault {
	return Fault{name: "StallStdout", kind: faultStall, p: p, d: d}
}

// BlockStdin makes an agent wait for d before it reads a line.
func BlockStdin(p float64, d time.Duration) Fault {
	return Fault{name: "BlockStdin", kind: faultDeaf, p: p, d: d}
}

// SplitWrites writes a line in pieces that the seed chooses.
func SplitWrites(p float64) Fault { return Fault{name: "SplitWrites", kind: faultSplit, p: p} }

// Noise writes a line that is not JSON before a line.
func Noise(p float64) Fault {
	return Fault{name: "Noise", kind: faultInsert, p: p, text: "warning: something the agent's runtime prints\n"}
}

// OverlongLine writes a line of n bytes before a line.
func OverlongLine(p float64, n int) Fault {
	return Fault{name: "OverlongLine", kind: faultInsert, p: p, n: n}
}

// UnknownType writes a message of a type that no release knows before a line.
func UnknownType(p float64) Fault {
	return Fault{name: "UnknownType", kind: faultInsert, p: p, text: `{"type":"from_the_future","value":1}` + "\n"}
}

// APIRetryStorm writes n api_retry messages with the HTTP status, such as 429 or 529,
// before an assistant message. The agent waits after each: 1 s, 2 s, 4 s and so on, at
// most 32 s.
func APIRetryStorm(p float64, status, n int) Fault {
	return Fault{name: fmt.Sprintf("APIRetryStorm(%d)", status), kind: faultRetries, p: p, n: n, status: status}
}

// CancelInFlight makes an agent cancel a permission request or a hook call: it writes a
// control_cancel_request, at once or 5 ms after the request, and treats the request as
// failed. An answer that crosses the cancel is dropped.
func CancelInFlight(p float64) Fault { return Fault{name: "CancelInFlight", kind: faultCancel, p: p} }

// UnknownAnswer writes a control response without a request before a line.
func UnknownAnswer(p float64) Fault {
	return Fault{name: "UnknownAnswer", kind: faultInsert, p: p,
		text: `{"type":"control_response","response":{"subtype":"success","request_id":"nobody-asked","response":{}}}` + "\n"}
}

// AnswerTwice writes an agent's answer to a call of the host a second time.
func AnswerTwice(p float64) Fault { return Fault{name: "AnswerTwice", kind: faultRepeat, p: p} }

// AnswerMissing drops an agent's answer to a call of the host, but for initialize's.
func AnswerMissing(p float64) Fault { return Fault{name: "AnswerMissing", kind: faultDrop, p: p} }

// AnswerLate holds an agent's answer to a call of the host back until the agent has
// written its next line, or for one second if there is no next line.
func AnswerLate(p float64) Fault { return Fault{name: "AnswerLate", kind: faultSwap, p: p} }

// AnswersReordered holds an agent's answer to a call of the host back until the agent has
// written its next answer, or for at most one second.
func AnswersReordered(p float64) Fault {
	return Fault{name: "AnswersReordered", kind: faultReorder, p: p}
}

// SlowCallback makes a callback take d longer. The callback is "CanUseTool" or the
// name of a hook event, such as "PreToolUse"; "" is any.
func SlowCallback(p float64, callback string, d time.Duration) Fault {
	return Fault{name: "SlowCallback(" + callback + ")", kind: faultSlow, p: p, on: callback, d: d}
}

// PanicCallback makes a callback panic.
func PanicCallback(p float64, callback string) Fault {
	return Fault{name: "PanicCallback(" + callback + ")", kind: faultPanic, p: p, on: callback}
}

// GoexitCallback makes a callback end its goroutine, as t.FailNow does.
func GoexitCallback(p float64, callback string) Fault {
	return Fault{name: "GoexitCallback(" + callback + ")", kind: faultGoexit, p: p, on: callback}
}

// ErrorCallback makes a callback return an error without having been called.
func ErrorCallback(p float64, callback string) Fault {
	return Fault{name: "ErrorCallback(" + callback + ")", kind: faultError, p: p, on: callback}
}

// ZeroCallback makes a callback return the zero result and no error, without having been
// called.
func ZeroCallback(p float64, callback string) Fault {
	return Fault{name: "ZeroCallback(" + callback + ")", kind: faultZero, p: p, on: callback}
}

// OutliveCallback makes a callback take d longer and ignore its context meanwhile, so
// that it may return after its session has ended.
func OutliveCallback(p float64, callback string, d time.Duration) Fault {
	return Fault{name: "OutliveCallback(" + callback + ")", kind: faultOutlive, p: p, on: callback, d: d}
}

// KillActor kills an actor of Troupe's before or after a message, or after one of its
// effects. Its next incarnation continues. More deaths than a session's actors may have
// (three in 30 s) end the session.
func KillActor(p float64) Fault { return Fault{name: "KillActor", kind: faultActor, p: p} }

// KillInside kills a session's supervisor or router in the middle of a message: after
// one of the message's effects, before the others. The other actors have no effects
// that are carried out one by one; they die before or after a message, by [KillActor].
func KillInside(p float64) Fault { return Fault{name: "KillInside", kind: faultInside, p: p} }

// KillStep kills a session's supervisor or router while it changes what it knows of the
// session, which is not trusted any more then: the session fails.
func KillStep(p float64) Fault { return Fault{name: "KillStep", kind: faultStep, p: p} }

// KillFleet makes the actor that starts and stops sessions fail at a message, which is lost.
// It has no supervisor, and continues.
func KillFleet(p float64) Fault { return Fault{name: "KillFleet", kind: faultFleet, p: p} }

// TranscriptMissing makes the transcript of a session absent when an agent resumes it.
func TranscriptMissing(p float64) Fault {
	return Fault{name: "TranscriptMissing", kind: faultNoTranscript, p: p}
}

// TranscriptTruncated cuts the transcript of a session at a byte that the seed chooses
// when an agent resumes it.
func TranscriptTruncated(p float64) Fault {
	return Fault{name: "TranscriptTruncated", kind: faultCutTranscript, p: p}
}

// TranscriptUnsynced makes an agent store a line of a turn up to d after its output, as
// Claude Code does (0.12 s): an agent that dies loses the last lines. It is drawn for each
// process.
func TranscriptUnsynced(p float64, d time.Duration) Fault {
	return Fault{name: "TranscriptUnsynced", kind: faultLag, p: p, d: d}
}

// ConsumerStalls makes a reader of messages wait for d before it reads the next one. It
// happens to readers that call [World.Read].
func ConsumerStalls(p float64, d time.Duration) Fault {
	return Fault{name: "ConsumerStalls", kind: faultConsumerStall, p: p, d: d}
}

// ConsumerLeaves makes a reader of messages stop reading for good. It happens to readers
// that call [World.Read].
func ConsumerLeaves(p float64) Fault {
	return Fault{name: "ConsumerLeaves", kind: faultConsumerLeaves, p: p}
}

// ClockJump lets d pass at once, as when a machine wakes up: everything that became
// due meanwhile is late. It is drawn at each message of an actor.
func ClockJump(p float64, d time.Duration) Fault {
	return Fault{name: "ClockJump", kind: faultJump, p: p, d: d, most: 3}
}

// HostShutdown shuts the runtime down. It is drawn at each message of an actor, and
// happens once.
func HostShutdown(p float64) Fault {
	return Fault{name: "HostShutdown", kind: faultShutdown, p: p, most: 1}
}

// applied is a fault in a world.
type applied struct {
	Fault
	id    string
	rng   *rand.Rand
	asked int
	fired int
	off   bool // this seed does not have it
}

// Faults are what may go wrong from now on. Each seed draws which of them it has,
// unless Config.AllFaults is set.
func (w *World) Faults(faults ...Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range faults {
		a := &applied{Fault: f, id: f.name}
		for n := 2; slices.ContainsFunc(w.faults, func(o *applied) bool { return o.id == a.id }); n++ {
			a.id = fmt.Sprintf("%s#%d", f.name, n)
		}
		sum := fnv.New64a()
		_, _ = sum.Write([]byte(a.id)) // never fails
		a.rng = rand.New(rand.NewPCG(w.h.Seed, sum.Sum64()))
		a.off = !w.c.AllFaults && a.rng.IntN(2) == 0
		w.faults = append(w.faults, a)
		w.ofKind[a.kind] = append(w.ofKind[a.kind], a)
	}
}

// strike draws whether a fault of one of the kinds happens here, and returns it; nil:
// none. on is the callback, if it is one's.
func (w *World) strike(where, on string, kinds ...faultKind) *applied {
	w.mu.Lock()
	var hit *applied
	at := ""
	for _, kind := range kinds {
		for _, a := range w.ofKind[kind] {
			if a.on != "" && a.on != on || !w.draw(a) || hit != nil {
				continue
			}
			hit, at = a, fmt.Sprintf("%s@%d", a.id, a.asked)
			a.fired++
			w.fired = append(w.fired, at)
			w.faulted[a.id] = true
		}
	}
	w.mu.Unlock()
	if hit != nil {
		w.note(Event{Kind: "fault", Lane: where, What: at})
	}
	return hit
}

// draw decides about one occasion; mu is held.
func (w *World) draw(a *applied) bool {
	a.asked++
	hit := a.rng.Float64() < a.p
	if w.h.Faults != nil { // exactly those
		return slices.Contains(w.h.Faults, fmt.Sprintf("%s@%d", a.id, a.asked))
	}
	at := w.Elapsed()
	return hit && !w.calm && !a.off && at >= a.from && (a.until == 0 || at < a.until) && (a.most == 0 || a.fired < a.most)
}

// killed decides whether an actor dies here, and what else happens at a message.
func (w *World) killed(actor string, _ any, at kernel.Moment) bool {
	switch {
	case actor == "":
		return false
	case actor == "fleet":
		return w.strike(actor, "", faultFleet) != nil
	case at == kernel.InStep:
		return w.strike(actor, "", faultStep) != nil
	}
	if at == kernel.BeforeMessage {
		if w.strike(actor, "", faultShutdown) != nil {
			w.sched.GoAs(laneWorld, func() { _ = w.rt.Shutdown(w.ctx) }) // finish does it again, and looks at the error
		}
		if f := w.strike(actor, "", faultJump); f != nil {
			w.sched.Jump(f.d)
		}
	}
	if at == kernel.AfterEffect && w.strike(actor, "", faultInside) != nil {
		return true
	}
	return w.strike(actor, "", faultActor) != nil
}

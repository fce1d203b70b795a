package simtests

import (
	"math/rand/v2"
	"strconv"
	"syscall"
	"time"

	"github.com/agent-troupe/troupe/model/modeltest"
)

// ModelFault makes something go wrong with a request to the model of an embedded agent. f
// draws what.
func ModelFault(p float64, name string, f func(*rand.Rand) modeltest.Fault) Fault {
	return Fault{name: name, kind: faultModel, p: p, model: f}
}

// ModelFaults are the faults of models and of the way to them that this package knows, each
// with the probability p: refused connections, statuses, streams that break, end, fall silent
// or drip, garbage, events in disorder and twice, ids that are doubled, answers that are empty
// or cut short, refusals. Errors may repeat the key.
func ModelFaults(p float64) []Fault {
	constant := func(f modeltest.Fault) func(*rand.Rand) modeltest.Fault {
		return func(*rand.Rand) modeltest.Fault { return f }
	}
	const most = 1500 // bytes of a stream
	return []Fault{
		ModelFault(p, "ModelRefuses", constant(modeltest.Fault{NoConnection: true})),
		ModelFault(p, "ModelSlow", constant(modeltest.Fault{Delay: 20 * time.Second, Pause: time.Second})),
		ModelFault(p, "Model429", func(rng *rand.Rand) modeltest.Fault {
			return modeltest.Fault{Status: 429, RetryAfter: strconv.Itoa(1 + rng.IntN(90))}
		}),
		ModelFault(p, "Model529", constant(modeltest.Fault{Status: 529})),
		ModelFault(p, "Model500", constant(modeltest.Fault{Status: 500, Message: "no such key: " + theKey})),
		ModelFault(p/4, "Model401", constant(modeltest.Fault{Status: 401, Message: "invalid key " + theKey})),
		ModelFault(p/4, "Model403", constant(modeltest.Fault{Status: 403, Type: theKey, Message: theKey + " may not use this model"})),
		ModelFault(p/4, "Model400", constant(modeltest.Fault{Status: 400, Type: theKey})),
		ModelFault(p/4, "ModelPage", constant(modeltest.Fault{Page: "<html>" + theKey})),
		ModelFault(p, "ModelBreaks", func(rng *rand.Rand) modeltest.Fault { return modeltest.Fault{BreakAt: 1 + rng.IntN(most)} }),
		ModelFault(p, "ModelEnds", func(rng *rand.Rand) modeltest.Fault { return modeltest.Fault{EndAt: 1 + rng.IntN(most)} }),
		ModelFault(p/2, "ModelSilent", func(rng *rand.Rand) modeltest.Fault { return modeltest.Fault{SilentAt: 1 + rng.IntN(most)} }),
		ModelFault(p, "ModelDrips", func(rng *rand.Rand) modeltest.Fault {
			return modeltest.Fault{Piece: 40 + rng.IntN(200), Pause: time.Duration(rng.IntN(2)) * 300 * time.Millisecond}
		}),
		ModelFault(p/2, "ModelGarbage", constant(modeltest.Fault{Garbage: true})),
		ModelFault(p/2, "ModelOverloaded", constant(modeltest.Fault{Error: true})),
		ModelFault(p/2, "ModelSwapped", constant(modeltest.Fault{Swapped: true})),
		ModelFault(p/4, "ModelTwice", constant(modeltest.Fault{Twice: true})),
		ModelFault(p/2, "ModelDuplicate", constant(modeltest.Fault{Duplicate: true})),
		ModelFault(p, "ModelSameID", constant(modeltest.Fault{SameID: true})),
		ModelFault(p/2, "ModelOldID", constant(modeltest.Fault{OldID: true})),
		ModelFault(p/2, "ModelEmpty", constant(modeltest.Fault{Empty: true})),
		ModelFault(p/2, "ModelCutShort", constant(modeltest.Fault{Stop: "max_tokens"})),
		ModelFault(p/4, "ModelRefusal", constant(modeltest.Fault{Stop: "refusal"})),
	}
}

// CommandFaults are the faults of the commands of an embedded agent, each with the probability
// p: they cannot be started, fail, are killed, take long, hang, print without an end, leave a
// process behind.
func CommandFaults(p float64) []Fault {
	return []Fault{
		commandFault("CommandRefused", p, func(_ *rand.Rand, r *Ran) { r.refused = true }),
		commandFault("CommandFails", p, func(rng *rand.Rand, r *Ran) { r.Code, r.Output = 1+rng.IntN(254), "it failed\n" }),
		commandFault("CommandKilled", p, func(_ *rand.Rand, r *Ran) { r.killed = true }),
		commandFault("CommandSlow", p, func(rng *rand.Rand, r *Ran) { r.Takes += time.Duration(rng.IntN(200)) * time.Second }),
		commandFault("CommandHangs", p, func(_ *rand.Rand, r *Ran) { r.hangs = true }),
		commandFault("CommandEndless", p, func(_ *rand.Rand, r *Ran) { r.endless = 2 * time.Second }),
		commandFault("CommandLeaves", p, func(_ *rand.Rand, r *Ran) { r.Child = true }),
	}
}

// DiskFaults are the faults of the disk of an embedded agent, each with the probability p: a
// file that cannot be read, a disk that is full before a write or within it, a file that does
// not get its name. They are those of the tools' files and of the sessions that are stored.
func DiskFaults(p float64) []Fault {
	fault := func(name, op string, err syscall.Errno) Fault {
		return Fault{name: name, kind: faultDisk, p: p, on: op, errno: err}
	}
	return []Fault{
		fault("DiskUnreadable", "read", syscall.EIO), fault("DiskFull", "make", syscall.ENOSPC),
		fault("DiskShort", "write", syscall.ENOSPC), fault("DiskBroken", "write", syscall.EIO), fault("DiskNoName", "rename", syscall.EIO),
		fault("DiskUnsynced", "sync", syscall.EIO),
	}
}

// diskFails draws whether an operation fails.
func (w *World) diskFails(op, _ string) error {
	if hit := w.strike(w.sched.running(), op, faultDisk); hit != nil {
		return hit.errno
	}
	return nil
}

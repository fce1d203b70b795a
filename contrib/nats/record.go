package troupenats

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agent-troupe/troupe/fleet/queue"
)

// The headers of a message of a job. Headers of later versions are left alone.
const (
	headState  = "Troupe-State"  // offered, leased, free or over
	headWorker = "Troupe-Worker" // as in a path
	headFence  = "Troupe-Fence"  // not on the message that grants a lease: its sequence is the fence
	headWrite  = "Troupe-Write"  // a name of the write, by which its tries know each other
	headObject = "Troupe-Object" // the object that has what is too large for a message
	headStarts = "Troupe-Starts" // of a note: how often its task was started
	headNote   = "Troupe-Note"   // the note in base64, unless it is large: then the body has it
	headGiven  = "Troupe-Given"  // the result was offered: no lease has finished the task
	headTTL    = "Nats-TTL"      // the server removes the message then
)

// States of messages that are not where a task stands.
const (
	offered queue.State = "offered" // tasks
	noted   queue.State = "note"
	decided queue.State = "decision"
)

// record is the last message of a task.
type record struct {
	state  queue.State
	worker string
	fence  uint64
	write  string
	object string
	ttl    time.Duration // of a lease

	offered bool      // the result was
	starts  int       // of a note
	note    []byte    // the body has it if this is nil
	alone   bool      // nothing that the subject had before stays
	at      time.Time // of the message, by the clock of the server that leads the stream

	seq  uint64    // of the message; 0: the subject has no message
	gone bool      // the message, since the lease has ended
	seen time.Time // by this program
	body []byte    // nil unless this program has it
}

// expected is the sequence that the next write of the subject must follow.
func (r record) expected() uint64 {
	if r.gone {
		return 0
	}
	return r.seq
}

// left is how long a lease may still last, as this program sees it: it may have been extended.
func (r record) left() time.Duration { return r.ttl - time.Since(r.seen) }

// holds reports whether the record is a message of that lease.
func (r record) holds(l queue.Lease) bool { return r.state == queue.Leased && r.fence == l.Fence }

// repeats reports whether want is a second result of the lease that has finished the task: the
// first result counts, and the second call returns no error.
func (r record) repeats(l queue.Lease, want record) bool {
	return want.state == queue.Over && r.state == queue.Over && r.fence == l.Fence && !r.offered
}

func (r record) change(task string) queue.Change {
	c := queue.Change{Task: task, State: r.state, Fence: r.fence}
	if r.state == queue.Leased || r.state == queue.Over {
		c.Worker = r.worker
	}
	return c
}

func (r record) header() nats.Header {
	h := nats.Header{headState: {string(r.state)}, headWrite: {r.write}}
	if r.worker != "" {
		h.Set(headWorker, url.PathEscape(r.worker))
	}
	if r.fence != 0 {
		h.Set(headFence, strconv.FormatUint(r.fence, 10))
	}
	if r.object != "" {
		h.Set(headObject, r.object)
	}
	if r.offered {
		h.Set(headGiven, "1")
	}
	if r.state == noted {
		h.Set(headStarts, strconv.Itoa(r.starts))
		if r.note != nil {
			h.Set(headNote, base64.StdEncoding.EncodeToString(r.note))
		}
	}
	if r.alone {
		h.Set(jetstream.MsgRollup, jetstream.MsgRollupSubject)
	}
	return h
}

func parse(h nats.Header, body []byte, seq uint64) record {
	r := record{state: queue.State(h.Get(headState)), write: h.Get(headWrite), object: h.Get(headObject), seq: seq, body: body, seen: time.Now()}
	r.worker, _ = url.PathUnescape(h.Get(headWorker))
	r.fence, _ = strconv.ParseUint(h.Get(headFence), 10, 64)
	r.offered = h.Get(headGiven) != ""
	if r.starts, _ = strconv.Atoi(h.Get(headStarts)); r.state == noted {
		r.note, _ = base64.StdEncoding.DecodeString(h.Get(headNote))
		if len(r.note) == 0 {
			r.note = body // nil if the headers came alone
		}
	}
	if r.state == queue.Leased {
		if r.ttl = ttlOf(h.Get(headTTL)); r.fence == 0 {
			r.fence = seq
		}
	}
	return r
}

// ttlOf reads a time to live: seconds, or as Go writes it.
func ttlOf(text string) time.Duration {
	if d, err := time.ParseDuration(text); err == nil {
		return d
	}
	n, _ := strconv.ParseInt(text, 10, 32)
	return time.Duration(n) * time.Second
}

// In a subject a point divides.
func token(task string) string { return strings.ReplaceAll(task, ".", "=") }
func untoken(s string) string  { return strings.ReplaceAll(s, "=", ".") }

// newName returns a name that nothing else has.
func newName() string {
	var b [12]byte
	_, _ = rand.Read(b[:]) // it never fails
	return hex.EncodeToString(b[:])
}

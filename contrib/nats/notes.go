package troupenats

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agent-troupe/troupe/fleet/queue"
)

// shortNote is the length of a note that is in a header: programs that watch need not ask for it.
const shortNote = 8 << 10

// Note implements queue.Queue. The server checks the lease and keeps the note in one step.
func (q *Queue) Note(ctx context.Context, l queue.Lease, note json.RawMessage) error {
	r := record{state: noted, fence: l.Fence, starts: l.Starts, write: newName(), note: bytes.Clone(note)}
	if r.note == nil {
		r.note = []byte{}
	}
	m := &nats.Msg{Subject: q.noteSubject(l.Task), Header: r.header()}
	if n := len(note); n == 0 || n > shortNote {
		m.Header.Del(headNote)
		m.Data = r.note
	}
	m.Header.Set(jetstream.MsgIDHeader, r.write) // for two minutes the server takes it once
	again := q.retry()
	seq, err := q.holding(ctx, l, 0)
	for err == nil {
		try, cancel := context.WithTimeout(ctx, q.cfg.Try)
		ack, failed := q.js.PublishMsg(try, m, jetstream.WithExpectLastSequenceForSubject(seq, q.subject(l.Task)), jetstream.WithRetryAttempts(0))
		cancel()
		code := codeOf(failed)
		switch {
		case failed == nil:
			r.seq = ack.Sequence
			q.mirror.learnNote(l.Task, r)
			return nil
		case ctx.Err() == nil && code == 0 && !fatal(failed):
			// Without an answer it may land much later, and then replace a later note: the server refuses
			// it once the lease has another message.
			err = q.extend(ctx, l)
		case ctx.Err() == nil && (code == wrongSequence || code == writeInProcess):
			was := seq // it was extended meanwhile, or it is lost
			if seq, err = q.holding(ctx, l, was); seq != was {
				continue
			}
		}
		if err == nil {
			err = again.again(ctx, failed)
		}
		if err == nil && code == 0 {
			seq, err = q.holding(ctx, l, 0)
		}
	}
	return err
}

func (q *Queue) noteSubject(task string) string { return q.prefix + ".n." + token(task) }

// holding is the sequence of the last message of a lease. was is one that the server has refused.
func (q *Queue) holding(ctx context.Context, l queue.Lease, was uint64) (uint64, error) {
	q.mu.Lock()
	g := q.held[l.Task]
	q.mu.Unlock()
	if g.fence == l.Fence && g.seq > was {
		return g.seq, nil
	}
	now, err := q.read(ctx, q.subject(l.Task))
	switch {
	case err != nil:
		return 0, err
	case !now.holds(l):
		q.forget(l)
		return 0, fmt.Errorf("task %q: %w", l.Task, queue.ErrLeaseLost)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if g := q.held[l.Task]; g.fence == l.Fence {
		q.held[l.Task] = grant{l.Fence, max(g.seq, now.seq)}
	}
	return now.seq, nil
}

// left is what the holders before the lease with that fence have left of a task. The mirror knows
// it if it has read all that came before.
func (q *Queue) left(ctx context.Context, task string, fence uint64) (starts int, note json.RawMessage, err error) {
	r, all := q.mirror.noteOf(ctx, task, fence)
	if !all || r.seq != 0 && r.note == nil {
		if r, err = q.read(ctx, q.noteSubject(task)); err != nil {
			return 0, nil, err
		}
	}
	return r.starts, r.text(), nil
}

// text is a copy of a note, and nil without one.
func (r record) text() json.RawMessage {
	if len(r.note) == 0 {
		return nil
	}
	return bytes.Clone(r.note)
}

// noteSince reads a note that the stream has delivered, or a later one of its task.
func (q *Queue) noteSince(ctx context.Context, task string, seq uint64) (json.RawMessage, error) {
	began := time.Now()
	for {
		r, err := q.read(ctx, q.noteSubject(task))
		if err != nil || r.seq >= seq || time.Since(began) > q.cfg.silence {
			return r.text(), err
		}
		if err := sleep(ctx, 20*time.Millisecond); err != nil { // a replica was before the leader
			return nil, err
		}
	}
}

// learnNote takes a note that this program has written before the stream brings it.
func (m *mirror) learnNote(task string, r record) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.note(task, r)
}

// note keeps the newest note of a task; mu is held.
func (m *mirror) note(task string, r record) {
	now := m.stateOf(task)
	if r.seq <= m.notes[task].seq || now.state == queue.Over || m.err != nil {
		return
	}
	r.body = nil
	m.notes[task] = r
	if _, known := m.hashes[task]; known && now.state == queue.Leased {
		m.tell(task, now)
	}
}

// noteOf is the last note of a task, and whether it is known to be the last one before a message. The
// stream brings that message, too: it is waited for, which costs no request.
func (m *mirror) noteOf(ctx context.Context, task string, seq uint64) (r record, all bool) {
	patience := time.NewTimer(50 * time.Millisecond)
	defer patience.Stop()
	for over := false; ; {
		m.mu.Lock()
		r, all = m.notes[task], m.err == nil && m.seq+1 >= seq
		news, ended := m.news, m.err != nil
		m.mu.Unlock()
		if all || over || ended {
			return r, all
		}
		select {
		case <-news:
		case <-patience.C:
			over = true
		case <-ctx.Done():
			over = true
		}
	}
}

// Decide implements queue.Queue. The id has 256 bytes at most.
func (q *Queue) Decide(ctx context.Context, d queue.Decision) error {
	if !taskID.MatchString(d.ID) {
		return &Error{"Decide", fmt.Errorf("%w: the decision's id %q", ErrConfig, d.ID), "take 1 to 256 letters, digits and . _ - #"}
	}
	d.At = d.At.Round(0).UTC()
	body, err := json.Marshal(d)
	if err != nil {
		return &Error{"Decide", err, ""}
	}
	subject := q.prefix + ".c." + token(d.ID)
	_, other, err := q.swap(ctx, subject, 0, record{state: decided}, body)
	if err != nil || other == nil {
		return err
	}
	var first queue.Decision
	if err := json.Unmarshal(other.body, &first); err != nil {
		return &Error{q.name, err, "another program wrote message " + subject + ": remove the job"}
	}
	if first.At = first.At.UTC(); first != d {
		return fmt.Errorf("decision %q: %w", d.ID, queue.ErrDecided)
	}
	return nil
}

package troupenats

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/agent-troupe/troupe/fleet/queue"
)

// atOnce is how many tasks one message offers.
const atOnce = 2000

// offer is one of them.
type offer struct {
	Task string `json:"t"`
	Hash string `json:"h"`
}

// Offer implements queue.Queue. The id of a task has 256 bytes at most.
func (q *Queue) Offer(ctx context.Context, tasks ...queue.Offer) error {
	if len(tasks) == 0 {
		return nil
	}
	if err := q.mirror.current(ctx); err != nil {
		return err
	}
	if err := q.below(ctx, tasks); err != nil {
		return err
	}
	var news []offer
	for _, o := range tasks {
		if !taskID.MatchString(o.Task) {
			return &Error{"Offer", fmt.Errorf("%w: the task's id %q", ErrConfig, o.Task), "take 1 to 256 letters, digits and . _ - #"}
		}
		hash, known := q.mirror.hash(o.Task)
		if !known {
			news = append(news, offer{o.Task, o.Hash})
		} else if hash != o.Hash {
			return fmt.Errorf("task %q: %w", o.Task, queue.ErrOtherHash)
		}
	}
	if len(news) == 0 {
		return q.over(ctx, tasks)
	}
	for len(news) > 0 {
		n := min(len(news), atOnce)
		body, err := json.Marshal(news[:n])
		if err != nil {
			return &Error{"Offer", err, ""}
		}
		sum := sha256.Sum256(body)
		subject := q.prefix + ".o." + hex.EncodeToString(sum[:16])
		q.mirror.expect(subject, body)
		// Another program that was quicker has written the same.
		if _, _, err := q.swap(ctx, subject, 0, record{state: offered}, body); err != nil {
			return err
		}
		news = news[n:]
	}
	if err := q.mirror.current(ctx); err != nil {
		return err
	}
	for _, o := range tasks { // the first offer of a task counts
		if hash, _ := q.mirror.hash(o.Task); hash != o.Hash {
			return fmt.Errorf("task %q: %w", o.Task, queue.ErrOtherHash)
		}
	}
	return q.over(ctx, tasks)
}

// below refuses results whose fences the queue has yet to reach: it was made anew, and without
// [Config].Above its leases would have lower fences than those that ended those tasks.
func (q *Queue) below(ctx context.Context, tasks []queue.Offer) error {
	highest := uint64(0)
	for _, o := range tasks {
		if o.Result != nil {
			highest = max(highest, o.Fence)
		}
	}
	if highest == 0 {
		return nil
	}
	info, err := q.info(ctx)
	if err == nil && info.State.LastSeq < highest {
		return wrong(q.name, fmt.Sprintf("its fences are at %d, and a result has %d: open it with Config.Above", info.State.LastSeq, highest))
	}
	return err
}

// over ends the tasks that are offered with results.
func (q *Queue) over(ctx context.Context, tasks []queue.Offer) error {
	var with []queue.Offer
	for _, o := range tasks {
		if r, _ := q.mirror.state(o.Task); o.Result != nil && r.state != queue.Over {
			with = append(with, o)
		}
	}
	errs := make([]error, len(with))
	each(len(with), func(i int) { errs[i] = q.overOne(ctx, with[i]) })
	return cmp.Or(errs...)
}

func (q *Queue) overOne(ctx context.Context, o queue.Offer) error {
	want := record{state: queue.Over, fence: o.Fence, offered: true}
	body, err := q.body(ctx, &want, o.Result)
	if err != nil {
		return err
	}
	now, err := q.read(ctx, q.subject(o.Task))
	for err == nil && now.state != queue.Over { // also if it is leased: what runs there is void
		var other *record
		var seq uint64
		seq, other, err = q.swap(ctx, q.subject(o.Task), now.seq, want, body)
		switch {
		case other != nil:
			now = *other
		case err == nil:
			want.seq, want.body = seq, body
			now = want
		}
	}
	if err == nil {
		q.mirror.learn(o.Task, now)
	}
	return err
}

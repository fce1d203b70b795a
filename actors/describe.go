package actors

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/router"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// Dir is the working directory that the options name.
func (k *Core) Dir() string { return k.input().Cwd }

// Options are those of the session, which must not be changed.
func (k *Core) Options() session.Options { return k.input().Options }

// Describe asks the session for its actors. A session that ends meanwhile has no
// actors.
func (k *Core) Describe(ctx context.Context) ([]session.ActorInfo, error) {
	return kernel.Ask(ctx, &k.session, func(reply *kernel.Promise[[]session.ActorInfo]) machine.LifeInput { return describe{reply} })
}

func (s *sessionActor) describeTree(reply *kernel.Promise[[]session.ActorInfo]) {
	infos := s.describe(s.core.cfg.System.Clock().Now(), "", s.core.session.Name())
	all := s.core.callbacks.Made()
	if all == nil || !all.Supervisor.Live() {
		reply.Resolve(infos)
		return
	}
	sub := kernel.NewPromise[[]session.ActorInfo]()
	all.Supervisor.Tell(nil, describe{sub})
	exec := s.core.cfg.System.Executor()
	exec.Go(func() {
		limit := &session.TimeoutError{What: "description of the callbacks", Limit: time.Second}
		ctx, cancel := kernel.WithTimeout(context.Background(), s.core.cfg.System.Clock(), limit)
		defer cancel()
		more, _ := sub.Wait(ctx, exec) // a supervisor that is restarting has nothing to tell
		reply.Resolve(append(infos, more...))
	})
}

// Inventory asks what is under way.
func (k *Core) Inventory(ctx context.Context) (machine.Inventory, error) {
	return kernel.Ask(ctx, &k.router, func(reply *kernel.Promise[machine.Inventory]) machine.Input { return router.Count{Reply: reply} })
}

// InterruptGrace is how long an interrupted turn has until its result.
func (k *Core) InterruptGrace() time.Duration { return k.input().InterruptGrace }

// Credit is the part of the session's limits that the agent's messages take. Owed messages
// were read but not yet acknowledged to the router.
type Credit struct {
	Messages, OwedMessages int
	Bytes, OwedBytes       int64
}

// Turn is the turn that runs. Without one only N is set, the number of turns so far.
type Turn struct {
	N     int
	Since time.Time
}

// TurnNow is the turn that runs, as it was seen last. It asks no actor.
func (k *Core) TurnNow() Turn {
	if t := k.turn.Load(); t != nil {
		return Turn{t.N, t.From}
	}
	return Turn{}
}

// Past asks what is remembered of the session's past.
func (k *Core) Past(ctx context.Context) (machine.Story, error) {
	return kernel.Ask(ctx, &k.router, func(reply *kernel.Promise[machine.Story]) machine.Input { return router.Recall{Reply: reply} })
}

// Waits asks what the session waits for, which turn runs, and which credit is out: the consumer, the agent, requests,
// calls, background tasks, turns, each oldest first; then the exit of an agent that is stopped, and the
// end of the user's children that are. A session that ends meanwhile waits for nothing. The error says
// why no answer came.
func (k *Core) Waits(ctx context.Context) ([]session.Wait, Turn, Credit, error) {
	found, err := kernel.Ask(ctx, &k.router, func(reply *kernel.Promise[router.Looked]) machine.Input { return router.Look{Reply: reply} })
	if err != nil {
		return nil, Turn{}, Credit{}, err
	}
	out := Credit{Messages: found.Held, Bytes: found.Bytes}
	out.OwedMessages, out.OwedBytes = k.User.Owed()
	var all []session.Wait
	running := k.runningNow(ctx, found.Waits)
	for _, w := range found.Waits {
		if r, ok := running[w.Seq]; ok && w.Seq != 0 {
			w.What, w.Limit, w.SetBy = cmp.Or(w.What+" "+r.Name, w.What), r.Limit, r.SetBy
		}
		all = append(all, w.Wait)
	}
	if closing, ok := k.Link().Ending(); ok {
		all = append(all, closing)
	}
	for _, b := range k.children {
		if stopping, ok := b.Waits(k.cfg.System.Clock().Now()); ok {
			all = append(all, stopping)
		}
	}
	if what, since := k.Link().Waits(); what != "" {
		after := slices.IndexFunc(all, func(w session.Wait) bool { return w.What != "consumer" })
		if after < 0 {
			after = len(all)
		}
		all = slices.Insert(all, after, session.Wait{What: what, Age: k.cfg.System.Clock().Now().Sub(since), Since: since})
	}
	return all, Turn{found.Turn.N, found.Turn.From}, out, nil
}

// runningNow asks the callback actors for what they know of the requests.
func (k *Core) runningNow(ctx context.Context, found []machine.Waiting) map[uint64]callback.Running {
	all := make(map[uint64]callback.Running)
	if !slices.ContainsFunc(found, func(w machine.Waiting) bool { return w.Seq != 0 }) {
		return all
	}
	made := k.callbacks.Made()
	if made == nil {
		return all
	}
	kinds := &made.Kinds
	for i := range kinds {
		some, err := kernel.Ask(ctx, &kinds[i], func(reply *kernel.Promise[map[uint64]callback.Running]) machine.ToCallback {
			return callback.Look{Reply: reply}
		})
		if err == nil {
			maps.Copy(all, some)
		}
	}
	return all
}

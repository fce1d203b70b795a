package simtests_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/simtests"
	"github.com/agent-troupe/troupe/transcript/store"
)

// host is how one of two hosts sees a store, which it cannot reach at times.
type host struct {
	*store.Memory
	w       *simtests.World
	name    string
	away    bool
	appends *[]string // who has appended, in order
}

// reach fails or hangs while the store cannot be reached. The answer of what was done may
// be lost.
func (h *host) reach(ctx context.Context) error {
	if !h.away {
		return nil
	}
	if h.w.Rand().IntN(2) == 0 {
		<-ctx.Done()
		return ctx.Err()
	}
	return errors.New("no route to the store")
}

func (h *host) Append(ctx context.Context, key session.StoreKey, entries []json.RawMessage) error {
	if h.away { // the request arrives late, or never
		late := time.Duration(h.w.Rand().IntN(90)) * time.Second
		h.w.Go(func() {
			h.w.Sleep(late)
			_ = h.append(context.WithoutCancel(ctx), key, entries) // nobody waits for it
		})
	}
	if err := h.reach(ctx); err != nil {
		return err
	}
	return h.append(ctx, key, entries)
}

func (h *host) append(ctx context.Context, key session.StoreKey, entries []json.RawMessage) error {
	err := h.Memory.Append(ctx, key, entries)
	if err == nil {
		*h.appends = append(*h.appends, h.name)
	}
	return err
}

func (h *host) AcquireLease(ctx context.Context, r session.LeaseRequest) (session.Lease, error) {
	if err := h.reach(ctx); err != nil {
		return session.Lease{}, err
	}
	r.Holder.Host = h.name
	return h.Memory.AcquireLease(ctx, r)
}

func (h *host) RenewLease(ctx context.Context, l session.Lease, ttl time.Duration) error {
	if err := h.reach(ctx); err != nil {
		return err
	}
	return h.Memory.RenewLease(ctx, l, ttl)
}

func (h *host) ReleaseLease(ctx context.Context, l session.Lease) error {
	if err := h.reach(ctx); err != nil {
		return err
	}
	return h.Memory.ReleaseLease(ctx, l)
}

// leased is the id of the session that both hosts want.
const leased = "3f2b8c1e-7a54-4d0b-9a6e-1c2d3e4f5a6b"

// leasing has two hosts want one session, while one of them loses its way to the store.
func leasing(w *simtests.World) {
	w.Faults(simtests.KillActor(0.01), simtests.AgentCrash(0.01), simtests.SplitWrites(0.1))
	shared := &store.Memory{}
	var appends []string
	first := &host{Memory: shared, w: w, name: "a", appends: &appends}
	second := &host{Memory: shared, w: w, name: "b", appends: &appends}
	open := func(h *host) (*sdk.Client, error) {
		o := &sdk.Options{Cwd: "/work", SessionID: leased, MaxRestarts: 3, CanUseTool: allowAll, SessionStore: h, SessionStoreOptions: session.StoreOptions{
			Append: 10 * time.Second, Lease: 30 * time.Second,
		}}
		return w.Dial(o, &scripted.Script{SessionID: leased, Default: scripted.Steps{
			scripted.Text("let me see"),
			&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "x"}, Gate: agent.GateAsk, Effect: h.name, Takes: time.Second},
			scripted.Text("done"),
		}})
	}
	var lost, refused, took bool
	w.Go(func() {
		c, err := open(first)
		if err != nil {
			return
		}
		for range 10 {
			turn, err := c.Send(w.Context(), sdk.UserText("go"))
			if err == nil {
				_, err = turn.Result(w.Context())
			}
			if err != nil {
				break
			}
			w.Sleep(time.Duration(w.Rand().IntN(15)) * time.Second)
		}
		_ = c.Close(w.Context())
		if e, ok := errors.AsType[*session.LeaseError](c.Err()); ok {
			lost = e.Lost
		}
	})
	w.Go(func() {
		w.Sleep(time.Duration(w.Rand().IntN(60)) * time.Second)
		first.away = true
		w.Sleep(time.Duration(w.Rand().IntN(100)) * time.Second)
		first.away = false
	})
	w.Go(func() {
		for range 40 {
			w.Sleep(5 * time.Second)
			c, err := open(second)
			if e, ok := errors.AsType[*session.LeaseError](err); ok && e.Holder.Host == "a" {
				refused = true
				continue
			}
			if err != nil {
				continue
			}
			took = true
			if turn, err := c.Send(w.Context(), sdk.UserText("mine")); err == nil {
				_, _ = turn.Result(w.Context()) // it may have died
			}
			_ = c.Close(w.Context())
			return
		}
	})
	w.Run()
	w.Sometimes("the second host was refused", refused)
	w.Sometimes("the second host took the session over", took)
	w.Sometimes("the first host lost its lease", lost)
	for what, all := range map[string][]string{"appends": appends, "effects": w.Effects()} {
		if at := slices.Index(all, "b"); at >= 0 {
			require.NotContains(w, all[at:], "a", "%s of the first host come after those of the second: %v", what, all)
		}
	}
}

func TestTwoHosts(t *testing.T) {
	t.Parallel()
	got := simtests.Explore(t, simtests.Config{Seeds: fewer(200)}, leasing)
	for _, what := range []string{"the second host was refused", "the second host took the session over", "the first host lost its lease"} {
		require.Positive(t, got.Sometimes[what], "%s in no history", what)
	}
}

package main

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/sdk"
)

// approval is a call that waits for a person.
type approval struct {
	ID      string          `json:"id"`
	Session string          `json:"session"`
	Tool    string          `json:"tool"`
	Input   json.RawMessage `json:"input"`
	// Hash is the hash of the call. An approval repeats it, so that it cannot apply to
	// another call than the one that was shown.
	Hash  string    `json:"hash"`
	Since time.Time `json:"since"`

	said chan verdict
}

type verdict struct {
	Hash  string `json:"hash"`
	Allow bool   `json:"allow"`
	Why   string `json:"why"`
}

// approvals are the calls that wait, of all sessions.
type approvals struct {
	mu  sync.Mutex
	all map[string]*approval
}

// ask waits for a person. The end of ctx, with the session or the call, denies.
func (a *approvals) ask(ctx context.Context, session string, r *sdk.ToolPermissionRequest, told func(*approval)) (sdk.PermissionResult, error) {
	sum := sha256.Sum256(slices.Concat([]byte(session+"\n"+r.ToolName+"\n"), r.Input))
	w := &approval{
		ID: rand.Text(), Session: session, Tool: r.ToolName, Input: r.Input, Hash: hex.EncodeToString(sum[:]),
		Since: time.Now(), said: make(chan verdict, 1),
	}
	a.mu.Lock()
	a.all[w.ID] = w
	a.mu.Unlock()
	defer a.take(w.ID)
	told(w)
	select {
	case v := <-w.said:
		if v.Allow {
			return sdk.Allow(), nil
		}
		return sdk.Deny("A person said no. " + v.Why), nil
	case <-ctx.Done():
		return sdk.PermissionResult{}, context.Cause(ctx)
	}
}

// take removes a call: who gets it decides, once.
func (a *approvals) take(id string) *approval {
	a.mu.Lock()
	defer a.mu.Unlock()
	w := a.all[id]
	delete(a.all, id)
	return w
}

// waiting are the calls that wait, the oldest first.
func (a *approvals) waiting() []*approval {
	a.mu.Lock()
	defer a.mu.Unlock()
	all := make([]*approval, 0, len(a.all))
	for _, w := range a.all {
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b *approval) int {
		if c := a.Since.Compare(b.Since); c != 0 {
			return c
		}
		return strings.Compare(a.ID, b.ID)
	})
	return all
}

// decide takes a verdict.
func (a *approvals) decide(id string, v verdict) (status int, problem string) {
	a.mu.Lock()
	w := a.all[id]
	same := w != nil && w.Hash == v.Hash
	if same {
		delete(a.all, id)
	}
	a.mu.Unlock()
	switch {
	case w == nil:
		return 404, "nothing waits under this id: it was decided, or its turn is over"
	case !same:
		return 409, "the hash is not that of the call; look at it again"
	}
	w.said <- v
	return 204, ""
}

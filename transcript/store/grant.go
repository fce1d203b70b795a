package store

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/session"
)

// Grant has the rules of a [session.LeaseStore] for one session, for stores that keep it: a
// method reads the grant, calls the method of the same purpose, and writes the grant back,
// in one transaction. Its JSON is what is kept. The zero value says that the session had no
// lease yet. It outlives the session's transcripts, so that tokens always rise.
type Grant struct {
	Token  int64               `json:"token"`          // of the last lease
	Holder session.LeaseHolder `json:"holder"`         // of the last lease
	Until  time.Time           `json:"until,omitzero"` // when it runs out
	Free   bool                `json:"free,omitempty"` // it was given back
}

// Acquire is [session.LeaseStore].AcquireLease at the time now.
func (g *Grant) Acquire(r session.LeaseRequest, now time.Time) (session.Lease, error) {
	held := g.Token > 0 && !g.Free && now.Before(g.Until)
	if held && (r.Dead == nil || !r.Dead(g.Holder)) {
		return session.Lease{}, &session.LeaseError{SessionID: r.Session, Holder: g.Holder}
	}
	*g = Grant{Token: g.Token + 1, Holder: r.Holder, Until: now.Add(r.TTL)}
	return session.Lease{Session: r.Session, Token: g.Token}, nil
}

// Renew is [session.LeaseStore].RenewLease at the time now.
func (g *Grant) Renew(l session.Lease, ttl time.Duration, now time.Time) error {
	if err := g.over(l); err != nil {
		return err
	}
	g.Until = now.Add(ttl)
	return nil
}

// Check returns a *[session.LeaseError] if nothing may be appended to key under the lease:
// it is over, or of another session.
func (g *Grant) Check(l session.Lease, key session.StoreKey) error {
	if !strings.EqualFold(key.Session, l.Session) {
		return &session.LeaseError{SessionID: key.Session, Err: fmt.Errorf("the lease of the append is of session %s", l.Session)}
	}
	return g.over(l)
}

// over returns an error if the lease is over.
func (g *Grant) over(l session.Lease) error {
	switch {
	case l.Token == g.Token && !g.Free && g.Token > 0:
		return nil
	case g.Free || g.Token == 0:
		return &session.LeaseError{SessionID: l.Session, Lost: true}
	}
	return &session.LeaseError{SessionID: l.Session, Lost: true, Holder: g.Holder}
}

// Release is [session.LeaseStore].ReleaseLease.
func (g *Grant) Release(l session.Lease) {
	if g.over(l) == nil {
		g.Free = true
	}
}

// parseGrant reads what a file has of a grant; nothing is the zero value.
func parseGrant(content []byte) (g Grant, err error) {
	if len(content) == 0 {
		return g, nil
	}
	if err := json.Unmarshal(content, &g); err != nil {
		return g, fmt.Errorf("the file of its lease is damaged: %w", err)
	}
	return g, nil
}

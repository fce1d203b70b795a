package troupenats

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript/store"
)

// given is a lease of this program: its token, and the sequence of its last message.
type given struct {
	token int64
	seq   uint64
}

// granted is what the message of a lease has. The message has no time to live: a lease that has run
// out is its holder's until another host asks for it, so the token must stay. It has run out once
// the time of the message and TTL are over by the clock of the server that leads the stream.
type granted struct {
	store.Grant

	TTL time.Duration `json:"ttl"` // from the time of the message
}

// grant reads the lease of a session. seq is that of its message.
func (s *Transcripts) grant(ctx context.Context, id string) (g granted, seq uint64, err error) {
	r, err := s.read(ctx, s.lease(id))
	if err != nil || r.seq == 0 {
		return g, 0, err
	}
	if err := json.Unmarshal(r.body, &g); err != nil {
		return g, 0, &Error{s.name, err, "another program wrote message " + s.lease(id) + ": purge that subject"}
	}
	g.Until = r.at.Add(g.TTL)
	return g, r.seq, nil
}

// change makes the next message of a session's lease, until no other writer comes between.
func (s *Transcripts) change(ctx context.Context, id string, change func(*granted) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for {
		g, seq, err := s.grant(ctx, id)
		if err != nil {
			return err
		}
		was := g
		if err := change(&g); err != nil {
			return err
		}
		if g == was {
			return nil
		}
		g.Until = time.Time{}
		body, err := json.Marshal(g)
		if err != nil {
			return &Error{s.name, err, ""}
		}
		seq, other, err := s.swap(ctx, s.lease(id), seq, record{state: queue.Leased, alone: true}, body)
		if err != nil {
			return err
		}
		if other != nil {
			continue
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if g.Free {
			delete(s.held, id)
		} else if seq > s.held[id].seq {
			s.held[id] = given{g.Token, seq}
		}
		return nil
	}
}

// AcquireLease implements [session.LeaseStore].
func (s *Transcripts) AcquireLease(ctx context.Context, r session.LeaseRequest) (l session.Lease, err error) {
	err = s.change(ctx, r.Session, func(g *granted) error {
		info, err := s.info(ctx)
		if err != nil {
			return err
		}
		now := info.TimeStamp // of the server that leads the stream
		if g.Token == 0 {     // above those of a stream that is lost
			g.Token = now.UnixMilli()
		}
		g.TTL = r.TTL
		l, err = g.Acquire(r, now)
		return err
	})
	return l, err
}

// RenewLease implements [session.LeaseStore].
func (s *Transcripts) RenewLease(ctx context.Context, l session.Lease, ttl time.Duration) error {
	return s.change(ctx, l.Session, func(g *granted) error {
		g.TTL = ttl
		return g.Renew(l, ttl, time.Time{}) // the time is that of its message
	})
}

// ReleaseLease implements [session.LeaseStore].
func (s *Transcripts) ReleaseLease(ctx context.Context, l session.Lease) error {
	return s.change(ctx, l.Session, func(g *granted) error {
		g.Release(l)
		return nil
	})
}

// expected is the sequence of the last message of a lease, which an append must follow. was is one
// that the server has refused, or 0.
func (s *Transcripts) expected(ctx context.Context, l session.Lease, key session.StoreKey, was uint64) (uint64, error) {
	s.mu.Lock()
	known := s.held[l.Session]
	s.mu.Unlock()
	if known.token == l.Token && known.seq > was && strings.EqualFold(key.Session, l.Session) {
		return known.seq, nil
	}
	g, seq, err := s.grant(ctx, l.Session)
	if err == nil {
		err = g.Check(l, key)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		if s.held[l.Session].token == l.Token {
			delete(s.held, l.Session)
		}
		return 0, err
	}
	if seq > s.held[l.Session].seq {
		s.held[l.Session] = given{l.Token, seq}
	}
	return seq, nil
}

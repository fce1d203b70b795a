package troupenats

import (
	"bytes"
	"context"
	"encoding/json"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript/store"
)

// Load implements [session.Store]. The entries are those that were there when the loop began.
func (s *Transcripts) Load(ctx context.Context, key session.StoreKey) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		if err := checked(ctx, key); err != nil {
			yield(nil, err)
			return
		}
		u := unpacker{writes: map[string]struct{}{}, parts: map[string][][]byte{}}
		seen := map[string]struct{}{}
		for m, err := range s.messages(ctx, s.subject(key), jetstream.OrderedConsumerConfig{}) {
			if err != nil {
				yield(nil, err)
				return
			}
			for line := range bytes.Lines(u.lines(m.Headers(), m.Data())) {
				line = bytes.TrimSpace(line)
				name, ok := store.EntryName(line)
				if _, twice := seen[name]; twice || !ok {
					continue
				}
				if name != "" {
					seen[name] = struct{}{}
				}
				if !yield(bytes.Clone(line), nil) {
					return
				}
			}
		}
	}
}

// Sessions implements [session.Store].
func (s *Transcripts) Sessions(ctx context.Context, project string) ([]session.StoredSession, error) {
	if err := checked(ctx, session.StoreKey{Project: project, Session: "x"}); err != nil {
		return nil, err
	}
	times := map[string]time.Time{}
	last := jetstream.OrderedConsumerConfig{DeliverPolicy: jetstream.DeliverLastPerSubjectPolicy, HeadersOnly: true}
	for m, err := range s.messages(ctx, s.prefix+"e."+part(project)+".*."+main, last) {
		if err != nil {
			return nil, err
		}
		md, err := m.Metadata()
		if err != nil {
			return nil, &Error{s.name, err, ""}
		}
		parts := strings.Split(m.Subject(), ".")
		if id, ok := unpart(parts[len(parts)-2]); ok {
			times[id] = md.Timestamp
		}
	}
	all := make([]session.StoredSession, 0, len(times))
	for id, at := range times {
		all = append(all, session.StoredSession{ID: id, Modified: at})
	}
	slices.SortFunc(all, func(a, b session.StoredSession) int { return b.Modified.Compare(a.Modified) })
	return all, nil
}

// Subpaths implements [session.Store].
func (s *Transcripts) Subpaths(ctx context.Context, project, id string) (all []string, err error) {
	if err := checked(ctx, session.StoreKey{Project: project, Session: id}); err != nil {
		return nil, err
	}
	prefix := s.session(project, id)
	err = s.persist(ctx, s.cfg.Try, func(ctx context.Context) error {
		info, err := s.stream.Info(ctx, jetstream.WithSubjectFilter(prefix+"*"))
		if err != nil {
			return err
		}
		all = nil
		for subject := range info.State.Subjects {
			if sub, ok := unpart(strings.TrimPrefix(subject, prefix)); ok {
				all = append(all, sub)
			}
		}
		return nil
	})
	slices.Sort(all)
	return all, err
}

// Delete implements [session.Store]. It asks for no lease.
func (s *Transcripts) Delete(ctx context.Context, key session.StoreKey) error {
	if err := checked(ctx, key); err != nil {
		return err
	}
	subject := s.subject(key)
	if key.Subpath == "" {
		subject = s.session(key.Project, key.Session) + ">"
	}
	return s.persist(ctx, s.cfg.Try, func(ctx context.Context) error {
		return s.stream.Purge(ctx, jetstream.WithPurgeSubject(subject))
	})
}

// messages yields the messages of a subject, in their order, up to the last one that the leader has
// now. A consumer may be on a server that is behind, and ends with its server: then another one
// continues, or begins again if it is to have the last message of each subject.
func (s *Transcripts) messages(ctx context.Context, subject string, cfg jetstream.OrderedConsumerConfig) iter.Seq2[jetstream.Msg, error] {
	cfg.FilterSubjects = []string{subject}
	cfg.MaxResetAttempts, cfg.InactiveThreshold = 1, 30*time.Second
	return func(yield func(jetstream.Msg, error) bool) {
		last, err := s.last(ctx, subject)
		done := last == 0
		for again := s.retry(); err == nil && !done; {
			read := func(m jetstream.Msg) (more bool) {
				md, err := m.Metadata()
				switch {
				case err != nil:
					done = true
				case cfg.DeliverPolicy == jetstream.DeliverLastPerSubjectPolicy: // the last one may have another after it now
					done = !yield(m, nil) || md.Sequence.Stream >= last && md.NumPending == 0
				case md.Sequence.Stream > last: // it came later
					done = true
				default:
					cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, md.Sequence.Stream+1
					done = !yield(m, nil) || md.Sequence.Stream == last
				}
				return !done
			}
			err = s.consume(ctx, cfg, read)
			if err == nil || done {
				break
			}
			if err = again.again(ctx, err); err != nil {
				break
			}
			var now uint64
			now, err = s.last(ctx, subject) // it may have been deleted meanwhile
			last = min(last, now)
			done = last < max(cfg.OptStartSeq, 1)
		}
		if err != nil {
			yield(nil, err)
		}
	}
}

// last is the sequence of the last message of a subject; 0: it has no message.
func (s *Transcripts) last(ctx context.Context, subject string) (uint64, error) {
	r, err := s.read(ctx, subject)
	return r.seq, err
}

// consume reads with one consumer, until take has enough.
func (s *Transcripts) consume(ctx context.Context, cfg jetstream.OrderedConsumerConfig, take func(jetstream.Msg) bool) error {
	try, cancel := context.WithTimeout(ctx, s.cfg.Try)
	defer cancel()
	c, err := s.stream.OrderedConsumer(try, cfg)
	if err != nil {
		return err
	}
	// Without the answer, too: the server ends the consumer after InactiveThreshold.
	defer func() { _ = s.nc.Publish("$JS.API.CONSUMER.DELETE."+s.name+"."+c.CachedInfo().Name, nil) }()
	it, err := c.Messages(jetstream.PullExpiry(5*time.Second), jetstream.PullHeartbeat(time.Second), jetstream.PullMaxBytes(8<<20))
	if err != nil {
		return err
	}
	defer it.Stop()
	for {
		within, cancel := context.WithTimeout(ctx, s.cfg.Try)
		m, err := it.Next(jetstream.NextContext(within))
		cancel()
		if err != nil {
			return passing(err)
		}
		if !take(m) {
			return nil
		}
	}
}

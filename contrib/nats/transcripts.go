package troupenats

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agent-troupe/troupe/session"
)

// TranscriptsConfig configures [OpenTranscripts]. The zero value works.
type TranscriptsConfig struct {
	// Name names the store on the servers: 1 to 64 letters, digits, - and _. Programs that share
	// sessions give the same name. Default: "", which is sessions.
	Name string
	// Replicas is how many servers keep the store, when it is made. Default: 0, which is 3 on a
	// cluster and 1 on a single server. A cluster needs 3 to 5.
	Replicas int
	// Try is how long one request may take before it is made again. Default: 0, 3 s.
	Try time.Duration
}

// Transcripts is a store for session.Options.SessionStore in stream TROUPE_S_<name>: any host that
// connects to the servers can continue a session. It hands out leases, so one host at a time
// does. An append is refused by the server in one step if the lease of its context is over.
//
// Appends, and what reads them, wait while no server leads the stream, until their context ends.
// Errors are a *session.LeaseError, that of the context, and an [*Error]. It is safe for
// concurrent use, and there is nothing to close.
type Transcripts struct {
	*link
	prefix string

	mu   sync.Mutex
	held map[string]given // by session: leases that this program has
}

var (
	_ session.Store      = (*Transcripts)(nil)
	_ session.LeaseStore = (*Transcripts)(nil)
)

// OpenTranscripts opens a store of sessions, which is made if it is not there. It waits until the
// servers have a leader. Its error is an [*Error], or that of ctx.
func OpenTranscripts(ctx context.Context, nc *nats.Conn, cfg TranscriptsConfig) (*Transcripts, error) {
	if cfg.Name == "" {
		cfg.Name = "sessions"
	}
	if !jobName.MatchString(cfg.Name) {
		return nil, &Error{"TranscriptsConfig.Name", fmt.Errorf("%w: %q", ErrConfig, cfg.Name), "take 1 to 64 letters, digits, - and _"}
	}
	c, err := Config{Job: cfg.Name, Replicas: cfg.Replicas, Try: cfg.Try}.complete(ctx, nc)
	if err != nil {
		return nil, err
	}
	s := &Transcripts{prefix: "troupe.s." + cfg.Name + ".", held: map[string]given{}}
	s.link, err = open(ctx, nc, c, jetstream.StreamConfig{
		Name: "TROUPE_S_" + cfg.Name, Subjects: []string{s.prefix + ">"}, Storage: jetstream.FileStorage, Replicas: c.Replicas,
		Compression: jetstream.S2Compression, AllowRollup: true, DenyDelete: true,
	}, s.refuse)
	return s, err
}

// refuse says why a stream would lose entries, or have two holders of a lease.
func (s *Transcripts) refuse(name string, c jetstream.StreamConfig, clustered bool) error {
	switch {
	case c.SubjectDeleteMarkerTTL > 0:
		return wrong(name, "it has delete markers (subject_delete_marker_ttl)")
	case c.MaxMsgsPerSubject > 0:
		return wrong(name, "max_msgs_per_subject removes old entries")
	case !c.AllowRollup || c.DenyPurge:
		return wrong(name, "old leases and sessions cannot be removed (allow_rollup_hdrs, deny_purge)")
	case c.AllowDirect:
		return wrong(name, "replicas that are behind answer (allow_direct)")
	}
	return forgets(name, c, clustered)
}

// part is a part of a subject: any text.
func part(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// unpart is the text of a part; ok is false for what this package has not written.
func unpart(s string) (text string, ok bool) {
	b, err := base64.RawURLEncoding.DecodeString(s)
	return string(b), err == nil
}

// main is the last part of the subject of a session itself; no text has it as its part.
const main = "_"

// session is the prefix of a session's transcripts, and lease the subject of its leases.
func (s *Transcripts) session(project, id string) string {
	return s.prefix + "e." + part(project) + "." + part(id) + "."
}
func (s *Transcripts) lease(id string) string { return s.prefix + "l." + part(id) }

func (s *Transcripts) subject(key session.StoreKey) string {
	last := main
	if key.Subpath != "" {
		last = part(key.Subpath)
	}
	return s.session(key.Project, key.Session) + last
}

func checked(ctx context.Context, key session.StoreKey) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return key.Valid()
}

// Append implements [session.Store]. Entries that fit into one message, up to half a megabyte, are
// there as a whole or not at all.
func (s *Transcripts) Append(ctx context.Context, key session.StoreKey, entries []json.RawMessage) error {
	if err := checked(ctx, key); err != nil {
		return err
	}
	all, err := pack(entries, int(min(s.nc.MaxPayload()-4096, 512<<10)))
	if err != nil {
		return err
	}
	for _, m := range all {
		m.Subject = s.subject(key)
		if err := s.append(ctx, key, m); err != nil {
			return err
		}
	}
	return nil
}

// append publishes a message. A try whose answer was lost may have landed: readers know the name
// of the write, and leave out the second one.
func (s *Transcripts) append(ctx context.Context, key session.StoreKey, m *nats.Msg) error {
	lease, leased := session.LeaseOf(ctx)
	options := []jetstream.PublishOpt{jetstream.WithRetryAttempts(0)}
	var seq uint64
	var err error
	if leased {
		if seq, err = s.expected(ctx, lease, key, 0); err != nil {
			return err
		}
	}
	again := s.retry()
	for {
		now := options
		if leased {
			now = append(options[:1:1], jetstream.WithExpectLastSequenceForSubject(seq, s.lease(lease.Session)))
		}
		try, cancel := context.WithTimeout(ctx, s.cfg.Try)
		_, err := s.js.PublishMsg(try, m, now...)
		cancel()
		switch code := codeOf(err); {
		case err == nil:
			return nil
		case leased && ctx.Err() == nil && (code == wrongSequence || code == writeInProcess):
			was := seq // it was renewed meanwhile, or another host has it
			if seq, err = s.expected(ctx, lease, key, was); err != nil {
				return err
			}
			if seq != was {
				continue
			}
			err = errLate // the renewal is on its way
		case full(err):
			return &Error{s.name, fmt.Errorf("%w: %w", ErrFull, err), "raise max_file_store, or delete sessions"}
		}
		if err := again.again(ctx, err); err != nil {
			return err
		}
	}
}

// The headers of a message with a part of an entry that is too large for one.
const (
	headEntry = "Troupe-Entry" // a name of the entry
	headPart  = "Troupe-Part"  // which part it is, and of how many: 0/3
)

// pack makes messages of entries: one entry for each line, up to so many bytes. A larger entry has
// several messages.
func pack(entries []json.RawMessage, most int) (all []*nats.Msg, err error) {
	add := func(body []byte) *nats.Msg {
		m := &nats.Msg{Data: bytes.Clone(body), Header: nats.Header{headWrite: {newName()}}}
		all = append(all, m)
		return m
	}
	var lines, line bytes.Buffer
	flush := func() {
		if lines.Len() > 0 {
			add(lines.Bytes())
			lines.Reset()
		}
	}
	for i, e := range entries {
		line.Reset()
		if trimmed := bytes.TrimSpace(e); len(trimmed) == 0 || trimmed[0] != '{' || json.Compact(&line, trimmed) != nil {
			return nil, fmt.Errorf("session store: entry %d is no JSON object", i)
		}
		line.WriteByte('\n')
		if lines.Len()+line.Len() > most {
			flush()
		}
		if line.Len() <= most {
			_, _ = line.WriteTo(&lines)
			continue
		}
		name, parts := newName(), (line.Len()+most-1)/most
		for i := range parts {
			m := add(line.Next(most))
			m.Header.Set(headEntry, name)
			m.Header.Set(headPart, fmt.Sprintf("%d/%d", i, parts))
		}
	}
	flush()
	return all, nil
}

// unpacker makes entries of messages again.
type unpacker struct {
	writes map[string]struct{} // that it has seen
	parts  map[string][][]byte // of entries, by their name
}

// lines are the entries that are complete with a message.
func (u *unpacker) lines(h nats.Header, body []byte) []byte {
	write := h.Get(headWrite)
	if _, twice := u.writes[write]; twice {
		return nil
	}
	u.writes[write] = struct{}{}
	name := h.Get(headEntry)
	if name == "" {
		return body
	}
	first, last, _ := strings.Cut(h.Get(headPart), "/")
	i, _ := strconv.Atoi(first)
	n, err := strconv.Atoi(last)
	if err != nil || i < 0 || i >= n || n > 1<<16 {
		return nil
	}
	all := u.parts[name]
	if all == nil {
		all = make([][]byte, n)
	}
	if len(all) != n {
		return nil
	}
	all[i] = body
	u.parts[name] = all
	for _, p := range all {
		if p == nil {
			return nil
		}
	}
	delete(u.parts, name)
	return bytes.Join(all, nil)
}

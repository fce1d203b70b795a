package troupenats

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// link is a stream on the servers, and how requests about it are repeated.
type link struct {
	cfg    Config
	nc     *nats.Conn
	js     jetstream.JetStream
	name   string
	owns   []string // each subject that it publishes to has one of these in it
	stream jetstream.Stream
	made   time.Time // by the clock of the servers
}

// protocol is the version of what streams have. It is in their metadata, under protocolKey.
const (
	protocol    = "1"
	protocolKey = "troupe.protocol"
)

// open opens a stream, which is made if it is not there. It tries until the servers have a
// leader, or ctx ends. refuse says why its settings would lose something.
func open(ctx context.Context, nc *nats.Conn, cfg Config, want jetstream.StreamConfig, refuse func(name string, c jetstream.StreamConfig, clustered bool) error) (*link, error) {
	js, err := jetstream.New(nc)
	if err != nil {
		return nil, &Error{want.Name, err, ""}
	}
	l := &link{cfg: cfg, nc: nc, js: js, name: want.Name, owns: []string{want.Name, strings.TrimSuffix(want.Subjects[0], ">")}}
	want.Metadata = map[string]string{protocolKey: cfg.protocol}
	began := time.Now()
	err = l.persist(ctx, cfg.Try, func(ctx context.Context) error {
		var err error
		// First as it is: a worker need not have the right to make a stream.
		if l.stream, err = js.Stream(ctx, want.Name); codeOf(err) == jetstream.JSErrCodeStreamNotFound {
			l.stream, err = js.CreateStream(ctx, want)
		}
		if codeOf(err) == jetstream.JSErrCodeStreamNameInUse { // another program was quicker
			l.stream, err = js.Stream(ctx, want.Name)
		}
		switch early := time.Since(began) < cfg.silence; {
		case codeOf(err) == notClustered && !early:
			return &Error{want.Name, err, "a single server keeps a job once: take 0 for Config.Replicas"}
		case codeOf(err) == noPeers && early:
			return fmt.Errorf("servers may still start: %v", err) //nolint:errorlint // it is not to be matched
		case silent(err) && !early:
			return &Error{want.Name, fmt.Errorf("%w: %w", ErrNoJetStream, err), "enable it on the server: jetstream { sync_interval: always }"}
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	info := l.stream.CachedInfo()
	l.made = info.Created
	if has := info.Config.Metadata[protocolKey]; has != "" && has != cfg.protocol {
		return nil, &Error{want.Name, fmt.Errorf("%w: %s, and not %s", ErrProtocol, has, cfg.protocol), "update this program, or let the newer ones finish the job"}
	}
	return l, refuse(want.Name, info.Config, nc.ConnectedClusterName() != "")
}

// refuse says why a stream of a job would lose results.
func (c Config) refuse(name string, s jetstream.StreamConfig, clustered bool) error {
	switch {
	case !s.AllowMsgTTL:
		return &Error{name, fmt.Errorf("%w: its messages have no time to live", ErrOldServer), "replace the servers before 2.11, and remove the stream"}
	case s.SubjectDeleteMarkerTTL > 0 && c.markers == 0:
		return wrong(name, "delete markers (subject_delete_marker_ttl) remove results that were acknowledged")
	case s.MaxMsgsPerSubject != 1:
		return wrong(name, "max_msgs_per_subject is not 1")
	case s.AllowDirect:
		return wrong(name, "replicas that are behind answer (allow_direct)")
	}
	return forgets(name, s, clustered)
}

// forgets says why a stream, also that of an object store, would not keep what it has.
func forgets(name string, c jetstream.StreamConfig, clustered bool) error {
	switch {
	case clustered && c.Replicas < 3:
		return &Error{name, fmt.Errorf("%w: it has %d replicas", ErrReplicas, c.Replicas), "give the stream 3 replicas"}
	case c.Storage != jetstream.FileStorage:
		return wrong(name, "it is in memory")
	case c.MaxAge > 0 || c.MaxMsgs > 0 || c.MaxBytes > 0 && c.Discard == jetstream.DiscardOld:
		return wrong(name, "its limits remove old messages")
	}
	return nil
}

func wrong(name, what string) error {
	return &Error{name, fmt.Errorf("%w: %s", ErrSettings, what), "remove the stream, or change it, and open it again"}
}

// Remove removes a job from the servers: its queue and its files, with all results. Programs
// that run it stop with [ErrGone]. A job that is not there is no error.
func Remove(ctx context.Context, nc *nats.Conn, job string) error {
	cfg, err := Config{Job: job}.complete(ctx, nc)
	if err != nil {
		return err
	}
	js, err := jetstream.New(nc)
	if err != nil {
		return &Error{job, err, ""}
	}
	for _, name := range []string{queueStream(job), filesStream(job), objectStream(job)} {
		l := &link{cfg: cfg, nc: nc, js: js, name: name, owns: []string{name}}
		err := l.persist(ctx, cfg.Try, func(ctx context.Context) error {
			if err := js.DeleteStream(ctx, name); codeOf(err) != jetstream.JSErrCodeStreamNotFound {
				return err
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// A job's streams, and the bucket of its large files.
func queueStream(job string) string { return "TROUPE_Q_" + job }
func filesStream(job string) string { return "TROUPE_F_" + job }
func bucket(job string) string      { return "TROUPE_" + job }

// objectStream is the stream of the bucket.
func objectStream(job string) string { return "OBJ_" + bucket(job) }

// retry is a request that is made until it has an answer.
type retry struct {
	*link
	before error // the last one of the connection when it began
	pause  time.Duration
	quiet  time.Time // since when there was no listener
}

func (l *link) retry() retry { return retry{link: l, before: l.nc.LastError()} }

// denied is the error of permissions that the connection has had since before, about what this
// link needs. Such a request has no answer: the server reports it to the connection.
func (l *link) denied(before error) error {
	err := l.nc.LastError()
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return nil
	}
	says := func(part string) bool { return strings.Contains(err.Error(), part) }
	// The connection subscribes to answers once, at its first request.
	inbox := l.nc.NewInbox()
	if says(`Subscription to "`+inbox[:strings.LastIndexByte(inbox, '.')]) || err != before && slices.ContainsFunc(l.owns, says) { //nolint:errorlint // is it the same one?
		return explain(l.name, err)
	}
	return nil
}

// again waits before the next try. Its error says why the request is not made again: ctx has ended,
// or no answer can help.
func (r *retry) again(ctx context.Context, err error) error {
	denied := r.denied(r.before)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case denied != nil:
		return denied
	case fatal(err):
		return explain(r.name, err)
	case !silent(err):
		r.quiet = time.Time{}
	case r.quiet.IsZero():
		r.quiet = time.Now()
	case time.Since(r.quiet) > r.cfg.silence:
		if err := r.check(ctx); err != nil {
			return err
		}
		r.quiet = time.Time{}
	}
	r.pause = min(max(2*r.pause, 20*time.Millisecond), time.Second)
	return sleep(ctx, r.pause)
}

// check reports whether the stream was deleted: a stream without a leader answers a write in
// the same way.
func (l *link) check(ctx context.Context) error {
	if l.stream == nil {
		return nil
	}
	try, cancel := context.WithTimeout(ctx, l.cfg.Try)
	defer cancel()
	info, err := l.stream.Info(try)
	if codeOf(err) == jetstream.JSErrCodeStreamNotFound || err == nil && !info.Created.Equal(l.made) {
		return gone(l.name)
	}
	return nil
}

// persist repeats a request until it has an answer, ctx ends, or no answer can help. One try
// takes as long as each at most; tries of what is large get twice as long each time, since the
// network may be slow.
func (l *link) persist(ctx context.Context, each time.Duration, request func(context.Context) error) error {
	r := l.retry()
	for {
		try, cancel := context.WithTimeout(ctx, each)
		err := request(try)
		cancel()
		if err == nil {
			return nil
		}
		var final *Error
		if errors.As(err, &final) {
			return err
		}
		if each > l.cfg.Try {
			each *= 2
		}
		if err := r.again(ctx, err); err != nil {
			return err
		}
	}
}

// swap writes the record of a subject whose last message has the sequence expected; 0: the
// subject has no message. It tries until ctx ends. other is the record of another writer.
//
// An error may come although the write has landed, or lands later: it has a name, by which it
// is found again.
func (l *link) swap(ctx context.Context, subject string, expected uint64, r record, body []byte) (seq uint64, other *record, err error) {
	r.write = newName()
	options := []jetstream.PublishOpt{jetstream.WithExpectLastSequencePerSubject(expected), jetstream.WithRetryAttempts(0)}
	if r.ttl > 0 {
		options = append(options, jetstream.WithMsgTTL(r.ttl))
	}
	again := l.retry()
	for {
		try, cancel := context.WithTimeout(ctx, l.cfg.Try)
		ack, err := l.js.PublishMsg(try, &nats.Msg{Subject: subject, Header: r.header(), Data: body}, options...)
		cancel()
		if err == nil {
			return ack.Sequence, nil, nil
		}
		if code := codeOf(err); ctx.Err() == nil && (code == wrongSequence || code == writeInProcess) {
			now, err := l.read(ctx, subject)
			switch {
			case err != nil:
				return 0, nil, err
			case now.write == r.write:
				return now.seq, nil, nil
			case now.seq != expected:
				return 0, &now, nil
			}
		}
		if err := again.again(ctx, err); err != nil {
			return 0, nil, err
		}
	}
}

// read returns the last message of a subject, from the leader of the stream.
func (l *link) read(ctx context.Context, subject string) (record, error) {
	r := record{state: "free", seen: time.Now()}
	m, err := l.message(ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return l.stream.GetLastMsgForSubject(ctx, subject)
	})
	if m != nil {
		r = parse(m.Header, m.Data, m.Sequence)
		r.at = m.Time
	}
	return r, err
}

// info asks the leader about the stream.
func (l *link) info(ctx context.Context) (info *jetstream.StreamInfo, err error) {
	err = l.persist(ctx, l.cfg.Try, func(ctx context.Context) (err error) {
		info, err = l.stream.Info(ctx)
		return err
	})
	return info, err
}

// message asks for a message, and returns nil if it is not there.
func (l *link) message(ctx context.Context, get func(context.Context) (*jetstream.RawStreamMsg, error)) (m *jetstream.RawStreamMsg, err error) {
	err = l.persist(ctx, l.cfg.Try, func(ctx context.Context) (err error) {
		if m, err = get(ctx); codeOf(err) == jetstream.JSErrCodeMessageNotFound {
			m, err = nil, nil
		}
		return err
	})
	return m, err
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

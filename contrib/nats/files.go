package troupenats

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agent-troupe/troupe/fleet/queue"
)

// Files are queue.Files on the servers. A file of up to 512 KiB is one message; a larger one is
// an object, for which Put and Get need as much room in the directory for temporary files: they
// begin again when the servers change. Nothing is removed before [Remove], also what a later Put has
// replaced. Files are safe for concurrent use.
type Files struct {
	*link
	objects jetstream.ObjectStore
	prefix  string
}

var _ queue.Files = (*Files)(nil)

// OpenFiles opens the files of a job, which are made if they are not there: stream
// TROUPE_F_<job> and object store TROUPE_<job>. Its error is an [*Error], or that of ctx.
func OpenFiles(ctx context.Context, nc *nats.Conn, cfg Config) (*Files, error) {
	cfg, err := cfg.complete(ctx, nc)
	if err != nil {
		return nil, err
	}
	cfg.markers = 0
	s := &Files{prefix: "troupe.f." + cfg.Job + "."}
	s.link, err = open(ctx, nc, cfg, jetstream.StreamConfig{
		Name: filesStream(cfg.Job), Subjects: []string{s.prefix + ">"}, Storage: jetstream.FileStorage, Replicas: cfg.Replicas,
		MaxMsgsPerSubject: 1, Compression: jetstream.S2Compression, AllowMsgTTL: true, DenyDelete: true, DenyPurge: true,
	}, cfg.refuse)
	if err != nil {
		return nil, err
	}
	s.owns = append(s.owns, bucket(cfg.Job))
	err = s.persist(ctx, cfg.Try, func(ctx context.Context) error {
		want := jetstream.ObjectStoreConfig{Bucket: bucket(cfg.Job), Storage: jetstream.FileStorage, Replicas: cfg.Replicas, Compression: true}
		var err error
		if s.objects, err = s.js.ObjectStore(ctx, want.Bucket); errors.Is(err, jetstream.ErrBucketNotFound) {
			s.objects, err = s.js.CreateObjectStore(ctx, want)
		}
		if errors.Is(err, jetstream.ErrBucketExists) || codeOf(err) == jetstream.JSErrCodeStreamNameInUse {
			s.objects, err = s.js.ObjectStore(ctx, want.Bucket)
		}
		if err != nil {
			return err
		}
		stream, err := s.js.Stream(ctx, objectStream(cfg.Job))
		if err != nil {
			return err
		}
		return forgets(objectStream(cfg.Job), stream.CachedInfo().Config, nc.ConnectedClusterName() != "")
	})
	return s, err
}

// inline is the size of the largest file that is one message.
func (s *Files) inline() int64 { return min(s.nc.MaxPayload()-4096, 512<<10) }

// Put implements queue.Files. Without a leader it waits, until ctx ends. The error matches
// [ErrFull] if the servers have no room.
func (s *Files) Put(ctx context.Context, name string, content io.Reader) error {
	limit := s.inline()
	head, err := io.ReadAll(io.LimitReader(content, limit+1))
	if err != nil {
		return err
	}
	m := &nats.Msg{Subject: s.subject(name), Data: head}
	if int64(len(head)) > limit {
		object := name + "@" + newName()
		if err := s.large(ctx, object, io.MultiReader(bytes.NewReader(head), content)); err != nil {
			return err
		}
		m.Data, m.Header = nil, nats.Header{headObject: {object}}
	}
	return s.persist(ctx, s.cfg.Try, func(ctx context.Context) error {
		_, err := s.js.PublishMsg(ctx, m, jetstream.WithRetryAttempts(0))
		return s.noRoom(err)
	})
}

// large puts an object by way of a temporary file, because a try that fails has taken some of
// its content.
func (s *Files) large(ctx context.Context, object string, content io.Reader) error {
	f, err := newTemporary(object)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	if err := f.fill(content); err != nil {
		return err
	}
	return s.object(ctx, object, f, false)
}

// object puts an object. wait: it waits while the servers are full.
func (s *Files) object(ctx context.Context, name string, content io.ReadSeeker, wait bool) error {
	size, err := content.Seek(0, io.SeekEnd)
	if err != nil {
		return &Error{name, err, ""}
	}
	return s.persist(ctx, s.transfer(size), func(ctx context.Context) error {
		if _, err := content.Seek(0, io.SeekStart); err != nil {
			return &Error{name, err, ""}
		}
		_, err := s.objects.Put(ctx, jetstream.ObjectMeta{Name: name}, content)
		if wait {
			return err
		}
		return s.noRoom(err)
	})
}

// transfer is how long the first try may take that moves so many bytes: a megabyte a second.
func (s *Files) transfer(bytes int64) time.Duration {
	return 10*s.cfg.Try + time.Duration(bytes>>20)*time.Second
}

// noRoom makes the error of a full server the last one: a file can be done without.
func (s *Files) noRoom(err error) error {
	if full(err) {
		return &Error{s.name, fmt.Errorf("%w: %w", ErrFull, err), "raise max_file_store, or remove jobs that are over"}
	}
	return err
}

// Get implements queue.Files. Without a leader it waits, until ctx ends.
func (s *Files) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	m, err := s.message(ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return s.stream.GetLastMsgForSubject(ctx, s.subject(name))
	})
	switch {
	case err != nil:
		return nil, err
	case m == nil:
		return nil, &fs.PathError{Op: "get", Path: name, Err: fs.ErrNotExist}
	}
	object := m.Header.Get(headObject)
	if object == "" {
		return io.NopCloser(bytes.NewReader(m.Data)), nil
	}
	f, err := newTemporary(object)
	if err != nil {
		return nil, err
	}
	if err := s.fetch(ctx, object, f.fill); err != nil {
		_ = f.Close()
		return nil, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		_ = f.Close()
		return nil, &Error{object, err, ""}
	}
	return f, nil
}

// fetch reads an object that was put; take has its content from the beginning, at each try. A
// replica may be behind and not have it yet.
func (s *Files) fetch(ctx context.Context, object string, take func(io.Reader) error) error {
	began := time.Now()
	var info *jetstream.ObjectInfo
	err := s.persist(ctx, s.cfg.Try, func(ctx context.Context) error {
		var err error
		info, err = s.objects.GetInfo(ctx, object)
		if errors.Is(err, jetstream.ErrObjectNotFound) && time.Since(began) > s.cfg.silence {
			return &Error{"object store " + bucket(s.cfg.Job), fmt.Errorf("object %s: %w", object, fs.ErrNotExist), "it was removed there"}
		}
		return err
	})
	if err != nil {
		return err
	}
	return s.persist(ctx, s.transfer(int64(min(info.Size, 1<<50))), func(ctx context.Context) error {
		r, err := s.objects.Get(ctx, object)
		if err != nil {
			return err
		}
		return errors.Join(take(r), r.Close())
	})
}

func (s *Files) subject(name string) string {
	return s.prefix + base64.RawURLEncoding.EncodeToString([]byte(name))
}

// temporary is a file that its Close removes.
type temporary struct{ *os.File }

func newTemporary(object string) (temporary, error) {
	f, err := os.CreateTemp("", "troupe-nats-")
	if err != nil {
		return temporary{}, &Error{object, err, "a large file needs room in " + os.TempDir()}
	}
	return temporary{f}, nil
}

// fill replaces the content. An error of the file itself is an [*Error].
func (f temporary) fill(content io.Reader) error {
	_, err := f.Seek(0, io.SeekStart)
	if err == nil {
		err = f.Truncate(0)
	}
	if err != nil {
		return &Error{f.Name(), err, ""}
	}
	_, err = io.Copy(struct{ io.Writer }{f}, content)
	if own := (*fs.PathError)(nil); errors.As(err, &own) && own.Path == f.Name() {
		return &Error{f.Name(), err, "a large file needs room in " + os.TempDir()}
	}
	return err
}

func (f temporary) Close() error { return errors.Join(f.File.Close(), os.Remove(f.Name())) }

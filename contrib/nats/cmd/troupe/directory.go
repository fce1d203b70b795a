package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	troupenats "github.com/agent-troupe/troupe/contrib/nats"
	"github.com/agent-troupe/troupe/fleet/queue"
	"github.com/agent-troupe/troupe/internal/command"
)

// Buckets of all jobs, and the name of a job's specification among its files: those of tasks begin with
// a number.
const (
	jobsBucket  = "TROUPE_JOBS"
	hostsBucket = "TROUPE_HOSTS"
	capsBucket  = "TROUPE_CAPS"
	specFile    = "specification.json"
	hostTTL     = 30 * time.Second
	tryFor      = 3 * time.Second
)

// directory implements command.Cluster.
type directory struct {
	nc          *nats.Conn
	jobs, hosts jetstream.KeyValue
	caps        jetstream.KeyValue
	end         func()
}

// open opens the directory of jobs and hosts, which is made if it is not there. end runs when the
// connection is closed.
func open(ctx context.Context, nc *nats.Conn, end func()) (*directory, error) {
	d := &directory{nc: nc, end: end}
	replicas := 1
	if nc.ConnectedClusterName() != "" {
		replicas = 3
	}
	js, err := jetstream.New(nc)
	if err == nil {
		d.jobs, err = d.bucket(ctx, js, jetstream.KeyValueConfig{Bucket: jobsBucket, Storage: jetstream.FileStorage, Replicas: replicas})
		if err == nil {
			// Not on one server alone: without it no program could open the directory.
			d.hosts, err = d.bucket(ctx, js, jetstream.KeyValueConfig{Bucket: hostsBucket, Storage: jetstream.MemoryStorage, TTL: hostTTL, Replicas: replicas})
		}
	}
	if err == nil {
		d.caps, err = d.bucket(ctx, js, jetstream.KeyValueConfig{Bucket: capsBucket, Storage: jetstream.FileStorage, Replicas: replicas})
	}
	if err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

// bucket opens a bucket. A user that may not make one finds that of another.
func (d *directory) bucket(ctx context.Context, js jetstream.JetStream, want jetstream.KeyValueConfig) (kv jetstream.KeyValue, err error) {
	err = d.persist(ctx, "bucket "+want.Bucket, func(ctx context.Context) error {
		if kv, err = js.KeyValue(ctx, want.Bucket); errors.Is(err, jetstream.ErrBucketNotFound) {
			kv, err = js.CreateKeyValue(ctx, want)
		}
		return err
	})
	return kv, err
}

// persist repeats a request while the servers do not answer, until ctx ends. A request that the user may
// not make has no answer: the connection gets the error.
func (d *directory) persist(ctx context.Context, what string, request func(context.Context) error) error {
	silent, before := time.Now(), d.nc.LastError()
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		try, cancel := context.WithTimeout(ctx, tryFor)
		err := request(try)
		cancel()
		var refused jetstream.JetStreamError
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &refused) && refused.APIError() != nil && refused.APIError().Code < 500 && refused.APIError().Code != 408,
			errors.Is(err, nats.ErrConnectionClosed), errors.Is(err, nats.ErrPermissionViolation), errors.Is(err, nats.ErrAuthorization):
			return fmt.Errorf("nats: %s: %w", what, err)
		case errors.Is(d.nc.LastError(), nats.ErrPermissionViolation) && d.nc.LastError() != before: //nolint:errorlint // is it the same one?
			return fmt.Errorf("nats: %s: this user may not do that: %w", what, d.nc.LastError())
		case (errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled)) && time.Since(silent) > 15*time.Second:
			return fmt.Errorf("nats: %s: %w: the servers have no JetStream, or no leader: troupe doctor --nats looks at them", what, err)
		}
		wait := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			wait.Stop()
			return ctx.Err()
		case <-wait.C:
		}
	}
}

// Close implements command.Cluster.
func (d *directory) Close() {
	d.nc.Close()
	d.end()
}

// config is that of a job for package troupenats.
func config(e *command.JobEntry) (troupenats.Config, error) {
	c := troupenats.Config{Job: e.Job}
	if e.Lease == "" {
		return c, nil
	}
	var err error
	if c.TTL, err = time.ParseDuration(e.Lease); err != nil {
		return c, fmt.Errorf("job %s: its lease is no time: %w", e.Job, err)
	}
	return c, nil
}

// Submit implements command.Cluster. Workers see the job when all of it is there.
func (d *directory) Submit(ctx context.Context, e command.JobEntry, specification []byte, more ...command.File) error {
	if _, _, err := d.entry(ctx, e.Job); err == nil {
		return command.ErrJobThere
	} else if !errors.Is(err, command.ErrNoJob) {
		return err
	}
	c, err := config(&e)
	if err != nil {
		return err
	}
	// The queue is made here, since workers need not have the right to make streams.
	q, err := troupenats.Open(ctx, d.nc, c)
	if err != nil {
		return err
	}
	q.Close()
	files, err := troupenats.OpenFiles(ctx, d.nc, c)
	if err != nil {
		return err
	}
	for _, f := range more {
		if err := put(ctx, files, f); err != nil {
			return err
		}
	}
	if err := files.Put(ctx, specFile, bytes.NewReader(specification)); err != nil {
		return err
	}
	raw, err := json.Marshal(e)
	if err != nil {
		return err
	}
	lost, there := false, false // an earlier try has had no answer; there is another job
	err = d.persist(ctx, "job "+e.Job, func(ctx context.Context) error {
		_, err := d.jobs.Create(ctx, e.Job, raw)
		if errors.Is(err, jetstream.ErrKeyExists) {
			now, err := d.jobs.Get(ctx, e.Job)
			there = err == nil && !(lost && bytes.Equal(now.Value(), raw))
			return err
		}
		lost = lost || err != nil
		return err
	})
	if err == nil && there {
		err = command.ErrJobThere
	}
	return err
}

func put(ctx context.Context, files queue.Files, f command.File) error {
	r, err := os.Open(f.Path)
	if err != nil {
		return err
	}
	return errors.Join(files.Put(ctx, f.Name, r), r.Close())
}

// entry reads a job, and the revision of its entry.
func (d *directory) entry(ctx context.Context, job string) (raw []byte, revision uint64, err error) {
	err = d.persist(ctx, "job "+job, func(ctx context.Context) error {
		kv, err := d.jobs.Get(ctx, job)
		if errors.Is(err, jetstream.ErrKeyNotFound) || errors.Is(err, jetstream.ErrInvalidKey) {
			raw = nil
			return nil
		}
		if err == nil {
			raw, revision = kv.Value(), kv.Revision()
		}
		return err
	})
	if err == nil && raw == nil {
		err = fmt.Errorf("job %s: %w", job, command.ErrNoJob)
	}
	return raw, revision, err
}

// jobKey is an entry of the bucket of jobs: a job, or that it is over, which a worker may write.
type jobKey struct {
	command.JobEntry
	Over string `json:"over,omitempty"` // the job
	// Drain is a host that is to end, and Began when it started: one that starts later stays.
	Drain string    `json:"drain,omitempty"`
	Began time.Time `json:"began,omitzero"`
}

// overKey is the key that says that a job is over. The name of a job has no point.
func overKey(job string) string { return job + ".over" }

// Jobs implements command.Cluster.
func (d *directory) Jobs(ctx context.Context) ([]command.JobEntry, error) {
	keys, err := list[jobKey](ctx, d, d.jobs)
	over, all := map[string]bool{}, []command.JobEntry{}
	for _, k := range keys {
		over[k.Over] = true
	}
	for _, k := range keys {
		if k.Job == "" {
			continue
		}
		if over[k.Job] && k.State == command.JobOpen {
			k.State = command.JobOver
		}
		all = append(all, k.JobEntry)
	}
	slices.SortFunc(all, func(a, b command.JobEntry) int {
		return cmp.Or(a.Submitted.Compare(b.Submitted), strings.Compare(a.Job, b.Job))
	})
	return all, err
}

// list reads all entries of a bucket. One that is not this package's is left out.
func list[T any](ctx context.Context, d *directory, kv jetstream.KeyValue) (all []T, err error) {
	err = d.persist(ctx, "bucket "+kv.Bucket(), func(ctx context.Context) error {
		all = nil
		w, err := kv.WatchAll(ctx, jetstream.IgnoreDeletes())
		if err != nil {
			return err
		}
		defer func() { _ = w.Stop() }()
		for {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case u := <-w.Updates():
				if u == nil {
					return nil
				}
				var one T
				if json.Unmarshal(u.Value(), &one) == nil {
					all = append(all, one)
				}
			}
		}
	})
	return all, err
}

// Watch implements command.Cluster. Should the watch of the servers end, it begins again, and yields
// all jobs once more.
func (d *directory) Watch(ctx context.Context) iter.Seq2[command.JobChange, error] {
	return func(yield func(command.JobChange, error) bool) {
		there := map[string]bool{}
		for ctx.Err() == nil {
			var w jetstream.KeyWatcher
			err := d.persist(ctx, "bucket "+jobsBucket, func(context.Context) (err error) {
				w, err = d.jobs.WatchAll(ctx)
				return err
			})
			if err != nil {
				if ctx.Err() == nil {
					yield(command.JobChange{}, err)
				}
				return
			}
			goes := d.each(ctx, w, there, yield)
			_ = w.Stop()
			if !goes {
				return
			}
		}
	}
}

// each yields the changes of a watcher. It returns false when the loop has ended. Jobs that are over
// before it begins are yielded as such.
func (d *directory) each(ctx context.Context, w jetstream.KeyWatcher, there map[string]bool, yield func(command.JobChange, error) bool) bool {
	removed := func(job string) bool {
		delete(there, job)
		return yield(command.JobChange{JobEntry: command.JobEntry{Job: job}, Removed: true}, nil)
	}
	var first []command.JobEntry
	over, begun := map[string]bool{}, false
	for {
		select {
		case <-ctx.Done():
			return false
		case u, open := <-w.Updates():
			switch {
			case !open:
				return true
			case u == nil && !begun: // these are all: others have gone meanwhile
				begun = true
				gone := there
				there = map[string]bool{}
				for _, e := range first {
					if over[e.Job] && e.State == command.JobOpen {
						e.State = command.JobOver
					}
					delete(gone, e.Job)
					if there[e.Job] = true; !yield(command.JobChange{JobEntry: e}, nil) {
						return false
					}
				}
				for job := range gone {
					if !removed(job) {
						return false
					}
				}
			case u == nil:
			case strings.HasSuffix(u.Key(), ".over"): // those who run the job see its results
				over[strings.TrimSuffix(u.Key(), ".over")] = u.Operation() == jetstream.KeyValuePut
			case strings.HasSuffix(u.Key(), ".drain"):
				var k jobKey
				if json.Unmarshal(u.Value(), &k) == nil && k.Drain != "" && !yield(command.JobChange{Drain: k.Drain, Started: k.Began}, nil) {
					return false
				}
			case u.Operation() != jetstream.KeyValuePut:
				if begun && !removed(u.Key()) {
					return false
				}
			default:
				var e command.JobEntry
				switch {
				case json.Unmarshal(u.Value(), &e) != nil || e.Job != u.Key():
				case !begun:
					first = append(first, e)
				default:
					if there[e.Job] = true; !yield(command.JobChange{JobEntry: e}, nil) {
						return false
					}
				}
			}
		}
	}
}

// Specification implements command.Cluster.
func (d *directory) Specification(ctx context.Context, job string) ([]byte, error) {
	if _, _, err := d.entry(ctx, job); err != nil {
		return nil, err
	}
	files, err := troupenats.OpenFiles(ctx, d.nc, troupenats.Config{Job: job})
	if err != nil {
		return nil, err
	}
	r, err := files.Get(ctx, specFile)
	if err != nil {
		return nil, err
	}
	raw, err := io.ReadAll(r)
	return raw, errors.Join(err, r.Close())
}

// Over implements command.Cluster.
func (d *directory) Over(ctx context.Context, job string) error {
	raw, err := json.Marshal(jobKey{Over: job})
	if err != nil {
		return err
	}
	return d.persist(ctx, "job "+job, func(ctx context.Context) error {
		_, err := d.jobs.Create(ctx, overKey(job), raw)
		if errors.Is(err, jetstream.ErrKeyExists) {
			return nil
		}
		return err
	})
}

// NotOver implements command.Cluster.
func (d *directory) NotOver(ctx context.Context, job string) error {
	return d.persist(ctx, "job "+job, func(ctx context.Context) error { return d.jobs.Delete(ctx, overKey(job)) })
}

// Reopen implements command.Cluster.
func (d *directory) Reopen(ctx context.Context, job string) error {
	if err := d.NotOver(ctx, job); err != nil {
		return err
	}
	return d.state(ctx, job, command.JobOpen)
}

// state writes where a job stands. Keys of a later version stay in the entry.
func (d *directory) state(ctx context.Context, job string, state command.JobState) error {
	for {
		raw, revision, err := d.entry(ctx, job)
		if err != nil {
			return err
		}
		all := map[string]json.RawMessage{}
		if err := json.Unmarshal(raw, &all); err != nil {
			return fmt.Errorf("job %s: its entry cannot be read: %w", job, err)
		}
		var now command.JobState
		if _ = json.Unmarshal(all["state"], &now); now == command.JobRemoving && state == command.JobOpen {
			return fmt.Errorf("job %s is being removed: %w", job, command.ErrNoJob)
		}
		all["state"], _ = json.Marshal(state) // a text
		if raw, err = json.Marshal(all); err != nil {
			return err
		}
		other := false
		err = d.persist(ctx, "job "+job, func(ctx context.Context) error {
			_, err := d.jobs.Update(ctx, job, raw, revision)
			if other = errors.Is(err, jetstream.ErrKeyExists); other {
				return nil
			}
			return err
		})
		if err != nil || !other {
			return err
		}
	}
}

// Remove implements command.Cluster. If it is cut short, the next call continues.
func (d *directory) Remove(ctx context.Context, job string) error {
	if err := d.state(ctx, job, command.JobRemoving); err != nil {
		return err
	}
	if err := troupenats.Remove(ctx, d.nc, job); err != nil {
		return err
	}
	return d.persist(ctx, "job "+job, func(ctx context.Context) error {
		return errors.Join(d.jobs.Delete(ctx, overKey(job)), d.jobs.Delete(ctx, job))
	})
}

// Open implements command.Cluster.
func (d *directory) Open(ctx context.Context, e command.JobEntry) (queue.Queue, queue.Files, func(), error) {
	c, err := config(&e)
	if err != nil {
		return nil, nil, nil, err
	}
	q, err := troupenats.Open(ctx, d.nc, c)
	if err != nil {
		return nil, nil, nil, err
	}
	files, err := troupenats.OpenFiles(ctx, d.nc, c)
	if err != nil {
		q.Close()
		return nil, nil, nil, err
	}
	return q, files, q.Close, nil
}

package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript/store"
	"github.com/agent-troupe/troupe/transcript/storetest"
)

// broken is a store in memory with one mistake.
type broken struct {
	session.Store

	append func(ctx context.Context, s session.Store, key session.StoreKey, entries []json.RawMessage) error
	load   func(ctx context.Context, s session.Store, key session.StoreKey) iter.Seq2[json.RawMessage, error]
	list   func(ctx context.Context, s session.Store, project string) ([]session.StoredSession, error)
	subs   func(ctx context.Context, s session.Store, project, id string) ([]string, error)
	del    func(ctx context.Context, s session.Store, key session.StoreKey) error
}

func (b *broken) Append(ctx context.Context, key session.StoreKey, entries []json.RawMessage) error {
	if b.append != nil {
		return b.append(ctx, b.Store, key, entries)
	}
	return b.Store.Append(ctx, key, entries)
}

func (b *broken) Load(ctx context.Context, key session.StoreKey) iter.Seq2[json.RawMessage, error] {
	if b.load != nil {
		return b.load(ctx, b.Store, key)
	}
	return b.Store.Load(ctx, key)
}

func (b *broken) Sessions(ctx context.Context, project string) ([]session.StoredSession, error) {
	if b.list != nil {
		return b.list(ctx, b.Store, project)
	}
	return b.Store.Sessions(ctx, project)
}

func (b *broken) Subpaths(ctx context.Context, project, id string) ([]string, error) {
	if b.subs != nil {
		return b.subs(ctx, b.Store, project, id)
	}
	return b.Store.Subpaths(ctx, project, id)
}

func (b *broken) Delete(ctx context.Context, key session.StoreKey) error {
	if b.del != nil {
		return b.del(ctx, b.Store, key)
	}
	return b.Store.Delete(ctx, key)
}

func lower(key session.StoreKey) session.StoreKey {
	key.Session = strings.ToLower(key.Session)
	return key
}

// mistakes are stores that storetest.Run must refuse.
var mistakes = map[string]func() *broken{
	"adds a known uuid again": func() *broken {
		n := 0
		return &broken{append: func(ctx context.Context, s session.Store, key session.StoreKey, entries []json.RawMessage) error {
			var other []json.RawMessage
			for _, e := range entries {
				n++
				other = append(other, json.RawMessage(fmt.Sprintf(`{"n":%d,%s`, n, e[1:])))
			}
			return s.Append(ctx, key, other)
		}}
	},
	"leaves out entries without a uuid that it has": func() *broken {
		var mu sync.Mutex
		seen := map[string]bool{}
		return &broken{append: func(ctx context.Context, s session.Store, key session.StoreKey, entries []json.RawMessage) error {
			mu.Lock()
			defer mu.Unlock()
			var fresh []json.RawMessage
			for _, e := range entries {
				if name := key.String() + string(e); !seen[name] {
					seen[name], fresh = true, append(fresh, e)
				}
			}
			return s.Append(ctx, key, fresh)
		}}
	},
	"loads the last 1000 entries": func() *broken {
		return &broken{load: func(ctx context.Context, s session.Store, key session.StoreKey) iter.Seq2[json.RawMessage, error] {
			return func(yield func(json.RawMessage, error) bool) {
				n := 0
				for e, err := range s.Load(ctx, key) {
					if n++; n > 1000 || !yield(e, err) {
						return
					}
				}
			}
		}}
	},
	"forgets the subpath": func() *broken {
		return &broken{append: func(ctx context.Context, s session.Store, key session.StoreKey, entries []json.RawMessage) error {
			key.Subpath = ""
			return s.Append(ctx, key, entries)
		}}
	},
	"ignores the case of ids": func() *broken {
		return &broken{
			append: func(ctx context.Context, s session.Store, key session.StoreKey, entries []json.RawMessage) error {
				return s.Append(ctx, lower(key), entries)
			},
			load: func(ctx context.Context, s session.Store, key session.StoreKey) iter.Seq2[json.RawMessage, error] {
				return s.Load(ctx, lower(key))
			},
		}
	},
	"keeps the entries of the caller": func() *broken {
		type kept struct {
			key     session.StoreKey
			entries []json.RawMessage
		}
		var mu sync.Mutex
		var late []kept
		flush := func(s session.Store) {
			mu.Lock()
			defer mu.Unlock()
			for _, k := range late {
				_ = s.Append(context.Background(), k.key, k.entries)
			}
			late = nil
		}
		return &broken{
			append: func(ctx context.Context, _ session.Store, key session.StoreKey, entries []json.RawMessage) error {
				mu.Lock()
				defer mu.Unlock()
				late = append(late, kept{key, entries})
				return ctx.Err()
			},
			load: func(ctx context.Context, s session.Store, key session.StoreKey) iter.Seq2[json.RawMessage, error] {
				flush(s)
				return s.Load(ctx, key)
			},
		}
	},
	"decodes numbers as floats": func() *broken {
		return &broken{append: func(ctx context.Context, s session.Store, key session.StoreKey, entries []json.RawMessage) error {
			var other []json.RawMessage
			for _, e := range entries {
				var v map[string]any
				if err := json.Unmarshal(e, &v); err != nil {
					return err
				}
				e, err := json.Marshal(v)
				if err != nil {
					return err
				}
				other = append(other, e)
			}
			return s.Append(ctx, key, other)
		}}
	},
	"does not delete the subpaths": func() *broken {
		return &broken{del: func(ctx context.Context, s session.Store, key session.StoreKey) error {
			subs, err := s.Subpaths(ctx, key.Project, key.Session)
			if err != nil || key.Subpath != "" {
				return err
			}
			saved := map[string][]json.RawMessage{}
			for _, sub := range subs {
				for e, err := range s.Load(ctx, session.StoreKey{Project: key.Project, Session: key.Session, Subpath: sub}) {
					if err != nil {
						return err
					}
					saved[sub] = append(saved[sub], e)
				}
			}
			if err := s.Delete(ctx, key); err != nil {
				return err
			}
			for sub, entries := range saved {
				if err := s.Append(ctx, session.StoreKey{Project: key.Project, Session: key.Session, Subpath: sub}, entries); err != nil {
					return err
				}
			}
			return nil
		}}
	},
	"deletes the session with a subpath": func() *broken {
		return &broken{del: func(ctx context.Context, s session.Store, key session.StoreKey) error {
			key.Subpath = ""
			return s.Delete(ctx, key)
		}}
	},
	"lists the sessions of all projects": func() *broken {
		return &broken{list: func(ctx context.Context, s session.Store, project string) ([]session.StoredSession, error) {
			all, err := s.Sessions(ctx, project)
			more, err2 := s.Sessions(ctx, project+"-2")
			if err == nil {
				err = err2
			}
			return append(all, more...), err
		}}
	},
	"has one time for all sessions": func() *broken {
		return &broken{list: func(ctx context.Context, s session.Store, project string) ([]session.StoredSession, error) {
			all, err := s.Sessions(ctx, project)
			for i := range all {
				all[i].Modified = time.UnixMilli(1)
			}
			return all, err
		}}
	},
	"ignores the context": func() *broken {
		return &broken{append: func(ctx context.Context, s session.Store, key session.StoreKey, entries []json.RawMessage) error {
			return s.Append(context.WithoutCancel(ctx), key, entries)
		}}
	},
	"lists the empty subpath": func() *broken {
		return &broken{subs: func(ctx context.Context, s session.Store, project, id string) ([]string, error) {
			all, err := s.Subpaths(ctx, project, id)
			return append(all, ""), err
		}}
	},
}

// brokenLeaser is a store in memory with one mistake in its leases.
type brokenLeaser struct {
	store.Memory

	acquire func(s *store.Memory, r session.LeaseRequest) (session.Lease, error)
	renew   func(s *store.Memory, l session.Lease, ttl time.Duration) error
	release func(s *store.Memory, l session.Lease) error
	append  func(s *store.Memory, key session.StoreKey, l session.Lease, entries []json.RawMessage) error
}

func (b *brokenLeaser) AcquireLease(ctx context.Context, r session.LeaseRequest) (session.Lease, error) {
	if b.acquire != nil {
		return b.acquire(&b.Memory, r)
	}
	return b.Memory.AcquireLease(ctx, r)
}

func (b *brokenLeaser) RenewLease(ctx context.Context, l session.Lease, ttl time.Duration) error {
	if b.renew != nil {
		return b.renew(&b.Memory, l, ttl)
	}
	return b.Memory.RenewLease(ctx, l, ttl)
}

func (b *brokenLeaser) ReleaseLease(ctx context.Context, l session.Lease) error {
	if b.release != nil {
		return b.release(&b.Memory, l)
	}
	return b.Memory.ReleaseLease(ctx, l)
}

func (b *brokenLeaser) Append(ctx context.Context, key session.StoreKey, entries []json.RawMessage) error {
	if l, ok := session.LeaseOf(ctx); ok && b.append != nil && ctx.Err() == nil {
		return b.append(&b.Memory, key, l, entries)
	}
	return b.Memory.Append(ctx, key, entries)
}

// leaseMistakes are stores that storetest.Run must refuse for their leases.
var leaseMistakes = map[string]func() *brokenLeaser{
	"gives the lease to everybody": func() *brokenLeaser {
		return &brokenLeaser{acquire: func(s *store.Memory, r session.LeaseRequest) (session.Lease, error) {
			r.Dead = func(session.LeaseHolder) bool { return true }
			return s.AcquireLease(context.Background(), r)
		}}
	},
	"keeps the lease of the dead": func() *brokenLeaser {
		return &brokenLeaser{acquire: func(s *store.Memory, r session.LeaseRequest) (session.Lease, error) {
			r.Dead = nil
			return s.AcquireLease(context.Background(), r)
		}}
	},
	"gives leases for ever": func() *brokenLeaser {
		return &brokenLeaser{acquire: func(s *store.Memory, r session.LeaseRequest) (session.Lease, error) {
			r.TTL = time.Hour
			return s.AcquireLease(context.Background(), r)
		}}
	},
	"does not say who has the lease": func() *brokenLeaser {
		return &brokenLeaser{acquire: func(s *store.Memory, r session.LeaseRequest) (session.Lease, error) {
			r.Holder = session.LeaseHolder{}
			return s.AcquireLease(context.Background(), r)
		}}
	},
	"has one token for all": func() *brokenLeaser {
		return &brokenLeaser{acquire: func(s *store.Memory, r session.LeaseRequest) (session.Lease, error) {
			l, err := s.AcquireLease(context.Background(), r)
			l.Token = 1
			return l, err
		}}
	},
	"renews any lease": func() *brokenLeaser {
		return &brokenLeaser{renew: func(*store.Memory, session.Lease, time.Duration) error { return nil }}
	},
	"does not renew": func() *brokenLeaser {
		return &brokenLeaser{renew: func(s *store.Memory, l session.Lease, _ time.Duration) error {
			return s.RenewLease(context.Background(), l, time.Hour)
		}}
	},
	"does not check appends": func() *brokenLeaser {
		return &brokenLeaser{append: func(s *store.Memory, key session.StoreKey, _ session.Lease, entries []json.RawMessage) error {
			return s.Append(context.Background(), key, entries)
		}}
	},
	"checks before it appends": func() *brokenLeaser {
		return &brokenLeaser{append: func(s *store.Memory, key session.StoreKey, l session.Lease, entries []json.RawMessage) error {
			if err := s.RenewLease(context.Background(), l, time.Nanosecond); err != nil {
				return err
			}
			time.Sleep(5 * time.Millisecond) // what the mistake is: others come between
			return s.Append(context.Background(), key, entries)
		}}
	},
	"does not compare the session": func() *brokenLeaser {
		return &brokenLeaser{append: func(s *store.Memory, key session.StoreKey, l session.Lease, entries []json.RawMessage) error {
			if err := s.RenewLease(context.Background(), l, time.Nanosecond); err != nil {
				return err
			}
			return s.Append(context.Background(), key, entries)
		}}
	},
	"gives back nothing": func() *brokenLeaser {
		return &brokenLeaser{release: func(*store.Memory, session.Lease) error { return nil }}
	},
}

var mistake = flag.String("mistake", "", "the broken store that TestBrokenStore runs with")

// TestBrokenStore is what TestMistakesAreFound starts: it must fail.
func TestBrokenStore(t *testing.T) {
	if *mistake == "" {
		t.Skip("it is started by TestMistakesAreFound")
	}
	storetest.Run(t, func(t *testing.T) session.Store {
		if f := fileMistakes[*mistake]; f != nil {
			return f(t)
		}
		if l := leaseMistakes[*mistake]; l != nil {
			return l()
		}
		b := mistakes[*mistake]()
		b.Store = &store.Memory{}
		return b
	})
}

func TestMistakesAreFound(t *testing.T) {
	t.Parallel()
	self, err := os.Executable()
	require.NoError(t, err)
	names := slices.AppendSeq(slices.Collect(maps.Keys(mistakes)), maps.Keys(leaseMistakes))
	names = slices.AppendSeq(names, maps.Keys(fileMistakes))
	all := make(map[string]*tried, len(names))
	for _, name := range names { // all at once: some of them wait seconds for what does not come
		run := "^TestBrokenStore$"
		if leaseMistakes[name] != nil {
			run += "/lease|tokens" // the rest is in order
		}
		if fileMistakes[name] != nil {
			run += "/files"
		}
		one := &tried{cmd: exec.CommandContext(t.Context(), self, "-test.run="+run, "-mistake="+name)}
		if testing.Short() {
			one.cmd.Args = append(one.cmd.Args, "-test.failfast") // the first test that finds the mistake is enough
		}
		one.cmd.Stdout, one.cmd.Stderr = &one.out, &one.out
		require.NoError(t, one.cmd.Start())
		all[name] = one
	}
	for name, one := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var failed *exec.ExitError
			require.ErrorAs(t, one.cmd.Wait(), &failed, "a store that %s passes:\n%s", name, &one.out)
			assert.Contains(t, one.out.String(), "--- FAIL: TestBrokenStore/", "%s", &one.out)
			assert.NotContains(t, one.out.String(), "panic:", "%s", &one.out)
		})
	}
}

// tried is a program that runs the tests of a store with one mistake.
type tried struct {
	cmd *exec.Cmd
	out bytes.Buffer
}

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/internal/command"
)

// key is that of a host in its bucket, whose keys have few letters.
func key(host string) string {
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '_'
	}, host)
}

// Beat implements command.Cluster.
func (d *directory) Beat(ctx context.Context, h command.HostEntry) error {
	raw, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return d.persist(ctx, "host "+h.Host, func(ctx context.Context) error {
		_, err := d.hosts.Put(ctx, key(h.Host), raw)
		return err
	})
}

// Leave implements command.Cluster.
func (d *directory) Leave(ctx context.Context, host string) error {
	return d.persist(ctx, "host "+host, func(ctx context.Context) error { return d.hosts.Delete(ctx, key(host)) })
}

// Drain implements command.Cluster.
func (d *directory) Drain(ctx context.Context, host string) error {
	all, err := d.Hosts(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(h command.HostEntry) bool { return h.Host == host })
	if i < 0 {
		return fmt.Errorf("worker %s: %w: troupe top --cluster lists those that are alive", host, command.ErrNoHost)
	}
	raw, err := json.Marshal(jobKey{Drain: host, Began: all[i].Started})
	if err != nil {
		return err
	}
	return d.persist(ctx, "host "+host, func(ctx context.Context) error {
		_, err := d.jobs.Put(ctx, key(host)+".drain", raw)
		return err
	})
}

// Hosts implements command.Cluster.
func (d *directory) Hosts(ctx context.Context) ([]command.HostEntry, error) {
	all, err := list[command.HostEntry](ctx, d, d.hosts)
	slices.SortFunc(all, func(a, b command.HostEntry) int { return strings.Compare(a.Host, b.Host) })
	return all, err
}

// Limit implements command.Cluster.
func (d *directory) Limit(ctx context.Context, account string, n int) error {
	return d.know(ctx, "acct."+account, command.Cap{Account: account, Limit: n})
}

// Park implements command.Cluster.
func (d *directory) Park(ctx context.Context, c command.Cap) error {
	return d.know(ctx, "park."+c.Account, c)
}

func (d *directory) know(ctx context.Context, key string, c command.Cap) error {
	raw, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return d.persist(ctx, "account "+c.Account, func(ctx context.Context) error {
		_, err := d.caps.Put(ctx, key, raw)
		return err
	})
}

// Caps implements command.Cluster. The limit of an account, and until when it is parked, have each a key.
func (d *directory) Caps(ctx context.Context) (all []command.Cap, err error) {
	keys, err := list[command.Cap](ctx, d, d.caps)
	for _, k := range keys {
		i := slices.IndexFunc(all, func(c command.Cap) bool { return c.Account == k.Account })
		if i < 0 {
			all = append(all, k)
			continue
		}
		all[i].Limit = max(all[i].Limit, k.Limit)
		if k.Until.After(all[i].Until) {
			all[i].Until, all[i].By = k.Until, k.By
		}
	}
	return all, err
}

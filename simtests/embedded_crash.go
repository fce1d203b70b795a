package simtests

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// hostDeath is a death of the host that a scenario has asked for. The world's mutex guards it.
type hostDeath struct {
	left  int  // moments until it comes
	power bool // what was not synced may be lost
	dir   string
	ran   map[string]string
	last  map[string]string
	edges map[string]int
	ended map[string]int
}

// DieAt says that the host of e's clients dies n moments from now: at an effect, a line that
// an agent writes, or an operation on a file. power: with it goes what was not synced, or a
// part of that. The world continues as if nothing had happened; [Embedded.AfterDeath] is the
// next host. Call it before the clients are opened.
func (e *Embedded) DieAt(n int, power bool) { e.death = &hostDeath{left: n, power: power} }

// AfterDeath returns the agent as the next host finds it: with the sessions as they were
// stored when the host died; nil if that moment has not come. The effects of its clients follow
// those before that moment, so close the clients before.
func (e *Embedded) AfterDeath() *Embedded {
	d := e.death
	if d == nil || d.dir == "" {
		return nil
	}
	next := *e
	next.death, next.Config.Dir = nil, d.dir
	w := e.world
	w.mu.Lock()
	defer w.mu.Unlock()
	w.loops.ran, w.loops.last, w.loops.edges, w.loops.ended = d.ran, d.last, d.edges, d.ended
	return &next
}

// moment is one of those at which the host may die.
func (m *mind) moment() {
	w, d := m.w, m.e.death
	if d == nil {
		return
	}
	w.mu.Lock()
	d.left--
	now := d.left == 0
	if now {
		d.ran, d.last, d.edges = maps.Clone(w.loops.ran), maps.Clone(w.loops.last), maps.Clone(w.loops.edges)
		d.ended = maps.Clone(w.loops.ended)
		if d.power { // what only reads may be done again, and the end of a question may be lost
			maps.DeleteFunc(d.ran, func(key, _ string) bool { return w.loops.free[key] })
			clear(d.last)
			clear(d.ended)
		}
	}
	w.mu.Unlock()
	if !now {
		return
	}
	to := filepath.Join(w.Dir(), "after-death")
	from := os.DirFS(m.dir)
	err := fs.WalkDir(from, ".", func(path string, entry fs.DirEntry, err error) error {
		name := filepath.Join(to, filepath.FromSlash(path))
		switch {
		case path == "." && errors.Is(err, fs.ErrNotExist): // nothing is stored yet
			return os.MkdirAll(to, 0o700)
		case err != nil:
			return err
		case entry.IsDir():
			return os.MkdirAll(name, 0o700)
		}
		content, err := fs.ReadFile(from, path)
		if err != nil {
			return err
		}
		if d.power && strings.HasSuffix(path, ".jsonl") {
			w.mu.Lock()
			durable := min(w.loops.durable(filepath.Join(m.dir, filepath.FromSlash(path))), len(content))
			content = content[:durable+w.rng.IntN(len(content)-durable+1)]
			w.mu.Unlock()
		}
		return os.WriteFile(name, content, 0o600)
	})
	if err != nil {
		w.Errorf("the sessions cannot be copied: %v", err)
	}
	w.note(Event{Kind: "fault", Lane: m.lane, What: "the host dies"})
	w.mu.Lock()
	d.dir = to
	w.mu.Unlock()
}

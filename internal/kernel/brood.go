package kernel

import (
	"cmp"
	"maps"
	"slices"
)

// brood are the children of an actor that it has not learned the end of. Most actors have
// two or three, and a map of them would weigh more than they need else. The zero value is
// empty. It is the actor's.
type brood struct {
	few  []*life
	many map[string]*life // by path; nil: they are few
}

// fewChildren need no map.
const fewChildren = 8

func (b *brood) empty() bool { return len(b.few)+len(b.many) == 0 }

// get returns the child at a path, nil if there is none.
func (b *brood) get(path string) *life {
	if b.many != nil {
		return b.many[path]
	}
	if i := b.index(path); i >= 0 {
		return b.few[i]
	}
	return nil
}

func (b *brood) index(path string) int {
	return slices.IndexFunc(b.few, func(l *life) bool { return l.pid.Id == path })
}

// add adds a child, whose path no other has.
func (b *brood) add(l *life) {
	switch {
	case b.many != nil:
		b.many[l.pid.Id] = l
	case len(b.few) < fewChildren:
		b.few = append(b.few, l)
	default:
		b.many = make(map[string]*life, 2*fewChildren)
		for _, c := range append(b.few, l) {
			b.many[c.pid.Id] = c
		}
		b.few = nil
	}
}

// remove forgets a child.
func (b *brood) remove(path string) {
	if i := b.index(path); i >= 0 {
		b.few = slices.Delete(b.few, i, i+1)
	}
	delete(b.many, path)
	if b.empty() {
		*b = brood{} // a map never gives memory back
	}
}

// all are the children, the first that was spawned first.
func (b *brood) all() []*life {
	all := slices.AppendSeq(slices.Clone(b.few), maps.Values(b.many))
	slices.SortFunc(all, func(a, b *life) int { return cmp.Compare(a.number, b.number) })
	return all
}

package main

import (
	"encoding/json"
	"sync"
)

// item is an event of a session. The ids count from 1.
type item struct {
	ID   int
	Kind string
	Data json.RawMessage
}

// feed has the events of one session: the last ones, for readers that come back, and a
// bounded queue for each reader, so that a slow one holds up neither the session nor the
// others.
type feed struct {
	mu      sync.Mutex
	last    []item
	next    int
	readers map[*reader]struct{}
	over    bool
}

const (
	kept   = 512 // events
	queued = 64  // for each reader
)

// reader is who reads a feed.
type reader struct {
	items chan item // closed at the end of the feed
	lost  bool      // it was too slow, or came too late; under the feed's lock
}

func newFeed() *feed { return &feed{next: 1, readers: map[*reader]struct{}{}} }

func (f *feed) publish(kind string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		text, _ = json.Marshal(err.Error()) // a string has a form
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return
	}
	it := item{f.next, kind, text}
	f.next++
	if f.last = append(f.last, it); len(f.last) > kept {
		f.last = f.last[len(f.last)-kept:]
	}
	for r := range f.readers {
		r.offer(it)
	}
}

// offer gives an item to a reader, or takes note that it has lost some.
func (r *reader) offer(it item) {
	if r.lost {
		return
	}
	select {
	case r.items <- it:
	default:
		r.lost = true
	}
}

// subscribe has a reader get what follows the event with the id after; 0: all that is kept.
func (f *feed) subscribe(after int) *reader {
	f.mu.Lock()
	defer f.mu.Unlock()
	r := &reader{items: make(chan item, queued)}
	for _, it := range f.last {
		if it.ID > after {
			r.offer(it)
		}
	}
	r.lost = r.lost || after > 0 && len(f.last) > 0 && f.last[0].ID > after+1
	if f.over {
		close(r.items)
	} else {
		f.readers[r] = struct{}{}
	}
	return r
}

func (f *feed) leave(r *reader) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.readers, r)
}

// resync reports whether a reader that has read its queue has missed events, and from which
// id on it gets them again.
func (f *feed) resync(r *reader) (next int, missed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	missed, r.lost = r.lost && len(r.items) == 0, r.lost && len(r.items) > 0
	return f.next, missed
}

// end ends the feed for all.
func (f *feed) end() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.over {
		return
	}
	f.over = true
	for r := range f.readers {
		close(r.items)
	}
	clear(f.readers)
}

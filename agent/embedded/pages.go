package embedded

import (
	"slices"
	"sync"
	"time"
)

// Limits of the pages that are kept.
const (
	pagesFor = 15 * time.Minute
	maxPaged = 8 << 20 // bytes of their texts
)

// pages are those that sessions of a backend have fetched. It is safe for concurrent use; what it
// gives out is only read.
type pages struct {
	mu   sync.Mutex
	list []keptPage // in the order in which they came
	size int
}

type keptPage struct {
	key  string
	at   time.Time
	page *fetched
}

// get returns the page that was kept for the key, or nil.
func (p *pages) get(key string, now time.Time) *fetched {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.list) > 0 && now.Sub(p.list[0].at) >= pagesFor {
		p.drop(0)
	}
	if i := p.index(key); i >= 0 {
		return p.list[i].page
	}
	return nil
}

// put keeps a page, and drops the oldest ones until the rest fits into maxPaged.
func (p *pages) put(key string, page *fetched, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := p.index(key); i >= 0 {
		p.drop(i)
	}
	p.list, p.size = append(p.list, keptPage{key, now, page}), p.size+len(page.text)
	for p.size > maxPaged {
		p.drop(0)
	}
}

func (p *pages) index(key string) int {
	return slices.IndexFunc(p.list, func(k keptPage) bool { return k.key == key })
}

func (p *pages) drop(i int) {
	p.size -= len(p.list[i].page.text)
	p.list = slices.Delete(p.list, i, i+1)
}

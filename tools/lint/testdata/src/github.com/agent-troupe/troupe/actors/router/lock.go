package router

import "sync"

type box struct {
	mu   sync.RWMutex // want `a lock that is not on the list`
	once sync.Once
}

var _ = (&box{}).mu.Lock

type deep struct {
	guarded struct {
		of map[string]*sync.Mutex // want `a lock that is not on the list`
	}
	any sync.Locker // want `a lock that is not on the list`
}

type alike sync.Mutex // want `a lock that is not on the list`

func local() func() {
	var mu sync.Mutex // want `a lock that is not on the list`
	return mu.Lock
}

func second(seen *sync.Map) { // want `a lock that is not on the list`
	seen.Clear()
}

var _, _ = local, second

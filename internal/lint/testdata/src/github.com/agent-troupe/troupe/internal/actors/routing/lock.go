package routing

import "sync"

type box struct {
	mu   sync.RWMutex // want `box has a lock`
	once sync.Once
}

var _ = (&box{}).mu.Lock

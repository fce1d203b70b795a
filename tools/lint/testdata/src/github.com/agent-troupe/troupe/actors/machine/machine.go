package machine

import (
	"errors"
	"sync" // want `does not import sync`
)

type Routing struct {
	mu    sync.Mutex
	then  func()        // want `holds a function`
	named callback      // want `holds a function`
	wake  chan struct{} // want `has no channel`
	rules interface{ Ask() error }
}

type callback func() error

func (m *Routing) Step() error {
	go m.then() // want `starts no goroutine`
	sorted := func() bool { return true }
	if sorted() {
		return errors.New("no")
	}
	return m.rules.Ask()
}

package agent

import (
	"sync"
	"time"
)

func pump() {
	go pump() // the stdio port may
	var wg sync.WaitGroup
	wg.Go(pump)
	time.Sleep(1) // want `time.Sleep bypasses`
}

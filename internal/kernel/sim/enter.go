package sim

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Enter runs fn in a separate bubble. A deadlock of the bubble's goroutines is an error
// with their stacks. progress is looked at in real time: when it stays the same for
// patience, all stacks are printed and the program ends, since a goroutine that waits
// for a lock or for I/O cannot be stopped. about is printed before them. A nil progress
// is not looked at.
func Enter(t *testing.T, progress *atomic.Int64, patience time.Duration, about string, fn func()) (err error) {
	if progress != nil {
		stop := make(chan struct{})
		defer close(stop)
		go watch(stop, progress, patience, about)
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("sim: goroutines are left that nothing can wake: %v\n%s", r, leftStacks())
		}
	}()
	synctest.Test(t, func(*testing.T) { fn() })
	return nil
}

// watch ends the program when nothing happens for too long.
func watch(stop <-chan struct{}, progress *atomic.Int64, patience time.Duration, about string) {
	tick := time.NewTicker(patience)
	defer tick.Stop()
	last := progress.Load()
	for {
		//troupe:select the end of the bubble and the watchdog's tick compete; both are harmless
		select {
		case <-stop:
			return
		case <-tick.C:
		}
		now := progress.Load()
		if now == last {
			buf := make([]byte, 1<<20)
			fmt.Fprintf(os.Stderr, "%s\nno step in %v of real time: a goroutine waits for a lock or for I/O, or runs for ever.\nThe goroutines of the simulation:\n%s\n",
				about, patience, bubbled(string(buf[:runtime.Stack(buf, true)])))
			os.Exit(2)
		}
		last = now
	}
}

// leftStacks are those of the goroutines of bubbles.
func leftStacks() string {
	buf := make([]byte, 1<<20)
	return bubbled(string(buf[:runtime.Stack(buf, true)]))
}

// bubbled keeps the stacks of goroutines in bubbles.
func bubbled(all string) string {
	var kept []string
	for _, stack := range strings.Split(all, "\n\n") {
		head, _, _ := strings.Cut(stack, "\n")
		if strings.Contains(head, "synctest") {
			kept = append(kept, stack)
		}
	}
	return strings.Join(kept, "\n\n")
}

// After returns a function that reports whether so much real time has passed.
func After(d time.Duration) func() bool {
	end := time.Now().Add(d)
	return func() bool { return time.Now().After(end) }
}

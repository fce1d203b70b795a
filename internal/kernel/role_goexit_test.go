package kernel_test

import (
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel"
)

// A task that ends its goroutine, as t.FailNow does in a callback, does not take the role with
// it: another goroutine goes on with the job.
func TestATaskThatEndsTheGoroutineOfARole(t *testing.T) {
	t.Parallel()
	sys := kernel.NewSystem(kernel.Config{})
	taken := make(chan int, 2)
	n := 0
	role := sys.NewRole(func(w *kernel.Worker) {
		n++ // one goroutine has the role at a time
		taken <- n
		if n == 1 {
			sys.Go(w, func() func(*kernel.Worker) {
				runtime.Goexit()
				return nil
			})
			w.Run()
		}
		w.EndRole()
	})
	role.Start()
	for want := range 2 {
		select {
		case got := <-taken:
			require.Equal(t, want+1, got)
		case <-time.After(time.Minute):
			t.Fatal("nobody has the role")
		}
	}
}

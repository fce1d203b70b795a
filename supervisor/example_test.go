package supervisor_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/supervisor"
)

// A router depends on the transport before it: when the transport fails, both
// are restarted.
func Example() {
	seed := uint64(1)
	sup, err := supervisor.New(supervisor.Spec{
		Name:     "session",
		Strategy: supervisor.RestForOne,
		Backoff:  supervisor.Backoff{Immediate: true},
		Children: []supervisor.Child{
			{Name: "transport", Shutdown: 10 * time.Second},
			{Name: "router"},
		},
	}, kernel.NewRand(&seed), func(e supervisor.Event) { fmt.Println("event: ", e) })
	if err != nil {
		fmt.Println(err)
		return
	}

	// An actor would spawn, stop and kill here, and set timers on its clock.
	do := func(actions []supervisor.Action) {
		for _, a := range actions {
			fmt.Printf("action: %T %v\n", a, a)
		}
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	do(sup.Start(now))
	do(sup.ChildDown(now, "transport", 1, errors.New("exit status 1")))
	do(sup.ChildDown(now, "router", 1, nil))

	// Output:
	// event:  session: transport#1 started
	// event:  session: router#1 started
	// action: *supervisor.StartChild &{transport 1}
	// action: *supervisor.StartChild &{router 1}
	// event:  session: transport#1 failed: exit status 1
	// action: *supervisor.StopChild &{router 1}
	// action: *supervisor.SetTimer &{1 5s}
	// event:  session: router#1 stopped
	// event:  session: restart of transport, router in 0s: exit status 1
	// event:  session: transport#2 started
	// event:  session: router#2 started
	// event:  session: restarted transport, router
	// action: *supervisor.StartChild &{transport 2}
	// action: *supervisor.StartChild &{router 2}
}

// BackoffState alone paces anything that is tried again, here a connection.
func ExampleBackoffState() {
	seed := uint64(7)
	rnd := kernel.NewRand(&seed)
	retry := supervisor.BackoffState{Backoff: supervisor.Backoff{Initial: time.Second, Max: 3 * time.Second}}
	for range 4 {
		delay := retry.Next(rnd)
		fmt.Println(retry.Attempts(), 0 <= delay && delay <= 3*time.Second)
	}
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	retry.Up(now)                      // connected
	retry.Down(now.Add(2 * time.Hour)) // lost, after a healthy period
	fmt.Println(retry.Attempts())

	// Output:
	// 1 true
	// 2 true
	// 3 true
	// 4 true
	// 0
}

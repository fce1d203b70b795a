package runtime

import (
	"context"
	crand "crypto/rand"
	"math/rand"
	randv2 "math/rand/v2"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"
)

func clocks() {
	_ = time.Now()                   // want `time.Now bypasses the kernel's seams; take a kernel.Clock`
	_ = time.Since(time.Time{})      // want `time.Since bypasses`
	_ = time.Until(time.Time{})      // want `time.Until bypasses`
	time.Sleep(time.Second)          // want `time.Sleep bypasses`
	<-time.After(time.Second)        // want `time.After bypasses`
	time.AfterFunc(0, func() {})     // want `time.AfterFunc bypasses`
	time.NewTimer(0).Stop()          // want `time.NewTimer bypasses`
	time.NewTicker(1).Stop()         // want `time.NewTicker bypasses`
	_ = time.Tick                    // want `time.Tick bypasses`
	handOn(time.Now)                 // want `time.Now bypasses`
	_ = time.Unix(0, 0).Add(1).UTC() // computing with times is fine
	_ = time.Duration(3).String()
}

func handOn(now func() time.Time) { now() }

func deadlines(ctx context.Context) {
	_, _ = context.WithTimeout(ctx, 1)                      // want `context.WithTimeout bypasses`
	_, _ = context.WithTimeoutCause(ctx, 1, nil)            // want `context.WithTimeoutCause bypasses`
	_, _ = context.WithDeadline(ctx, time.Time{})           // want `context.WithDeadline bypasses`
	_, _ = context.WithDeadlineCause(ctx, time.Time{}, nil) // want `context.WithDeadlineCause bypasses`
	_ = context.AfterFunc(ctx, func() {})                   // want `context.AfterFunc bypasses`
	_, cancel := context.WithCancelCause(ctx)
	cancel(nil)
}

func randomness() {
	_ = rand.Intn(3)                      // want `math/rand.Intn bypasses`
	_ = randv2.Uint64()                   // want `math/rand/v2.Uint64 bypasses`
	_, _ = crand.Read(nil)                // want `crypto/rand.Read bypasses`
	_ = uuid.NewString()                  // want `github.com/google/uuid.NewString bypasses`
	_, _ = os.CreateTemp("", "x")         // want `os.CreateTemp bypasses`
	_, _ = os.MkdirTemp("", "x")          // want `os.MkdirTemp bypasses`
	_ = rand.New(rand.NewSource(1)).Int() // a seeded source is fine
	_ = randv2.New(randv2.NewPCG(1, 2)).Uint64()
}

func goroutines(ctx context.Context) {
	go deadlines(ctx) // want `a bare go statement is invisible to the simulation`
	var wg sync.WaitGroup
	wg.Go(clocks) // want `\(\*sync.WaitGroup\).Go starts a goroutine`
}

func allowances(ctx context.Context) {
	go clocks() //troupe:seam ends with the process
	// A comment before it is fine.
	//troupe:seam ends with the process,
	// which a second line may explain.
	go clocks()
	//troupe:seam // want `//troupe:seam needs a reason`
	go clocks()
	//troupe:seam nothing here needs it // want `this //troupe:seam allows nothing`
	clocks()
}

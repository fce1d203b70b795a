package fleet_test

import (
	"testing"
	"time"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/fleet"
)

// BenchmarkJob runs tasks of 20 ms, with and without journal, transcripts and results.
func BenchmarkJob(b *testing.B) {
	for _, c := range []struct {
		name string
		kept bool
	}{{"nothing kept", false}, {"kept", true}} {
		b.Run(c.name, func(b *testing.B) {
			const n = 500
			for b.Loop() {
				job := fleet.Job{Tasks: tasks(n), Concurrency: 16, Options: backend(when("do", scripted.Delay(20*time.Millisecond), scripted.Text("done")))}
				if c.kept {
					job.Out = b.TempDir()
				}
				for _, err := range fleet.Run(b.Context(), job) {
					if err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "tasks/s")
		})
	}
}

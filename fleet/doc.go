// Package fleet runs a job: many tasks for agents, in parallel, within limits, and every
// result exactly once, whatever dies on the way.
//
//	job := fleet.Job{Tasks: tasks, Options: &sdk.Options{Backend: sdk.Claude(sdk.ClaudeConfig{})}, Concurrency: 4, Out: "out"}
//	for result, err := range fleet.Run(ctx, job) {
//		if err != nil {
//			return err
//		}
//		fmt.Println(result.ID, result.Status)
//	}
//
// In this package: jobs, tasks and results; the machine, which owns all state of a job as a value
// without clock, goroutine or I/O; its actor; attempts, workspaces, verification; and what is written under
// Job.Out. Not in this package: how a session works, which is package sdk's, and anything that prints.
// The durable record is package journal's.
//
// docs/fleets.md is a tutorial, and the reference of the command.
package fleet

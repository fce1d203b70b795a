package runtime_test

import (
	"context"
	"fmt"
	"time"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// A service shows what its sessions do, have used and did: in a table that is read each second,
// on the page of one session, and as a chart.
func Example_dashboard() {
	ctx := context.Background()
	rt, err := runtime.New(runtime.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = rt.Shutdown(ctx) }()
	rt.KeepHistory()

	labels := map[string]string{"team": "billing"}
	s, err := rt.Open(runtime.WithAdmission(ctx, runtime.AdmissionRequest{Labels: labels}), runtime.Spec{
		Dialect: claude.New(),
		Program: scripted.New(scripted.WithTurns(scripted.Turn{Steps: scripted.Steps{
			&scripted.ToolUse{Name: "Grep", Result: "tax.go:12"}, scripted.Text("There is one."),
		}})),
		Options: session.Options{Title: "tax rates", Env: map[string]string{"TOKEN": "secret"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	turn, err := s.Send(ctx, text("Where are the rates?"))
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := turn.Result(ctx); err != nil {
		fmt.Println(err)
		return
	}

	for _, row := range rt.Outline() {
		fmt.Printf("%s, team %s: %d turn, spent: %v\n", row.Title, row.Labels["team"], row.Turn, row.Usage.USD > 0)
	}
	past := s.Timeline(ctx)
	for _, span := range past.Tools {
		fmt.Println("tool", span.Name, "is over:", !span.To.IsZero())
	}
	fmt.Println("options:", s.Options()["env"])
	fmt.Println("values of a chart:", len(rt.History(15*time.Minute).Series.Turns))

	// Output:
	// tax rates, team billing: 1 turn, spent: true
	// tool Grep is over: true
	// options: map[TOKEN:•••• set]
	// values of a chart: 90
}

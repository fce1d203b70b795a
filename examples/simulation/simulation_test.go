package simulation_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/examples/simulation"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/simtests"
)

func TestMain(m *testing.M) { os.Exit(simtests.Main(m)) }

// paysAndSays is an agent that pays order 7 and says so.
func paysAndSays() *scripted.Script {
	return &scripted.Script{Turns: []scripted.Turn{{Steps: scripted.Steps{
		scripted.Text("I will pay it back."),
		&scripted.MCPCall{Server: "shop", Tool: "pay", Arguments: map[string]any{"order": 7}},
		scripted.Text("Done."),
	}}}}
}

// twoClerks is a scenario: two sessions are asked for the same refund within a second. The
// bank takes up to 300 ms.
func twoClerks(ledger func(simulation.Bank) simulation.Payer) func(*simtests.World) {
	return func(w *simtests.World) {
		transfers := 0
		bank := func(_ context.Context, order int) error {
			w.Note("the bank transfers the money of order %d", order)
			transfers++
			w.Sleep(time.Duration(w.Rand().IntN(300)) * time.Millisecond)
			return nil
		}
		shop, err := simulation.Shop(ledger(bank))
		require.NoError(w, err)
		for range 2 {
			w.Go(func() {
				w.Sleep(time.Duration(w.Rand().IntN(1000)) * time.Millisecond)
				c := w.Open(&sdk.Options{SDKMCPServers: []*sdk.MCPServer{shop}, AllowedTools: []string{"mcp__shop__pay"}}, paysAndSays())
				_, _, err := w.Ask(c, "refund order 7")
				require.NoError(w, err)
				require.NoError(w, c.Close(w.Context()))
			})
		}
		w.Run()
		require.Equal(w, 1, transfers, "how often order 7 was paid")
	}
}

// The kit finds the race: in some histories the order is paid twice.
func TestRacyLedgerPaysTwice(t *testing.T) {
	t.Parallel()
	found := simtests.Find(t, simtests.Config{Seeds: 500}, twoClerks(func(b simulation.Bank) simulation.Payer { return &simulation.RacyLedger{Bank: b} }))
	require.Contains(t, found.Failure, "how often order 7 was paid")
}

func TestLedgerPaysOnce(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: 60}, twoClerks(func(b simulation.Bank) simulation.Payer { return &simulation.Ledger{Bank: b} }))
}

// desk is either version.
type desk interface {
	Refund(ctx context.Context, c *sdk.Client, order int) error
	Status(order int) simulation.Status
}

// agentDies is a scenario: one refund, by an agent that may die at any line.
func agentDies(open func() desk) func(*simtests.World) {
	return func(w *simtests.World) {
		w.Faults(simtests.AgentCrash(0.05))
		shop, err := simulation.Shop(&simulation.Ledger{Bank: func(context.Context, int) error { return nil }})
		require.NoError(w, err)
		c, err := w.Dial(&sdk.Options{SDKMCPServers: []*sdk.MCPServer{shop}, AllowedTools: []string{"mcp__shop__pay"}}, paysAndSays())
		if err != nil {
			return // the agent died before it was ready, and the customer was told
		}
		d := open()
		err = d.Refund(w.Context(), c, 7)
		w.Sometimes("the agent died during the refund", err != nil)
		_ = c.Close(w.Context()) // says that the agent died, if it did
		require.NotEqual(w, simulation.InProgress, d.Status(7), "the refund of order 7 has ended")
	}
}

// The kit finds the crash that nobody handles: the order stays in progress.
func TestForgetfulDeskLeavesOrders(t *testing.T) {
	t.Parallel()
	found := simtests.Find(t, simtests.Config{Seeds: 500}, agentDies(func() desk { return &simulation.ForgetfulDesk{} }))
	require.Contains(t, found.Failure, "the refund of order 7 has ended")
}

func TestDeskEndsRefunds(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: 60}, agentDies(func() desk { return &simulation.Desk{} }))
}

package actors

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/router"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// told is a message of a log, with the time at which it was handled.
type told struct {
	at time.Time
	m  any
}

// effectText makes effects comparable, which share pointers with nothing.
func effectText(e machine.Effect) string {
	outcome := func(o machine.Outcome) string { return fmt.Sprint(o.ID, o.Starts, o.Ends, o.Result != nil, o.Err) }
	switch e := e.(type) {
	case machine.Deliver:
		text := "Deliver"
		for _, entry := range e.Entries {
			text += fmt.Sprintf(" %d %s", entry.Seq, entry.Frame.Raw)
			for _, o := range entry.Ends {
				text += " ends " + outcome(o)
			}
		}
		return text
	case machine.TurnOver:
		return "TurnOver " + outcome(e.Outcome)
	case machine.CallOver:
		return fmt.Sprint("CallOver ", e.ID, e.Err)
	case machine.Changed:
		return fmt.Sprintf("Changed %+v", *e.Summary)
	}
	return fmt.Sprintf("%T %+v", e, e)
}

// TestASessionIsItsMessages: what the two machines of a session did follows from the
// messages that their actors were told, and the time. They have no other way in.
func TestASessionIsItsMessages(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		sched := sim.New(seed)
		seams := sched.Config()
		log, done := make(map[string][]told), make(map[string][]string)
		seams.Chaos = func(actor string, m any, at kernel.Moment) bool {
			who, _, _ := strings.Cut(actor, "#")
			switch m.(type) {
			case router.Look, router.Wanted, describe, sessionTimer:
				return false
			}
			switch at {
			case kernel.BeforeMessage:
				log[who] = append(log[who], told{sched.Now(), m})
			case kernel.AfterEffect:
				done[who] = append(done[who], effectText(m.(machine.Effect)))
			}
			return false
		}
		sys := kernel.NewSystem(seams)
		begun := sched.Now()
		script := &scripted.Script{Turns: []scripted.Turn{{Steps: scripted.Steps{
			&scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "date"}, Gate: agent.GateAsk, Result: "now"}, scripted.Text("done"),
		}}}}
		config := func() Config {
			return Config{
				Host: &Host{System: sys}, ID: "s", Dialect: claude.New(),
				Spawner: transport.InMemory{Clock: sched, Exec: sched, Program: scripted.New(scripted.WithScript(script))},
				Input: &dialect.Input{Options: session.Options{
					CanUseTool: func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
						return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil
					},
					InterruptGrace: time.Second, Graces: session.Graces{}.WithDefaults(),
				}},
			}
		}
		k := NewCore(config())
		actor, err := NewSession(k)
		require.NoError(t, err)
		require.NoError(t, kernel.SpawnRoot(sys, "s#1", k.Address(), actor))
		turn, err := k.User.Send(context.Background(), &protocol.UserMessage{
			Common: protocol.Common{UUID: "u"}, Message: protocol.UserContent{Role: "user", Content: protocol.StringContent("hi")},
		})

		require.NoError(t, err)
		require.NoError(t, sched.Await(context.Background(), turn.Done()))
		k.Close()
		require.NoError(t, sched.Await(context.Background(), k.User.Done()))

		again := NewCore(config()) // machines that have done nothing
		var routed, lived []machine.Effect
		limits := session.Limits{}.WithDefaults()
		routing := machine.New(again.routingConfig(&limits))
		for _, m := range log["router"] {
			routed = routing.Step(m.at, m.m.(machine.Input), routed)
		}
		lived = again.life.Step(begun, machine.Began{}, lived)
		for _, m := range log["s"] {
			lived = again.life.Step(m.at, m.m.(machine.LifeInput), lived)
		}
		lived = again.life.Step(sched.Now(), machine.ActorsOver{}, lived)
		assert.Equal(t, done["router"], texts(routed), "seed %d", seed)
		assert.Equal(t, done["s"], texts(lived), "seed %d", seed)
		assert.Equal(t, session.StateClosed, again.life.Snapshot().Phase)
		assert.Greater(t, len(routed), 20)
		sched.Close()
	}
}

func texts(effects []machine.Effect) []string {
	all := make([]string, len(effects))
	for i, e := range effects {
		all[i] = effectText(e)
	}
	return all
}

package main

import (
	"os"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/stretchr/testify/require"

	troupenats "github.com/agent-troupe/troupe/contrib/nats"
)

// A task moves with the session of the real Claude Code, and from three servers whose leader is killed together
// with the worker.
func TestARealMove(t *testing.T) { //nolint:paralleltest // agents need the whole machine
	if os.Getenv("TROUPE_FULL") == "" {
		t.Skip("TROUPE_FULL is not set; TestATaskMovesToAnotherWorker has the embedded agent and one server")
	}
	port := 16322
	for _, agent := range []string{"embedded", "claude"} {
		for name, signal := range ends {
			t.Run(agent+" "+name, func(t *testing.T) {
				m := newMoving(t, agent)
				servers := cluster(t, port)
				port += 100
				m.url = servers.urls
				require.Zero(t, start(t, "jobs", "--nats", m.url).exit(t), "there is a leader")
				m.between = func() {
					nc, err := troupenats.Connect(m.url)
					require.NoError(t, err)
					defer nc.Close()
					js, err := jetstream.New(nc)
					require.NoError(t, err)
					s, err := js.Stream(t.Context(), "TROUPE_Q_m")
					require.NoError(t, err)
					servers.kill(t, s.CachedInfo().Cluster.Leader)
				}
				m.play(t, signal)
			})
		}
	}
}

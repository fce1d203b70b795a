package simtests_test

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/simtests"
)

// shopServer is the shop as a process, which dies now and then: with or without having sold.
func shopServer(w *simtests.World, s *sales) func(string, json.RawMessage) simtests.Ran {
	return func(name string, arguments json.RawMessage) simtests.Ran {
		var in struct{ Item string }
		require.NoError(w, json.Unmarshal(arguments, &in))
		assert.Equal(w, "buy", name)
		if s.bought[in.Item] {
			w.Errorf("once: %s was bought before", in.Item)
		}
		if !s.allowed[in.Item] {
			w.Errorf("gated: %s is bought, and was not allowed", in.Item)
		}
		s.bought[in.Item] = true
		ran := simtests.Ran{Output: "bought", Takes: time.Duration(w.Rand().IntN(3)) * time.Second}
		if w.Rand().IntN(8) == 0 {
			ran.Code = 3
			w.Sometimes("an MCP server dies within a call", true)
		}
		return ran
	}
}

// TestEmbeddedWithAnMCPServer: whatever fails, no call of a server's tool is made twice or without
// permission, and the server ends with the agent.
func TestEmbeddedWithAnMCPServer(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(40), Cost: 5, Twice: 1, First: 3_000_000}, serverWork)
}

func serverWork(w *simtests.World) {
	dir := workplace(w)
	s := &sales{bought: map[string]bool{}, allowed: map[string]bool{}}
	e := &simtests.Embedded{
		Server: &modeltest.Server{Script: worker}, OpenAI: w.Rand().IntN(4) == 0, Rests: w.Rand().IntN(2) == 0, Unasked: []string{"cat "},
		Tools: []string{"buy"}, Tool: shopServer(w, s),
	}
	w.Faults(embeddedWeather()...)
	id := ""
	for range 1 + w.Rand().IntN(3) {
		if id = embeddedTalk(w, e, s, dir, id, false); id == "" {
			break
		}
	}
	w.Sometimes("something was bought", len(s.bought) > 0)
	w.Run()
}

// In a calm world the server's tool is called, and all requests have the same list of tools, however
// long the server takes to start.
func TestAnMCPServerInACalmWorld(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(10), Cost: 3, Twice: 1}, calmServerWork)
}

func calmServerWork(w *simtests.World) {
	dir := workplace(w)
	s := &modeltest.Server{Script: worker}
	bought := 0
	begins := time.Duration(w.Rand().IntN(40)) * time.Second // the limit is 30 s
	c := w.OpenEmbedded(&sdk.Options{
		Cwd: dir, CanUseTool: allowAll, MCPServers: map[string]sdk.MCPServerConfig{"shop": {Command: "shop-server"}},
	}, &simtests.Embedded{
		Server: s, Rests: w.Rand().IntN(2) == 0, Unasked: []string{"cat "}, Tools: []string{"buy"}, ToolsAfter: begins,
		Tool: func(string, json.RawMessage) simtests.Ran {
			bought++
			return simtests.Ran{Output: "bought", Takes: time.Second}
		},
	})
	for range 2 {
		turn, err := c.Send(w.Context(), sdk.UserText("work"))
		require.NoError(w, err)
		_, err = turn.Result(w.Context())
		require.NoError(w, err)
	}
	require.NoError(w, c.Close(w.Context()))
	inTime := begins < 29*time.Second
	if begins < 29*time.Second || begins > 31*time.Second {
		assert.Equal(w, inTime, bought > 0)
		assert.Equal(w, inTime, slices.Contains(s.Requests()[0].Tools, "mcp__shop__buy"))
	}
	w.Sometimes("a server is late", !inTime)
	for _, r := range s.Requests() {
		if !slices.Equal(s.Requests()[0].Tools, r.Tools) {
			w.Errorf("prefix: a request has the tools %v, and the first one has %v", r.Tools, s.Requests()[0].Tools)
		}
	}
}

// TestPlantedBugsOfServers is for tools/simmutate.
func TestPlantedBugsOfServers(t *testing.T) {
	t.Parallel()
	planted(t, 5, func(w *simtests.World) {
		if w.Rand().IntN(3) == 0 {
			calmServerWork(w)
			return
		}
		serverWork(w)
	})
}

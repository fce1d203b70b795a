package simtests_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/simtests"
)

// traced plays one history and returns its trace: the events, which are equal to the
// lines of the file, and the page.
func traced(t *testing.T, token string, scenario func(*simtests.World)) ([]simtests.Event, string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TROUPE_SIM_REPLAY", token)
	t.Setenv("TROUPE_SIM_TRACE", dir)
	r := simtests.Explore(t, simtests.Config{AllFaults: true}, scenario)
	require.Len(t, r.Trace, 2)
	return readTrace(t, r.Trace)
}

func readTrace(t *testing.T, files []string) ([]simtests.Event, string) {
	t.Helper()
	require.Equal(t, ".jsonl", filepath.Ext(files[0]))
	lines, err := os.ReadFile(files[0])
	require.NoError(t, err)
	var events []simtests.Event
	for line := range bytes.Lines(lines) {
		var e simtests.Event
		d := json.NewDecoder(bytes.NewReader(line))
		d.DisallowUnknownFields()
		require.NoError(t, d.Decode(&e), "%s", line)
		b, err := json.Marshal(e)
		require.NoError(t, err)
		require.Equal(t, string(bytes.TrimSuffix(line, []byte("\n"))), string(b))
		events = append(events, e)
	}
	require.Equal(t, ".html", filepath.Ext(files[1]))
	page, err := os.ReadFile(files[1])
	require.NoError(t, err)
	return events, string(page)
}

// aboutCrash is a scenario in which an agent crashes, an actor dies, and the session
// is started again.
func aboutCrash(w *simtests.World) {
	w.Faults(simtests.AgentCrash(0.1).AtMost(1), simtests.KillActor(0.05).AtMost(1), simtests.SlowCallback(1, "CanUseTool", time.Minute))
	c, err := w.Dial(&sdk.Options{CanUseTool: allowAll, MaxRestarts: 2}, refund())
	if err != nil {
		return
	}
	_ = ask(w, c, "refund order 7")
	w.Sleep(time.Second)
	_ = ask(w, c, "and again")
	w.Note("both turns are over")
	_ = c.Close(w.Context())
}

func TestTraceNamesSenders(t *testing.T) {
	events, _ := traced(t, "sim1-3", aboutCrash)
	from := make(map[string]int)
	for i, e := range events {
		n := i + 1
		if e.Kind != "message" {
			continue
		}
		require.NotEmpty(t, e.From, "%+v", e)
		require.Less(t, e.After, n, "it was sent before it was handled")
		require.LessOrEqual(t, e.Sent, e.At)
		if e.After > 0 {
			require.GreaterOrEqual(t, e.Sent, events[e.After-1].At)
		}
		if strings.Contains(e.From, "#") {
			// An actor sends while it handles a message, starts, or sees a child's end.
			at := slices.IndexFunc(events[:n], func(o simtests.Event) bool {
				return o.Lane == e.From && (o.Kind == "message" || o.Kind == "actor")
			})
			require.GreaterOrEqual(t, e.After, at+1, "%+v", e)
			from["actor"]++
		} else {
			from[e.From]++
		}
	}
	for _, who := range []string{"actor", "scenario", "task", "timer"} {
		require.Positive(t, from[who], "%s: %v", who, from)
	}
	for who := range from {
		require.Contains(t, []string{"actor", "agent", "scenario", "callbacks", "task", "timer", "world", "fleet"}, who)
	}
	for _, kind := range []string{"message", "actor", "crash", "agent", "host", "effect", "state", "event", "callback", "fault", "note"} {
		require.True(t, slices.ContainsFunc(events, func(e simtests.Event) bool { return e.Kind == kind }), kind)
	}
}

// A router's message to the actor of the transport is one from the router, and the
// effect of a tool is the agent's.
func TestTraceOfACalmTurn(t *testing.T) {
	events, _ := traced(t, "sim1-1", func(w *simtests.World) {
		c := w.Open(&sdk.Options{CanUseTool: allowAll}, refund())
		err := ask(w, c, "refund order 7")
		require.NoError(w, err)
		require.NoError(w, c.Close(w.Context()))
	})
	arrows := make(map[[3]string]bool)
	for _, e := range events {
		_, from, _ := strings.Cut(e.From, "/")
		_, to, _ := strings.Cut(e.Lane, "/")
		arrows[[3]string{from, e.What, to}] = true
		if e.Kind == "effect" {
			require.Equal(t, "agent#1", e.Lane)
		}
	}
	require.Contains(t, arrows, [3]string{"router#1", "machine.Write", "transport#1"})
	require.Contains(t, arrows, [3]string{"router#1", "machine.Run", "callbacks#1/permission#1"}, "the first message, which comes before its actor")
	require.Contains(t, arrows, [3]string{"router#1", "machine.Changed", ""})
}

// A permission request has ten stops from the agent's stdout to its stdin: the reader,
// those below, and the writer. docs/design.md has the picture.
func TestThePathOfAPermissionRequest(t *testing.T) {
	events, _ := traced(t, "sim1-1", func(w *simtests.World) {
		pay := &scripted.ToolUse{Name: "Bash", Input: map[string]any{"command": "pay"}, Gate: agent.GateAsk, Effect: "paid"}
		// The second request finds its actor there.
		c := w.Open(&sdk.Options{CanUseTool: allowAll}, &scripted.Script{Turns: []scripted.Turn{{Steps: scripted.Steps{pay, pay}}}})
		require.NoError(w, ask(w, c, "refund order 7"))
		require.NoError(w, c.Close(w.Context()))
	})
	find := func(from int, kind, what string) int {
		for i := from; i < len(events); i++ {
			if e := events[i]; e.Kind == kind && strings.HasPrefix(e.What, what) {
				return i
			}
		}
		require.Failf(t, "the trace has no such event", "%s %s", kind, what)
		return 0
	}
	asked := find(find(0, "agent", "control_request/can_use_tool")+1, "agent", "control_request/can_use_tool")
	answered := find(asked, "host", "control_response/success")
	stops := make(map[[2]string]int)
	for _, e := range events[asked:find(answered, "agent", "")] { // until it writes again
		_, to, _ := strings.Cut(e.Lane, "/")
		switch e.Kind {
		case "message":
			stops[[2]string{e.What, to}]++
		case "callback":
			stops[[2]string{e.What, e.Kind}]++
		}
	}
	read := [2]string{"machine.FramesRead", "router#1"}
	require.Positive(t, stops[read])
	stops[read] = 1 // how many reads the lines before it took is the simulation's choice
	require.Equal(t, map[[2]string]int{
		read:                    1,
		{"machine.Changed", ""}: 2, // awaiting_host, and running again
		{"machine.Run", "callbacks#1/permission#1"}:    1,
		{"CanUseTool", "callback"}:                     1,
		{"machine.Answered", "router#1"}:               1,
		{"machine.Cancel", "callbacks#1/permission#1"}: 1,
		{"machine.Write", "transport#1"}:               1,
	}, stops)
}

// Two sessions have lanes of their own.
func TestTraceTellsSessionsApart(t *testing.T) {
	events, _ := traced(t, "sim1-1", func(w *simtests.World) {
		for range 2 {
			w.Go(func() {
				c := w.Open(&sdk.Options{CanUseTool: allowAll}, refund())
				_ = ask(w, c, "refund order 7")
				_ = c.Close(w.Context())
			})
		}
		w.Run()
	})
	routers := make(map[string]bool)
	for _, e := range events {
		if strings.HasSuffix(e.Lane, "/router#1") {
			routers[e.Lane] = true
			if strings.Contains(e.From, "/") {
				require.Equal(t, first(e.Lane), first(e.From))
			}
		}
	}
	require.Len(t, routers, 2)
}

func first(lane string) string {
	id, _, _ := strings.Cut(lane, "/")
	return id
}

// A callback that sends a message to its session does so from its own lane, and the
// scenario still has its lane when it has waited.
func TestTraceOfCallbacks(t *testing.T) {
	events, _ := traced(t, "sim1-1", func(w *simtests.World) {
		var c *sdk.Client
		c = w.Open(&sdk.Options{CanUseTool: func(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
			_, _ = c.Send(w.Context(), sdk.UserText("from the callback"))
			return protocol.PermissionResult{Behavior: protocol.BehaviorDeny, Message: "no"}, nil
		}}, &scripted.Script{Turns: []scripted.Turn{{Steps: scripted.Steps{refund().Turns[0].Steps[1]}}, {Steps: scripted.Steps{scripted.Text("done")}}}})
		err := ask(w, c, "from the scenario")
		require.NoError(w, err)
		w.Run()
		require.NoError(w, c.Close(w.Context()))
	})
	sent := make(map[string]string)
	var closed string
	for _, e := range events {
		switch e.What {
		case "machine.UserSent":
			for _, who := range []string{"callback", "scenario"} {
				if strings.Contains(e.Text, "from the "+who) {
					sent[who] = e.From
				}
			}
		case "machine.CloseAsked":
			closed = e.From
		}
	}
	require.Equal(t, map[string]string{"callback": "callbacks", "scenario": "scenario"}, sent)
	require.Equal(t, "scenario", closed)
}

// A message that its actor died of is handled again, and still says who sent it, and
// when.
func TestTraceOfAMessageHandledTwice(t *testing.T) {
	type sent struct {
		lane, from, what string
		after            int
	}
	twice := 0
	for seed := range 10 {
		events, _ := traced(t, fmt.Sprintf("sim1-%d", seed), func(w *simtests.World) {
			w.Faults(simtests.KillActor(0.1).AtMost(1))
			aboutCrash(w)
		})
		died := make(map[sent]bool)
		for i, e := range events {
			if e.Kind != "message" {
				continue
			}
			require.NotEmpty(t, e.From, "%+v", e)
			s := sent{e.Lane[:max(0, strings.LastIndex(e.Lane, "#"))], e.From, e.What, e.After}
			if died[s] {
				twice++
			}
			died[s] = i+1 < len(events) && strings.HasPrefix(events[i+1].What, "KillActor")
		}
	}
	require.Positive(t, twice)
}

// A scenario that has slept without the world's knowledge has its own lane, not that of
// what ran last.
func TestTraceOfASleeper(t *testing.T) {
	events, _ := traced(t, "sim1-1", func(w *simtests.World) {
		c := w.Open(&sdk.Options{CanUseTool: allowAll}, refund())
		_, err := c.Send(w.Context(), sdk.UserText("refund order 7"))
		require.NoError(w, err)
		time.Sleep(time.Minute) // virtual: the turn ends meanwhile
		require.NoError(w, c.Close(w.Context()))
	})
	i := slices.IndexFunc(events, func(e simtests.Event) bool { return e.What == "machine.CloseAsked" })
	require.GreaterOrEqual(t, i, 0)
	require.Equal(t, "scenario", events[i].From)
	require.NotEqual(t, "scenario", events[events[i].After-1].Lane)
}

// embedded is what the page shows.
func embedded(t *testing.T, page string) (shown struct {
	Test, Token      string
	Failures, Faults []string
	Events           []simtests.Event
}) {
	t.Helper()
	_, after, ok := strings.Cut(page, "const trace = ")
	require.True(t, ok)
	data, _, ok := strings.Cut(after, ";\n</script>")
	require.True(t, ok)
	require.NoError(t, json.Unmarshal([]byte(data), &shown))
	return shown
}

func TestTracePageHasTheEvents(t *testing.T) {
	events, page := traced(t, "sim1-3", aboutCrash)
	shown := embedded(t, page)
	require.Equal(t, events, shown.Events)
	require.Equal(t, t.Name(), shown.Test)
	require.Equal(t, "sim1-3", shown.Token)
	require.Empty(t, shown.Failures)
	require.NotEmpty(t, shown.Faults)
	for _, e := range events {
		require.Contains(t, page, "\n  "+e.Kind+": {color: ", "the page has no color for the kind %s", e.Kind)
	}
}

// The page asks nobody for anything: no address is in it but the name of SVG, and its
// policy forbids the browser to.
func TestTracePageIsSelfContained(t *testing.T) {
	_, page := traced(t, "sim1-1", func(*simtests.World) {})
	require.Contains(t, page, `http-equiv="Content-Security-Policy" content="default-src 'none';`)
	page = strings.NewReplacer(`"http://www.w3.org/2000/svg"`, "", `'http://www.w3.org/2000/svg'`, "").Replace(page)
	for _, outside := range []string{"http:", "https:", "src=", "href=", "@import", "url(", "fetch(", "import("} {
		require.NotContains(t, page, outside)
	}
}

// What an agent, a tool or a test says does not become a part of the page.
func TestTracePageEscapes(t *testing.T) {
	const evil = `</script><script>alert("evil")</script><img src=x onerror=alert(1)>`
	dir := t.TempDir()
	t.Setenv("TROUPE_SIM_TRACE", dir)
	got := simtests.Find(t, simtests.Config{Seeds: 1, Shrink: -1}, func(w *simtests.World) {
		c := w.Open(&sdk.Options{CanUseTool: allowAll}, &scripted.Script{Turns: []scripted.Turn{{Steps: scripted.Steps{scripted.Text(evil)}}}})
		require.NoError(w, ask(w, c, evil))
		w.Note("%s", evil)
		w.Errorf("found: %s", evil)
		require.NoError(w, c.Close(w.Context()))
	})
	require.True(t, got.Failed)
	require.Len(t, got.Trace, 2, "a failing history is traced")
	events, page := readTrace(t, got.Trace)
	shown := embedded(t, page)
	require.Equal(t, events, shown.Events)
	require.Equal(t, []string{"found: " + evil}, shown.Failures)
	for _, kind := range []string{"note", "failure", "agent", "host", "message"} {
		require.True(t, slices.ContainsFunc(events, func(e simtests.Event) bool {
			return e.Kind == kind && strings.Contains(e.What+e.Text, "onerror=alert(1)")
		}), kind)
	}
	require.NotContains(t, page, "<img")
	require.NotContains(t, page, "<script>alert")
	require.Equal(t, 3, strings.Count(page, "<script>"))
	require.Equal(t, 3, strings.Count(page, "</script>"))
	require.NotContains(t, page, "innerHTML")
}

package sdk_test

import (
	"context"
	"flag"
	"os"
	goruntime "runtime"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	kit "github.com/agent-troupe/troupe/internal/world"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// agentEnv makes the test's program play an agent: "1", or a script.
const agentEnv = "TROUPE_SDK_TEST_AGENT"

func TestMain(m *testing.M) {
	if script := os.Getenv(agentEnv); script == "1" {
		agent.Main(scripted.New())
		return
	} else if script != "" {
		s, err := scripted.Parse([]byte(script))
		if err != nil {
			panic(err)
		}
		agent.Main(scripted.New(scripted.WithScript(s)))
		return
	}
	// In production most of these tests wait, for example until an agent is quiet.
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(4*goruntime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	goleak.VerifyTestMain(m)
}

// world is a [kit.World] with the vocabulary of these tests.
type world struct {
	*kit.World
	T   *testing.T
	rt  *runtime.Runtime
	sim *sim.Scheduler // nil in production
}

// in runs a test on the production seams and on seeds of the simulation.
func in(t *testing.T, test func(w *world)) {
	t.Helper()
	kit.Both(t, kit.Seeds(t, 4, 500), func(t *testing.T, w *kit.World) { test(worldOf(t, w)) })
}

// production is a world on the production seams.
func production(t *testing.T) *world {
	t.Helper()
	return worldOf(t, kit.Production(t))
}

func worldOf(t *testing.T, w *kit.World) *world {
	t.Helper()
	return &world{World: w, T: t, rt: w.Runtime, sim: w.Sched}
}

// open lists the sessions that have not ended.
func open(rt *runtime.Runtime) []string { return kit.Unended(rt) }

// options are those of a session with an agent that plays these turns.
func (w *world) options(turns ...scripted.Turn) *sdk.Options {
	return &sdk.Options{Runtime: w.rt, Backend: scripted.New(scripted.WithTurns(turns...))}
}

// script is options with a whole script.
func (w *world) script(s scripted.Script) *sdk.Options {
	return &sdk.Options{Runtime: w.rt, Backend: scripted.New(scripted.WithScript(&s))}
}

// connect returns a client that is closed at the end of the test.
func (w *world) connect(o *sdk.Options) *sdk.Client {
	w.Helper()
	c := sdk.NewClient(o)
	require.NoError(w, c.Connect(w.Context()))
	return c
}

func (w *world) close(c *sdk.Client) {
	w.Helper()
	require.NoError(w, c.Close(context.Background()))
}

func (w *world) await(done <-chan struct{}) {
	w.Helper()
	w.Await(done)
}

func turn(steps ...scripted.Step) scripted.Turn { return scripted.Turn{Steps: steps} }

// kinds are the types of messages, without those about state.
func kinds(messages []sdk.Message) []string {
	var all []string
	for _, m := range messages {
		switch m := m.(type) {
		case *sdk.InitMessage:
			all = append(all, "init")
		case *sdk.AssistantMessage:
			all = append(all, "assistant")
		case *sdk.UserMessage:
			all = append(all, "user")
		case *sdk.PartialAssistantMessage:
			all = append(all, "partial")
		case *sdk.ResultMessage:
			all = append(all, "result/"+m.Subtype)
		}
	}
	return all
}

type log = kit.Log

// record makes o report to a log.
func record(o *sdk.Options) *log {
	l := kit.NewLog()
	o.OnEvent = l.Record
	return l
}

// events returns everything once the session has ended.
func (w *world) events(l *log) []session.Event {
	w.Helper()
	return w.Reported(l)
}

// failures are the callbacks that failed.
func (w *world) failures(l *log) []*session.CallbackFailed {
	w.Helper()
	var failed []*session.CallbackFailed
	for _, e := range w.events(l) {
		if f, ok := e.(*session.CallbackFailed); ok {
			failed = append(failed, f)
		}
	}
	return failed
}

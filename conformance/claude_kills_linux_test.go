//go:build conformance

package conformance_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// births starts agents and knows when each was started and when it first wrote.
type births struct {
	session.Spawner
	born func(n int, pid int) // called for process n, from 1, before the host has it; nil: nobody

	mu  sync.Mutex
	all []*birth
}

type birth struct {
	pid   int
	at    time.Time
	first time.Time // byte; zero: none yet
}

func newBirths(temp string) *births {
	seams := kernel.NewSystem(kernel.Config{})
	return &births{Spawner: transport.NewProcessSpawner(transport.ProcessConfig{
		Clock: seams.Clock(), Exec: seams.Executor(), Rand: seams.Rand(), TempDir: temp,
	})}
}

// Spawn implements [session.Spawner].
func (b *births) Spawn(ctx context.Context, c session.Command) (session.Process, error) {
	at := time.Now()
	p, err := b.Spawner.Spawn(ctx, c)
	if err != nil {
		return nil, err
	}
	own := &birth{pid: p.PID(), at: at}
	b.mu.Lock()
	b.all = append(b.all, own)
	n, born := len(b.all), b.born
	b.mu.Unlock()
	if born != nil {
		born(n, own.pid)
	}
	return &timed{p, &firstByte{Reader: p.Stdout(), of: b, birth: own}}, nil
}

// last is a copy of the last process's.
func (b *births) last() birth {
	b.mu.Lock()
	defer b.mu.Unlock()
	return *b.all[len(b.all)-1]
}

// start is how long the first process took to its first byte.
func (b *births) start() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.all[0].first.Sub(b.all[0].at)
}

type timed struct {
	session.Process
	stdout io.Reader
}

func (t *timed) Stdout() io.Reader { return t.stdout }

type firstByte struct {
	io.Reader
	of    *births
	birth *birth
}

func (f *firstByte) Read(p []byte) (int, error) {
	n, err := f.Reader.Read(p)
	f.of.mu.Lock()
	defer f.of.mu.Unlock()
	if n > 0 && f.birth.first.IsZero() {
		f.birth.first = time.Now()
	}
	return n, err
}

// killRun is one kill in one state.
type killRun struct {
	*rig
	births *births
	client *sdk.Client
	asked  chan struct{} // closed when the gate or the tool of the host is called
	asks   atomic.Int32
	over   atomic.Bool // the call of the host has ended
	rnd    *rand.Rand
}

// kills describes a named state.
type kills struct {
	state  string
	reply  func(k *killRun) modelapi.Reply // to the first request of the turn that is killed
	reach  func(k *killRun)                // waits for the state
	holds  func(k *killRun) bool           // it still is
	spread time.Duration                   // the kill comes up to this later
	paid   int                             // how often the call has its effect
	after  bool                            // the message is sent after the kill; otherwise before
}

const killed = "kill"

func namedStates() []kills {
	pay := func(k *killRun, background bool) modelapi.Reply {
		return modelapi.Reply{Blocks: []modelapi.Block{modelapi.ToolUse("Bash", modelapi.Args{
			"command": "echo paid >> paid; " + k.holdCommand(), "description": "pay", "run_in_background": background,
		})}}
	}
	runs := func(k *killRun) {
		_, err := k.model.Wait(k.ctx, func(q modelapi.Request) bool { return q.Path == "/running" })
		require.NoError(k.t, err)
	}
	held := func(k *killRun) bool { return len(k.held()) > 0 }
	waits := func(k *killRun) { await(k.rig, "a call of the host", k.asked) }
	return []kills{
		{state: "starting", after: true}, // both are killed by the spawner, see once
		{state: "initializing", after: true, spread: 300 * time.Millisecond},
		{
			state: "idle", after: true, spread: 300 * time.Millisecond,
			reach: func(*killRun) {}, holds: func(k *killRun) bool { return k.client.State() == session.StateReady },
		},
		{
			state: "streaming", spread: time.Second,
			reply: func(*killRun) modelapi.Reply {
				return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text(strings.Repeat("word ", 200))}, Chunks: 200, ChunkDelay: 50 * time.Millisecond}
			},
			reach: func(k *killRun) {
				require.NoError(k.t, k.wire.await(k.ctx, func(s spoken) bool {
					return s.who == "agent" && strings.Contains(s.text, "text_delta") && strings.Contains(s.text, "word")
				}))
			},
			holds: func(k *killRun) bool { return k.client.State() == session.StateRunning },
		},
		{
			state: "in a Bash tool", spread: time.Second, paid: 1,
			reply: func(k *killRun) modelapi.Reply { return pay(k, false) }, reach: runs, holds: held,
		},
		{
			state: "permission pending", spread: time.Second,
			reply: func(k *killRun) modelapi.Reply {
				return modelapi.Reply{Blocks: []modelapi.Block{modelapi.ToolUse("Write", modelapi.Args{"file_path": k.at("paid"), "content": "paid\n"})}}
			},
			reach: waits, holds: func(k *killRun) bool { return !k.over.Load() },
		},
		{
			state: "MCP call in flight", spread: time.Second, paid: 1,
			reply: func(*killRun) modelapi.Reply {
				return modelapi.Reply{Blocks: []modelapi.Block{modelapi.ToolUse("mcp__srv__pay", modelapi.Args{})}}
			},
			reach: waits, holds: func(k *killRun) bool { return !k.over.Load() },
		},
		{
			state: "background task", after: true, spread: time.Second, paid: 1,
			reply: func(k *killRun) modelapi.Reply { return pay(k, true) },
			reach: func(k *killRun) {
				turn := k.send(k.client, "in the background [[scn:"+killed+"]]")
				result, err := turn.Result(k.ctx)
				require.NoError(k.t, err)
				require.Equal(k.t, "All done.", result.Text())
				runs(k)
			},
			holds: held,
		},
	}
}

// TestKillsInNamedStates kills the agent at a random moment of each state, TROUPE_KILLS
// times, and prints how often and what it took. Without TROUPE_KILLS it does so once in every
// other state. A kill that met another
// state is not counted, and is made again. The test is not parallel: it counts what this
// process has.
func TestKillsInNamedStates(t *testing.T) {
	each, err := strconv.Atoi(cmp.Or(os.Getenv("TROUPE_KILLS"), "1"))
	require.NoError(t, err)
	var before belongings
	var table strings.Builder
	var starts, resumes []time.Duration
	for i, state := range namedStates() {
		if i%2 != 0 && os.Getenv("TROUPE_KILLS") == "" {
			continue
		}
		counted, missed := 0, 0
		for attempt := 0; counted < each; attempt++ {
			require.Less(t, attempt, 4*each+4, "the state %s is not met", state.state)
			ok := t.Run(fmt.Sprintf("%s/%d", state.state, attempt), func(t *testing.T) {
				start, resume, hit := state.once(t, rand.New(rand.NewPCG(uint64(i), uint64(attempt))))
				if !hit {
					missed++
					return
				}
				counted++
				starts, resumes = append(starts, start), append(resumes, resume)
			})
			require.True(t, ok)
			if i == 0 && attempt == 0 { // what is made once is there
				before = ours(t)
			}
		}
		fmt.Fprintf(&table, "%-20s %3d kills, %d of other states not counted\n", state.state, counted, missed)
	}
	// The servers of the model wait for their connections. Goroutines whose last signal was
	// received may still be about to end; they are counted here, on the test's own.
	left := ours(t)
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(10 * time.Second); !left.within(before) && time.Now().Before(end); left = ours(t) {
		<-tick.C
	}
	if !left.within(before) {
		stacks := make([]byte, 1<<20)
		t.Errorf("left: %+v, before: %+v\n%s", left, before, stacks[:goruntime.Stack(stacks, true)])
	}
	slices.Sort(starts)
	slices.Sort(resumes)
	start, resume, worst := starts[len(starts)/2], resumes[len(resumes)/2], resumes[len(resumes)-1]
	t.Logf("each message had one final result, each effect happened once at most, and the model knew of it; no process, goroutine, descriptor or file was left\n%s"+
		"from the kill to the next byte: median %v, worst %v; the agent's own start: median %v", &table,
		resume.Round(time.Millisecond), worst.Round(time.Millisecond), start.Round(time.Millisecond))
	if each >= 10 { // fewer measure what else the machine does
		assert.LessOrEqual(t, resume, start+250*time.Millisecond)
		assert.LessOrEqual(t, worst, 5*time.Second)
	}
}

// belongings are what this process has.
type belongings struct{ goroutines, descriptors int }

func (b belongings) within(before belongings) bool {
	return b.goroutines <= before.goroutines && b.descriptors <= before.descriptors
}

func ours(t *testing.T) belongings {
	t.Helper()
	open, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return belongings{goruntime.NumGoroutine(), len(open)}
}

// once is one session with one kill. It reports how long the agent's own start took, how
// long the resumed one took from the kill to its first byte, and whether the kill met the
// state.
func (s kills) once(t *testing.T, rnd *rand.Rand) (start, resume time.Duration, hit bool) {
	r := newRig(t)
	temp := t.TempDir()
	k := &killRun{rig: r, births: newBirths(temp), asked: make(chan struct{}), rnd: rnd}
	r.wire.Spawner = k.births
	calls := atomic.Int32{}
	paid := atomic.Int32{}
	reply := func(modelapi.Call) modelapi.Reply {
		if calls.Add(1) == 1 && s.reply != nil {
			return s.reply(k)
		}
		return modelapi.Reply{Blocks: []modelapi.Block{modelapi.Text("All done.")}}
	}
	r.model.Script(killed, reply, reply, reply, reply, reply, reply)
	inHost := func(ctx context.Context) {
		if k.asks.Add(1) == 1 {
			close(k.asked)
		}
		<-ctx.Done()
		k.over.Store(true)
	}
	o := r.options()
	o.MaxRestarts, o.RestartBackoff = 5, session.Backoff{Initial: 1, Max: 1}
	o.IncludePartialMessages = s.state == "streaming"
	o.AllowedTools = []string{"Bash", "mcp__srv"}
	o.SDKMCPServers = []*sdk.MCPServer{r.server("srv", sdk.NewTool("pay", "Pays.", func(ctx context.Context, _ struct{}) (*sdk.ToolResult, error) {
		paid.Add(1)
		inHost(ctx)
		return nil, ctx.Err()
	}))}
	o.CanUseTool = func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		inHost(ctx)
		return sdk.Allow(), nil
	}
	k.client = r.connect(o)
	_, first := r.ask(k.client, "my number is 4711 [[scn:echo noted]]")
	require.False(t, first.Failed())
	delay := time.Duration(0)
	if s.spread > 0 {
		delay = time.Duration(rnd.Int64N(int64(s.spread)))
	}
	var died time.Time
	var turn *sdk.Turn
	switch s.state {
	case "starting", "initializing":
		died, hit = k.killNext(s.state, delay, &turn)
	default:
		if !s.after {
			turn = r.send(k.client, "do it [[scn:"+killed+"]]")
		}
		s.reach(k)
		time.Sleep(delay) // the random point
		hit = s.holds(k)
		died = time.Now()
		r.wire.note("process", agentKilled)
		require.NoError(t, syscall.Kill(k.births.last().pid, syscall.SIGKILL))
		if s.after {
			turn = r.send(k.client, "do it [[scn:"+killed+"]]")
		}
	}
	result, err := turn.Result(r.ctx)
	require.NoError(t, err)
	if hit {
		assert.False(t, result.Failed())
		assert.Equal(t, "All done.", result.Text())
		assert.True(t, result.Recovered || s.after) // what follows a kill may be written before it is seen
	}
	assert.Equal(t, first.SessionID, result.SessionID)
	request := string(r.modelSaw(killed).Body)
	assert.Contains(t, request, "my number is 4711")
	file, _ := os.ReadFile(r.at("paid")) // it need not exist
	effects := bytes.Count(file, []byte("paid")) + int(paid.Load())
	assert.LessOrEqual(t, effects, 1)
	if hit {
		assert.Equal(t, s.paid, effects)
	}
	if effects > 0 { // the model is told of it: by the history, or by the message that continues
		assert.Contains(t, request, map[bool]string{true: "mcp__srv__pay", false: "echo paid"}[paid.Load() > 0])
	}
	resume = k.births.last().first.Sub(died)

	_, next := r.ask(k.client, "and now? [[scn:text]]")
	assert.False(t, next.Failed())
	assert.NotEqual(t, "All done.", next.Text(), "the result of the message before")
	r.close(k.client)
	left, err := os.ReadDir(temp)
	require.NoError(t, err)
	assert.Empty(t, left, "temporary files")
	results := map[bool]int{} // by whether the agent began the turn itself
	for _, s := range r.wire.said() {
		f, err := protocol.ParseFrame([]byte(s.text))
		if s.who != "agent" || err != nil {
			continue
		}
		if m, ok := protocol.DecodeMessage(f).(*sdk.ResultMessage); ok {
			results[m.Origin != nil]++
		}
	}
	messages := 3
	if s.state == "background task" { // the turn that begins the task has one, too
		messages++
	}
	assert.Equal(t, messages, results[false], "results of messages")
	t.Logf("%s: killed after %v, hit %v, resumed after %v, own start %v",
		s.state, delay.Round(time.Millisecond), hit, resume.Round(time.Millisecond), k.births.start().Round(time.Millisecond))
	return k.births.start(), resume, hit
}

// killNext kills the idle agent, and the next one while it starts or initializes for a
// message. The state starting lasts as long as the spawner has the process.
func (k *killRun) killNext(state string, delay time.Duration, turn **sdk.Turn) (died time.Time, hit bool) {
	type death struct {
		at  time.Time
		hit bool
	}
	dead := make(chan death, 1)
	shoot := func(pid int, want session.State) {
		d := death{hit: k.client.State() == want, at: time.Now()}
		k.wire.note("process", agentKilled)
		if syscall.Kill(pid, syscall.SIGKILL) != nil {
			d.hit = false
		}
		dead <- d
	}
	k.births.mu.Lock()
	k.births.born = func(n, pid int) {
		switch {
		case n != 2:
		case state == "starting":
			time.Sleep(time.Duration(k.rnd.Int64N(int64(100 * time.Millisecond))))
			shoot(pid, session.StateRecovering) // a start that follows a death is called that
		default:
			go func() { time.Sleep(delay); shoot(pid, session.StateInitializing) }()
		}
	}
	k.births.mu.Unlock()
	k.kill()
	k.eventually("the death", func(e session.Event) bool { _, ok := e.(*session.Recovering); return ok })
	*turn = k.send(k.client, "do it [[scn:"+killed+"]]")
	d := await(k.rig, "the second death", dead)
	return d.at, d.hit
}

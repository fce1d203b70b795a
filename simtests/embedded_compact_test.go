package simtests_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/simtests"
)

// forgetful is a model with a small window, which works in so many steps. Its summaries say how
// far it has come, and nothing of the task: that is for the agent to keep.
type forgetful struct {
	w     *simtests.World
	task  string // of the turn: the model must read it in each request
	steps int
	full  func(r *modeltest.Request) bool // whether its answer fills the window

	sums, stubs int

	// By session: the summary that stands at the beginning, what it has to name, and what the next one has.
	begins    map[string]string
	due, next map[string][]string
}

// listed checks that a summary names what the model has put on its list before it.
func (f *forgetful) listed(r *modeltest.Request) {
	first := r.Messages[0].Blocks[0].Text
	if before := f.begins[r.User]; first != before && strings.Contains(first, "continued from a previous conversation") {
		f.due[r.User] = f.next[r.User]
	}
	f.begins[r.User] = first
	sum, _, _ := strings.Cut(first, "The newest messages follow")
	for _, what := range f.due[r.User] {
		if !strings.Contains(sum, what) {
			f.w.Errorf("task: request %d has a summary without %q, which is on the list: %s", r.N, what, sum)
		}
	}
}

// forget is the death of the host: an earlier summary may be the last one.
func (f *forgetful) forget() {
	clear(f.begins)
	clear(f.due)
	clear(f.next)
}

// lists notes what a summary that is asked for has to name.
func (f *forgetful) lists(r *modeltest.Request) {
	f.next[r.User] = slices.Clone(f.due[r.User])
	for _, m := range r.Messages[:len(r.Messages)-1] {
		for _, b := range m.Blocks {
			if _, subject, ok := strings.Cut(b.Text, " created successfully: "); ok && b.Kind == model.ToolResult && strings.HasPrefix(b.Text, "Task #") {
				f.next[r.User] = append(f.next[r.User], subject)
			}
		}
	}
}

var (
	progress = regexp.MustCompile(`Progress: (\d+) steps`)
	prompted = regexp.MustCompile(`(^|\n)work on T-\d+$`)
)

// said is how many answers the turn has, also those that a summary stands for.
func (f *forgetful) said(r *modeltest.Request) (n int) {
	for i, m := range r.Messages {
		if m.Role == model.Assistant {
			n++
			continue
		}
		for _, b := range m.Blocks {
			if sum := progress.FindStringSubmatch(b.Text); b.Kind == model.Text && i == 0 && sum != nil {
				n, _ = strconv.Atoi(sum[1]) // digits
			}
			if b.Kind == model.Text && prompted.MatchString(b.Text) {
				n = 0
			}
		}
	}
	return n
}

func (f *forgetful) answer(r *modeltest.Request) *modeltest.Answer {
	said := f.said(r)
	if strings.Contains(r.Prompt(), "You now write the summary") {
		f.sums++
		f.lists(r)
		return modeltest.Say(modeltest.Thinking("what was it"), modeltest.Text(fmt.Sprintf("<summary>Progress: %d steps</summary>", said)))
	}
	body := string(r.Body)
	if !strings.Contains(body, f.task) {
		f.w.Errorf("task: request %d says nothing of the task %q", r.N, f.task)
	}
	if first := r.Messages[0].Blocks[0].Text; strings.Contains(first, "continued from a previous conversation") && !strings.Contains(first, "gres") { // a fault may have doubled its pieces
		f.w.Errorf("task: request %d has a summary without what the model wrote", r.N)
	}
	f.listed(r)
	sum, rest, inTurn := strings.Cut(r.Messages[0].Blocks[0].Text, "The newest messages follow")
	asked := slices.ContainsFunc(r.Messages[1:], func(m model.Message) bool {
		return slices.ContainsFunc(m.Blocks, func(b model.Block) bool { return m.Role == model.User && b.Kind == model.Text })
	})
	if inTurn && !asked && strings.Contains(sum, f.task) && !strings.Contains(rest, "Go on from where it left off") {
		f.w.Errorf("task: request %d has the task in its summary alone, and the model is not told to go on", r.N)
	}
	if strings.Contains(body, "This result was left out") {
		f.stubs++
	}
	usage := model.Usage{Input: 3000 + r.N, Output: 5}
	if f.full(r) {
		usage.Input = 11_000 + r.N
	}
	blocks := []model.Block{modeltest.Text("done")}
	if said < f.steps {
		blocks = []model.Block{modeltest.Call("Bash", map[string]any{"command": fmt.Sprintf("cat %d", r.N)}), modeltest.Call("Bash", map[string]any{"command": fmt.Sprintf("pay %d", r.N)})}
		if said%3 == 1 {
			blocks = append(blocks, modeltest.Call("Read", map[string]any{"file_path": "a.txt"}), modeltest.Call("TaskCreate", map[string]any{"subject": fmt.Sprint("step ", r.N), "description": "d"}))
		}
	}
	return &modeltest.Answer{Blocks: blocks, Usage: usage}
}

// forgetfulAgent is an agent with such a model.
func forgetfulAgent(w *simtests.World) (*forgetful, *simtests.Embedded) {
	f := &forgetful{w: w, steps: 2 + w.Rand().IntN(8), begins: map[string]string{}, due: map[string][]string{}, next: map[string][]string{}}
	mode, much := w.Rand().IntN(3), 3000
	f.full = func(r *modeltest.Request) bool {
		switch mode {
		case 0: // at every step
			return true
		case 1: // when there is something to leave out
			return len(r.Messages) > 10 && !strings.Contains(string(r.Body), "This result was left out")
		}
		return w.Rand().IntN(3) == 0
	}
	if mode == 0 && w.Rand().IntN(2) == 0 {
		much = 10
	}
	e := &simtests.Embedded{
		Server: &modeltest.Server{Script: f.answer}, OpenAI: w.Rand().IntN(3) == 0, Rests: w.Rand().IntN(2) == 0, Unasked: []string{"cat "},
		Run: func(command string) simtests.Ran {
			return simtests.Ran{Output: command + "\n" + strings.Repeat("line\n", much/5), Takes: time.Duration(w.Rand().IntN(2)) * time.Second}
		},
	}
	e.Config.Window, e.Config.MaxTokens = 12_000, 1000
	return f, e
}

// forgetfulTalk is one client of it. It returns the session's id.
func forgetfulTalk(w *simtests.World, f *forgetful, e *simtests.Embedded, dir, resume string, calm, fork bool) string {
	o := &sdk.Options{
		OnEvent: func(r sdk.EventRecord) {
			if e, ok := r.Event.(*session.TurnStalled); ok {
				w.Errorf("liveness: a turn stands still for %v, and nothing that happens here takes so long", e.Idle)
			}
		},
		Cwd: dir, Resume: resume, ForkSession: fork && resume != "", MaxTurns: sdk.Some(30), CanUseTool: allowAll,
	}
	if !calm {
		o.MaxRestarts = w.Rand().IntN(3)
	}
	if o.MaxRestarts > 0 && w.Rand().IntN(2) == 0 {
		o.Recovery = []session.Recovery{session.RecoverContinue, session.RecoverRerun, session.RecoverReport}[w.Rand().IntN(3)]
	}
	if w.Rand().IntN(3) == 0 {
		o.Hooks = []sdk.Hook{
			sdk.OnPreCompact(func(context.Context, *protocol.PreCompactInput) (sdk.BlockOutput, error) {
				if !calm && w.Rand().IntN(4) == 0 {
					w.Sometimes("a hook blocks a compaction", true)
					return sdk.BlockOutput{Decision: protocol.DecisionBlock, Reason: "not now"}, nil
				}
				return sdk.BlockOutput{}, nil
			}),
			sdk.OnPostCompact(func(context.Context, *protocol.PostCompactInput) (sdk.HookOutput, error) {
				return sdk.HookOutput{}, nil
			}),
		}
	}
	c, err := w.DialEmbedded(o, e)
	if calm {
		require.NoError(w, err)
	}
	if err != nil {
		return ""
	}
	w.Go(func() { _ = w.Read(c, nil) }) // its error is that of the session
	for i := range 1 + w.Rand().IntN(3) {
		prompt := fmt.Sprintf("work on T-%d", w.Rand().IntN(1_000_000_000))
		if i > 0 && w.Rand().IntN(4) == 0 {
			prompt = "/compact"
		} else {
			f.task = prompt
		}
		turn, err := c.Send(w.Context(), sdk.UserText(prompt))
		if err != nil {
			break
		}
		ctx, cancel := context.WithTimeout(w.Context(), 3*time.Hour) // longer than all limits together
		if !calm && w.Rand().IntN(4) == 0 {
			w.Sleep(time.Duration(w.Rand().IntN(8000)) * time.Millisecond)
			_, _ = c.Interrupt(ctx) // it may have died
		}
		r, err := turn.Result(ctx)
		if ctx.Err() != nil {
			w.Errorf("liveness: a turn has not ended in three hours")
		}
		cancel()
		if calm {
			require.NoError(w, err)
			if prompt == "/compact" { // there may be nothing behind the last one
				assert.Contains(w, []string{"", "Not enough messages to compact."}, r.Result)
				assert.Zero(w, r.NumTurns)
			} else {
				assert.Equal(w, "done", r.Result)
			}
		}
		if w.Rand().IntN(4) == 0 {
			_ = c.Passivate(w.Context()) // it may be in use, or over
		}
	}
	_ = c.Close(w.Context()) // one that has died says so
	return c.SessionID()
}

// compactWork is a user of agents whose window is small. calm: nothing goes wrong.
func compactWork(calm bool) func(w *simtests.World) {
	return func(w *simtests.World) {
		dir := workplace(w)
		f, e := forgetfulAgent(w)
		if !calm {
			w.Faults(embeddedWeather()...)
			tooLong := modeltest.Fault{Status: 400, Type: "invalid_request_error", Message: "prompt is too long: 205000 tokens > 200000 maximum"}
			w.Faults(simtests.ModelFault(0.05, "ModelTooLong", func(*rand.Rand) modeltest.Fault { return tooLong }))
			if w.Rand().IntN(2) == 0 {
				e.DieAt(1+w.Rand().IntN(200), w.Rand().IntN(2) == 0)
			}
		}
		id, fork := "", false
		for range 1 + w.Rand().IntN(3) {
			next := forgetfulTalk(w, f, e, dir, id, calm, fork)
			if next == "" {
				break
			}
			id, fork = next, w.Rand().IntN(3) == 0
		}
		w.Run()
		if after := e.AfterDeath(); after != nil && id != "" {
			f.forget()
			w.Sometimes("the host dies among compactions, and the next one goes on", forgetfulTalk(w, f, after, dir, id, false, false) != "")
		}
		w.Run()
		w.Sometimes("a summary takes the place of a conversation", f.sums > 0)
		w.Sometimes("old results are left out", f.stubs > 0)
	}
}

func TestCompactionInACalmWorld(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(5), Cost: 10, Twice: 1, First: 3_000_000}, compactWork(true))
}

func TestCompaction(t *testing.T) {
	t.Parallel()
	simtests.Explore(t, simtests.Config{Seeds: fewer(20), Cost: 5, First: 4_000_000}, compactWork(false))
}

// The host dies at each moment of two turns with a compaction at every step, and the next one
// continues the same session. With TROUPE_SEEDS=1000 and more it is each of the 500 or so, with
// less it is fewer of them.
func TestADeathAtEachMomentOfCompactions(t *testing.T) {
	t.Parallel()
	seeds, err := strconv.Atoi(os.Getenv("TROUPE_SEEDS"))
	if err != nil {
		seeds = fewer(50)
	}
	step := max(1001/max(seeds, 1), 1) | 1 // odd, so that moments of both scripts come
	for moment, died := 1, true; died; moment += step {
		simtests.Explore(t, simtests.Config{Seeds: 1, Cost: 1000, Twice: -1, Shrink: -1, First: 5_000_000 + uint64(moment%2)}, func(w *simtests.World) {
			dir := workplace(w)
			f, e := forgetfulAgent(w)
			f.full, f.steps = func(*modeltest.Request) bool { return true }, 4
			e.DieAt(moment, moment%4 < 2)
			id := forgetfulTalk(w, f, e, dir, "", true, false)
			w.Run()
			after := e.AfterDeath()
			if died = after != nil; died {
				f.forget()
				forgetfulTalk(w, f, after, dir, id, false, false)
				w.Run()
			}
		})
	}
}

// TestPlantedBugsOfCompaction is for tools/simmutate.
func TestPlantedBugsOfCompaction(t *testing.T) {
	t.Parallel()
	planted(t, 5, compactWork(false))
}

//go:build conformance

package conformance_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance"
	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// rig is what one test has to itself: a model, a directory, a runtime, and a
// record of all that its agents and the host said to each other.
type rig struct {
	t *testing.T
	release
	ctx   context.Context // bounds the whole test
	model *modelapi.Server
	rt    *runtime.Runtime
	wire  *wire
	// root holds the agent's home and its working directory. Every process of
	// the agent names it in its arguments, and no other process does.
	root, home, dir string
	// hosted: the agent was told that it runs on its vendor's machines, and sends
	// messages and fields that no other session has.
	hosted bool

	mu     sync.Mutex
	events []sdk.EventRecord
	noted  chan struct{} // closed and replaced with each new event
}

// newRig is one with the release that the tests are written against.
func newRig(t *testing.T) *rig {
	t.Helper()
	return releases()[0].rig(t)
}

func (rel release) rig(t *testing.T) *rig {
	t.Helper()
	root := t.TempDir()
	r := &rig{t: t, release: rel, root: root, home: filepath.Join(root, "home"), dir: filepath.Join(root, "work"), wire: newWire(), noted: make(chan struct{})}
	require.NoError(t, os.Mkdir(r.home, 0o700))
	require.NoError(t, os.Mkdir(r.dir, 0o700))
	r.model = startModel(t, modelapi.Config{WorkDir: r.dir})
	ctx, cancel := context.WithTimeout(t.Context(), testLimit)
	t.Cleanup(cancel)
	r.ctx = ctx
	// The rig records what its spawner starts, and agents of a spawner have no leases by default.
	rt, err := runtime.New(runtime.Config{Leases: runtime.LocalLeases{Dir: t.TempDir()}})
	require.NoError(t, err)
	r.rt = rt
	t.Cleanup(r.end)
	return r
}

// end checks from outside that nothing is left, whatever the test did.
func (r *rig) end() {
	for _, s := range r.rt.Sessions() {
		select {
		case <-s.Done():
		default:
			assert.True(r.t, r.t.Failed(), "session %s was left open", s.ID())
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), turnLimit)
	defer cancel()
	assert.NoError(r.t, r.rt.Shutdown(ctx))
	r.nothingRuns()
	if !r.hosted {
		r.wire.understood(r.t)
	}
	r.wire.answered(r.t)
	if r.t.Failed() {
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, e := range r.events {
			r.t.Logf("event %s %v", e.At.Format("05.000"), e.Event)
		}
		r.t.Logf("the wire:\n%s", r.wire)
	}
	for _, p := range processesNaming(r.root) {
		p.kill()
	}
}

// nothingRuns looks for the agent's processes at this instant.
func (r *rig) nothingRuns() {
	r.t.Helper()
	assert.Empty(r.t, processesNaming(r.root), "processes left of the agent")
}

// options are those of an agent that is offline and confined to the rig.
func (r *rig) options() *sdk.Options {
	env := map[string]string{}
	for _, kv := range conformance.OfflineEnv(r.model.URL(), r.home) {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	return &sdk.Options{
		Backend: sdk.Claude(sdk.ClaudeConfig{Path: r.agent.CLI(r.t)}),
		Runtime: r.rt, Spawner: r.wire,
		Cwd: r.dir, CleanEnv: true, Env: env, SettingSources: sdk.None(), SystemPrompt: sdk.PromptText(""),
		AdditionalDirectories: []string{r.dir}, // an argument that names the rig
		OnEvent:               r.record,
		// On a busy machine an agent takes seconds to leave, and is not to be killed for that.
		Graces: session.Graces{Terminate: turnLimit}, CloseTimeout: turnLimit,
	}
}

func (r *rig) record(e sdk.EventRecord) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
	close(r.noted)
	r.noted = make(chan struct{})
}

// eventually waits for an event, which may have come already.
func (r *rig) eventually(what string, match func(session.Event) bool) {
	r.t.Helper()
	r.awaitEvent(what, func(e sdk.EventRecord) bool { return match(e.Event) })
}

func (r *rig) awaitEvent(what string, match func(sdk.EventRecord) bool) {
	r.t.Helper()
	for {
		r.mu.Lock()
		found := slices.ContainsFunc(r.events, match)
		noted := r.noted
		r.mu.Unlock()
		if found {
			return
		}
		await(r, what, noted)
	}
}

// connect starts an agent.
func (r *rig) connect(o *sdk.Options) *sdk.Client {
	r.t.Helper()
	c := sdk.NewClient(o)
	require.NoError(r.t, c.Connect(r.ctx))
	return c
}

// close ends the agent, of which nothing may be left when Close returns.
func (r *rig) close(c *sdk.Client) {
	r.t.Helper()
	require.NoError(r.t, c.Close(r.ctx))
	r.nothingRuns()
	r.over(c.ID())
}

// over waits for the last event of a session that has ended. Events come on a goroutine that
// a close does not wait for. "": of any session.
func (r *rig) over(id string) {
	r.t.Helper()
	r.awaitEvent("the end of the events", func(e sdk.EventRecord) bool {
		_, ended := e.Event.(*session.Ended)
		return ended && (id == "" || e.Session == id)
	})
}

func (r *rig) send(c *sdk.Client, prompt string) *sdk.Turn {
	r.t.Helper()
	turn, err := c.Send(r.ctx, sdk.UserText(prompt))
	require.NoError(r.t, err)
	return turn
}

// ask sends a prompt and returns all messages of its turn, with the result.
func (r *rig) ask(c *sdk.Client, prompt string) ([]sdk.Message, *sdk.ResultMessage) {
	r.t.Helper()
	all, err := sdk.Collect(r.send(c, prompt).Messages(r.ctx))
	require.NoError(r.t, err)
	require.NotEmpty(r.t, all)
	result, ok := all[len(all)-1].(*sdk.ResultMessage)
	require.True(r.t, ok, "the last message is %T", all[len(all)-1])
	return all, result
}

// once runs one prompt from the start of the agent to its end.
func (r *rig) once(o *sdk.Options, prompt string) ([]sdk.Message, *sdk.ResultMessage) {
	r.t.Helper()
	c := r.connect(o)
	all, result := r.ask(c, prompt)
	r.close(c)
	return all, result
}

// reader reads a client's messages one by one.
type reader struct {
	r    *rig
	next func() (sdk.Message, error, bool)
	seen []sdk.Message
}

func (r *rig) read(c *sdk.Client) *reader {
	next, stop := iter.Pull2(c.Messages(r.ctx))
	r.t.Cleanup(stop)
	return &reader{r: r, next: next}
}

// until reads up to and with the first message that matches.
func (rd *reader) until(what string, match func(sdk.Message) bool) sdk.Message {
	rd.r.t.Helper()
	for {
		m, err, ok := rd.next()
		require.True(rd.r.t, ok, "the session ended before %s", what)
		require.NoError(rd.r.t, err, "waiting for %s", what)
		rd.seen = append(rd.seen, m)
		if match(m) {
			return m
		}
	}
}

// rest reads to the end and returns its error.
func (rd *reader) rest() error {
	for {
		m, err, ok := rd.next()
		if !ok || err != nil {
			return err
		}
		rd.seen = append(rd.seen, m)
	}
}

func isA[M sdk.Message](m sdk.Message) bool {
	_, ok := m.(M)
	return ok
}

// only picks the messages of one type.
func only[M sdk.Message](all []sdk.Message) []M {
	var picked []M
	for _, m := range all {
		if m, ok := m.(M); ok {
			picked = append(picked, m)
		}
	}
	return picked
}

// outline is the course of the main agent's turns, without what is said about
// state on the way.
func outline(all []sdk.Message) []string {
	var kinds []string
	for _, m := range all {
		if m.Meta().ParentToolUseID != "" {
			continue
		}
		switch m := m.(type) {
		case *sdk.InitMessage:
			kinds = append(kinds, "init")
		case *sdk.AssistantMessage:
			for _, b := range m.Message.Content {
				kinds = append(kinds, "assistant "+b.BlockType())
			}
		case *sdk.UserMessage:
			for _, b := range m.Message.Content {
				kinds = append(kinds, "user "+b.BlockType())
			}
		case *protocol.CompactBoundaryMessage:
			kinds = append(kinds, "compact_boundary")
		case *sdk.ResultMessage:
			kinds = append(kinds, "result "+m.Subtype)
		}
	}
	return kinds
}

// toolResult is the one tool result among the messages.
func (r *rig) toolResult(all []sdk.Message) *protocol.ToolResultBlock {
	r.t.Helper()
	var found []*protocol.ToolResultBlock
	for _, m := range all {
		found = append(found, sdk.ToolResults(m)...)
	}
	require.Len(r.t, found, 1, "tool results")
	return found[0]
}

// modelSaw is the last request of a scenario.
func (r *rig) modelSaw(scenario string) modelapi.Request {
	r.t.Helper()
	var last *modelapi.Request
	for _, q := range r.model.Requests() {
		if q.Endpoint == modelapi.Messages && q.Marker.Scenario == scenario {
			last = &q
		}
	}
	require.NotNil(r.t, last, "the model was never asked about %s", scenario)
	return *last
}

// texts joins all that a request says in words.
func texts(q modelapi.Request) string {
	var all []string
	for _, m := range q.Messages {
		for _, c := range m.Content {
			all = append(all, m.Role+": "+c.Text)
		}
	}
	return strings.Join(all, "\n")
}

// at is a path in the agent's working directory.
func (r *rig) at(name string) string { return filepath.Join(r.dir, name) }

// shell is a call of the Bash tool.
func shell(command string) modelapi.Block {
	return modelapi.ToolUse("Bash", modelapi.Args{"command": command, "description": "run"})
}

// touch scripts a turn that makes a file, by which a test sees from outside
// whether the tool ran. It returns the prompt.
func (r *rig) touch(name string) string {
	r.model.Script("touch", modelapi.Say(shell("touch "+name)), modelapi.Say(modelapi.Text("Touch done.")))
	return "make a file [[scn:touch]]"
}

// hold scripts a turn whose shell command does not end by itself. It returns
// the prompt, and what waits until the command runs.
func (r *rig) hold() (prompt string, running func()) {
	r.model.Script("hold", modelapi.Say(r.holding(nil)), modelapi.Say(modelapi.Text("Hold done.")))
	return "take your time [[scn:hold]]", func() {
		r.t.Helper()
		_, err := r.model.Wait(r.ctx, func(q modelapi.Request) bool { return q.Path == "/running" })
		require.NoError(r.t, err, "the command never ran")
		require.NotEmpty(r.t, r.held(), "the command cannot be seen")
	}
}

// holding is a call of the Bash tool that tells the model's server that it
// runs, and then does not end by itself.
func (r *rig) holding(more modelapi.Args) modelapi.Block {
	args := modelapi.Args{"command": r.holdCommand(), "description": "hold"}
	maps.Copy(args, more)
	return modelapi.ToolUse("Bash", args)
}

func (r *rig) holdCommand() string {
	return fmt.Sprintf("exec 3<>/dev/tcp/%s; printf 'GET /running HTTP/1.0\\r\\n\\r\\n' >&3; (exec -a %s/held sleep 300)",
		strings.Replace(strings.TrimPrefix(r.model.URL(), "http://"), ":", "/", 1), r.root)
}

// held are the processes of the command of [rig.hold].
func (r *rig) held() []process { return processesNaming(r.root + "/held") }

// failed are the callbacks that the events report as failed, of sessions that are closed.
func (r *rig) failed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, e := range r.events {
		if text := fmt.Sprint(e.Event); strings.Contains(text, " callback for ") {
			all = append(all, text)
		}
	}
	return all
}

// command is what a Bash call would run. It is for callbacks, which must not
// end the test.
func command(t *testing.T, input json.RawMessage) string {
	t.Helper()
	var in struct {
		Command string `json:"command"`
	}
	assert.NoError(t, json.Unmarshal(input, &in))
	return in.Command
}

// input is that of a Bash call.
func input(t *testing.T, command string) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(map[string]string{"command": command})
	assert.NoError(t, err)
	return b
}

// await waits for something that a callback tells.
func await[T any](r *rig, what string, c <-chan T) T {
	r.t.Helper()
	select {
	case v := <-c:
		return v
	case <-r.ctx.Done():
		require.Fail(r.t, "gave up waiting", "for %s: %v", what, context.Cause(r.ctx))
		panic("unreachable")
	}
}

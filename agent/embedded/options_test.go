package embedded_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/transcript/store"
)

// works are the options that do with this agent what they do with others.
func works() []string {
	return strings.Fields(`Backend Runtime CanUseTool Policy PermissionTimeout Unattended Hooks SDKMCPServers OnAuthExpired OnElicitation OnEvent
		OnMessage Stderr Tracer Limits CloseTimeout Graces InterruptGrace MaxRestarts RestartWindow EqualDeaths RestartBackoff
		Recovery DecideRecovery PassivateAfter Supervisors Children MaxLine Discard Cwd Isolation Env UnsetEnv CleanEnv Model
		PlanModeInstructions Thinking MaxThinkingTokens Effort MaxTurns MaxBudgetUSD InitializeTimeout SystemPrompt VerbatimPrompts Tools AllowedTools
		DisallowedTools PermissionMode AllowDangerouslySkipPermissions Continue Resume ForkSession ResumeSessionAt ResumeDropsTurn
		SessionID PersistSession SessionStore SessionStoreOptions SettingSources AdditionalDirectories StrictMCPConfig
		IncludePartialMessages ResolveModelTimeout MCPServers MCPConfigPath MCPServersDelivery SDKMCPServerConfigs OutputFormat OutputRepairs
		EnableFileCheckpointing Agents ForwardSubagentText FallbackModel ResolveModel`)
}

// others are the options of another vendor, which this agent has no more than Claude Code.
func others() []string {
	return strings.Fields(`FetchJobToken FetchServiceAccountToken ShouldGenerateMemory ShouldReviewSkills
		ResolveSessionArtifacts Auth Proxy VPCEndpoint ModelRequestPatches GoalMaxTurns CustomContext Memory Evolution PlanMode
		SecurityScan Extensions AllowedMCPServerNames ExperimentalCloudAgent`)
}

// Each option either works or is an error before anything starts: none does nothing. The
// guide names those that are errors, but for those of another vendor.
func TestEachOption(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../docs/embedded.md")
	require.NoError(t, err)
	_, section, found := strings.Cut(string(guide), "## Options that are errors")
	require.True(t, found)
	all := reflect.TypeFor[sdk.Options]()
	known := works()
	for i := range all.NumField() {
		name := all.Field(i).Name
		inGuide := strings.Contains(section, "`"+name+"`")
		if at := slices.Index(known, name); at >= 0 {
			known = slices.Delete(known, at, at+1)
			assert.Equal(t, name == "SettingSources" || name == "EnableFileCheckpointing", inGuide, "%s in the guide", name)
			continue
		}
		_, o := started(t)
		fill(t, reflect.ValueOf(o).Elem().Field(i), 3)
		_, err := connect(t, o)
		var e *sdk.ConfigError
		require.ErrorAs(t, err, &e, "%s does nothing", name)
		foreign := slices.Contains(others(), name)
		assert.Equal(t, !foreign, inGuide, "%s in the guide", name)
		if !foreign {
			assert.Contains(t, err.Error(), "option "+name)
		}
	}
	assert.Empty(t, known, "no such options")
}

// fill sets a value to one that is not its zero value.
func fill(t *testing.T, v reflect.Value, depth int) {
	t.Helper()
	switch x := v.Addr().Interface().(type) {
	case *session.Set:
		*x = sdk.Only("project")
		return
	case *json.RawMessage:
		*x = json.RawMessage(`{"a":1}`)
		return
	case *sdk.Opt[bool]:
		*x = sdk.Some(true)
		return
	case *sdk.Opt[int]:
		*x = sdk.Some(1)
		return
	case *session.Spawner:
		*x = noSpawner{}
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int64:
		v.SetInt(1)
	case reflect.Func:
		v.Set(reflect.MakeFunc(v.Type(), func([]reflect.Value) []reflect.Value { panic("called") }))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fill(t, v.Index(0), depth-1)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fill(t, key, depth-1)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() && depth > 0 {
				fill(t, v.Field(i), depth-1)
			}
		}
	default:
		require.Fail(t, "no value", "%s", v.Type())
	}
}

type noSpawner struct{}

func (noSpawner) Spawn(context.Context, session.Command) (session.Process, error) {
	return nil, errors.New("no")
}

// mortal is a backend whose agents can be killed.
type mortal struct {
	backend.Backend
	mu   sync.Mutex
	port agent.Port // of the last one
}

func (m *mortal) Agent(in *dialect.Input) (backend.Agent, error) {
	a, err := m.Backend.Agent(in)
	alive := a.NewProgram
	a.NewProgram = func(s backend.Seams) agent.Program { return &mortalProgram{alive(s), m} }
	return a, err
}

// kill ends the agent as SIGKILL ends a process.
func (m *mortal) kill() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.port.(agent.Signaller).Signal(agent.ErrKilled)
}

type mortalProgram struct {
	agent.Program
	m *mortal
}

func (p *mortalProgram) Serve(l agent.Launch, port agent.Port) agent.Exit {
	p.m.mu.Lock()
	p.m.port = port
	p.m.mu.Unlock()
	return p.Program.Serve(l, port)
}

func (p *mortalProgram) ReadSession(l agent.Launch, id string) ([]byte, error) {
	return p.Program.(agent.Archive).ReadSession(l, id)
}

func perished(o *sdk.Options) *mortal {
	m := &mortal{Backend: o.Backend.(backend.Backend)}
	o.Backend = m
	return m
}

func ask(t *testing.T, c *sdk.Client, prompt string) *sdk.ResultMessage {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	turn, err := c.Send(ctx, sdk.UserText(prompt))
	require.NoError(t, err)
	r, err := turn.Result(ctx)
	require.NoError(t, err)
	return r
}

func open(t *testing.T, o *sdk.Options) *sdk.Client {
	t.Helper()
	c, err := connect(t, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = c.Close(context.WithoutCancel(t.Context())) })
	return c
}

func say(text string) modelapi.Step { return modelapi.Say(modelapi.Text(text)) }

// An agent that dies within a call of a tool is started again: the call is not made again,
// and the model reads that it may have taken effect.
func TestAnAgentThatDies(t *testing.T) {
	t.Parallel()
	for policy, recovered := range map[session.Recovery]bool{session.RecoverContinue: true, session.RecoverReport: false} {
		t.Run(string(policy), func(t *testing.T) {
			t.Parallel()
			o, seen := logged(t, modelapi.Say(modelapi.ToolUse("Bash", map[string]any{"command": "echo ran >> log; sleep 100"})), say("recovered"), say("after"))
			m := perished(o)
			o.MaxRestarts, o.Recovery = 2, policy
			c := open(t, o)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			turn, err := c.Send(ctx, sdk.UserText(mine))
			require.NoError(t, err)
			require.Eventually(t, func() bool {
				log, _ := os.ReadFile(filepath.Join(o.Cwd, "log"))
				return len(log) > 0 // the shell makes the file before echo writes it
			}, time.Minute, time.Millisecond)
			m.kill()
			r, err := turn.Result(ctx)
			if recovered {
				require.NoError(t, err)
				assert.Equal(t, "recovered", r.Result)
			}
			assert.NotEmpty(t, ask(t, c, "and now?").Result)
			log, err := os.ReadFile(filepath.Join(o.Cwd, "log"))
			require.NoError(t, err)
			assert.Equal(t, "ran\n", string(log), "no call is made twice")
			all := seen.messages()
			last := all[len(all)-1]
			assert.True(t, strings.HasPrefix(last, strings.TrimSuffix(all[0], "]}")), "%s\n%s", all[0], last)
			assert.Contains(t, last, "[Tool call interrupted: the session ended before this call's result was recorded.")
			assert.Contains(t, last, "and now?")
		})
	}
}

// An agent that dies between turns is started again, with all that was said.
func TestAnAgentThatDiesBetweenTurns(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, say("one"), say("two"))
	m := perished(o)
	o.MaxRestarts = 1
	c := open(t, o)
	ask(t, c, mine)
	m.kill()
	assert.Equal(t, "two", ask(t, c, "two").Result)
	all := seen.messages()
	assert.True(t, strings.HasPrefix(all[1], all[0]))
	assert.Contains(t, all[1], `"one"`)
}

// Two programs cannot run one session, with a store or without.
func TestOneHostForASession(t *testing.T) {
	t.Parallel()
	for name, s := range map[string]session.Store{"no store": nil, "a store with leases": &store.Memory{}, "a directory": store.NewDir(t.TempDir())} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, seen := logged(t, say("one"), say("two"), say("three"), say("four"))
			o.SessionStore = s
			c := open(t, o)
			ask(t, c, mine)
			next := *o
			next.Resume = c.SessionID()
			_, err := connect(t, &next)
			_, held := errors.AsType[*session.LeaseError](err)
			require.True(t, held, "%v", err)
			fork := next
			fork.ForkSession = true
			apart := open(t, &fork)
			ask(t, apart, "apart")
			require.NoError(t, c.Close(t.Context()))
			again := open(t, &next)
			ask(t, again, "together")
			all := seen.messages()
			assert.True(t, strings.HasPrefix(all[2], all[0]))
			assert.NotContains(t, all[2], "apart")
		})
	}
}

// A session continues from its store where its files are not.
func TestAnotherMachineHasTheStore(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, modelapi.Say(modelapi.ToolUse("Bash", map[string]any{"command": "true"})), say("one"), say("two"), say("three"))
	mem := &store.Memory{}
	o.SessionStore = mem
	c := open(t, o)
	ask(t, c, mine)
	require.NoError(t, c.Close(t.Context()))
	rows, err := mem.Sessions(t.Context(), projectOf(t, mem, o.Cwd))
	require.NoError(t, err)
	require.Len(t, rows, 1)

	for i, set := range []func(*sdk.Options){
		func(n *sdk.Options) { n.Resume = c.SessionID() },
		func(n *sdk.Options) { n.Continue = true },
	} {
		next := *o
		next.Env = map[string]string{"TROUPE_EMBEDDED_DIR": t.TempDir()} // another machine
		set(&next)
		d := open(t, &next)
		ask(t, d, fmt.Sprint("more ", i))
		assert.Equal(t, c.SessionID(), d.SessionID())
		require.NoError(t, d.Close(t.Context()))
		all := seen.messages()
		assert.True(t, strings.HasPrefix(all[len(all)-1], all[len(all)-2]), "%s\n%s", all[len(all)-2], all[len(all)-1])
	}
}

func projectOf(t *testing.T, _ *store.Memory, cwd string) string {
	t.Helper()
	return strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, cwd)
}

// tick waits until files that are written have a later time than those that were.
func tick(t *testing.T) {
	t.Helper()
	probe := filepath.Join(t.TempDir(), "probe")
	written := func() time.Time {
		require.NoError(t, os.WriteFile(probe, []byte("x"), 0o600))
		info, err := os.Stat(probe)
		require.NoError(t, err)
		return info.ModTime()
	}
	for before := written(); !written().After(before); {
	}
}

// Continue is the last session of the directory; without one it is an error.
func TestContinue(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, say("one"), say("two"), say("three"))
	o.Continue = true
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err := sdk.Run(ctx, mine, o)
	require.ErrorContains(t, err, "No conversation found to continue")
	assert.Empty(t, seen.messages())
	o.Continue = false
	_, err = sdk.Run(ctx, mine, o)
	require.NoError(t, err)
	tick(t)
	second, err := sdk.Run(ctx, "second", o)
	require.NoError(t, err)
	o.Continue = true
	r, err := sdk.Run(ctx, "third", o)
	require.NoError(t, err)
	assert.Equal(t, second.SessionID, r.SessionID)
	all := seen.messages()
	assert.True(t, strings.HasPrefix(all[2], all[1]))
}

// A history that is resumed at a message ends there, for good. A call without its result
// gets one.
func TestResumeAtAMessage(t *testing.T) {
	t.Parallel()
	o, seen := logged(t, say("one"), modelapi.Say(modelapi.ToolUse("Bash", map[string]any{"command": "echo 2"})), say("two"), say("again"), say("more"), say("cut"))
	c := open(t, o)
	var mu sync.Mutex
	uuids := map[string]string{}
	for i, prompt := range []string{mine, "second"} {
		m := sdk.UserText(prompt)
		m.UUID = fmt.Sprintf("00000000-0000-4000-8000-00000000000%d", i)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		turn, err := c.Send(ctx, m)
		require.NoError(t, err)
		for msg, err := range turn.Messages(ctx) {
			require.NoError(t, err)
			if a, ok := msg.(*sdk.AssistantMessage); ok {
				mu.Lock()
				uuids[prompt] = a.UUID
				if strings.Contains(string(a.Raw()), `"tool_use"`) {
					uuids["call"] = a.UUID
				}
				mu.Unlock()
			}
		}
		cancel()
	}
	id := c.SessionID()
	require.NoError(t, c.Close(t.Context()))

	next := *o
	next.Resume, next.ResumeSessionAt = id, uuids[mine]
	d := open(t, &next)
	ask(t, d, "instead")
	require.NoError(t, d.Close(t.Context()))
	next.ResumeSessionAt = ""
	d = open(t, &next)
	ask(t, d, "and more")
	require.NoError(t, d.Close(t.Context()))
	all := seen.messages()
	last := all[len(all)-1]
	assert.True(t, strings.HasPrefix(last, all[len(all)-2]))
	assert.NotContains(t, last, "second", "it was cut off")
	assert.Contains(t, last, "instead")

	next.ResumeSessionAt, next.ForkSession = uuids["call"], true
	d = open(t, &next)
	ask(t, d, "behind the call")
	all = seen.messages()
	assert.Contains(t, all[len(all)-1], "[Tool result missing due to internal error]")
	require.NoError(t, d.Close(t.Context()))

	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	next.ResumeSessionAt = "00000000-0000-4000-8000-0000000000ff"
	_, err := sdk.Run(ctx, "no", &next)
	require.ErrorContains(t, err, "No message found with message.uuid of")
	next.ForkSession = false
	next.ResumeSessionAt, next.ResumeDropsTurn = uuids[mine], "00000000-0000-4000-8000-000000000000"
	_, err = sdk.Run(ctx, "no", &next)
	require.ErrorContains(t, err, "more than the turn of")
}

// Rules hold however long their list is.
func TestManyRules(t *testing.T) {
	t.Parallel()
	_, o := started(t, modelapi.Say(modelapi.ToolUse("Bash", map[string]any{"command": "touch made"})), say("done"))
	for i := range 6000 {
		o.DisallowedTools = append(o.DisallowedTools, fmt.Sprintf("Bash(no-such-program-%d:*)", i))
	}
	o.DisallowedTools = append(o.DisallowedTools, "Bash(touch:*)")
	o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeBypassPermissions, true
	run(t, o)
	_, err := os.Stat(filepath.Join(o.Cwd, "made"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// A private directory has the session, and nothing of the vendor's.
func TestAPrivateDirectory(t *testing.T) {
	t.Parallel()
	o, _ := logged(t, say("one"))
	var mu sync.Mutex
	var at *session.Isolated
	o.Isolation = session.IsolationPrivate
	o.OnEvent = func(r sdk.EventRecord) {
		mu.Lock()
		defer mu.Unlock()
		if e, ok := r.Event.(*session.Isolated); ok {
			at = e
		}
	}
	c := open(t, o)
	ask(t, c, mine)
	require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return at != nil }, time.Minute, time.Millisecond)
	assert.Empty(t, at.Shared)
	assert.Empty(t, at.Copied)
	files, err := filepath.Glob(filepath.Join(at.Dir, "projects", "*", c.SessionID()+".jsonl"))
	require.NoError(t, err)
	assert.Len(t, files, 1)
}

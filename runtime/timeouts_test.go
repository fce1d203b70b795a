package runtime_test

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// stuckServer has a tool that never answers.
type stuckServer struct {
	limit time.Duration
	await func(context.Context) error
}

func (stuckServer) Name() string { return "srv" }

func (stuckServer) Manifest() (initialize, toolsList json.RawMessage, err error) {
	return json.RawMessage(`{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"srv","version":"1"}}`),
		json.RawMessage(`{"tools":[{"name":"stuck","description":"d","inputSchema":{"type":"object"}}]}`), nil
}

func (s stuckServer) Timeout(string) time.Duration { return s.limit }

func (s stuckServer) Handle(ctx context.Context, method string, _ json.RawMessage) (json.RawMessage, error) {
	if method != "tools/call" {
		return json.RawMessage(`{}`), nil
	}
	return nil, s.await(ctx)
}

// TestTimeoutsAreThoseInForce: what a plan says of a wait is what the wait shows
// when it comes, whether the limit was set or not.
func TestTimeoutsAreThoseInForce(t *testing.T) {
	t.Parallel()
	ask := scripted.Steps{gate()}
	use := scripted.Steps{&scripted.MCPCall{Server: "srv", Tool: "stuck", Gate: agent.GateAllow}}
	for name, c := range map[string]struct {
		planned, wait string // what it is called before and then
		steps         scripted.Steps
		silent        bool // when it has to answer initialize
		call          bool // for something that is not answered
		qoder         bool
		set           func(spec *runtime.Spec, await func(context.Context) error)
		limit         func(spec *runtime.Spec) // of an hour
		usual         time.Duration
		want          time.Duration // with the limit; 0: the hour
		option        string
	}{
		"initialize": {planned: "the answer to initialize", wait: "control request initialize", silent: true, usual: 2 * time.Minute,
			limit: func(s *runtime.Spec) { s.Options.Limits.Initialize = time.Hour }, option: "Limits.Initialize"},
		"request": {planned: "the answer to any other request", wait: "control request get_thing", call: true, usual: time.Minute,
			limit: func(s *runtime.Spec) { s.Options.Limits.Control = time.Hour }, option: "Limits.Control"},
		"permission": {planned: "a permission", wait: "permission request Bash", steps: ask,
			set: func(s *runtime.Spec, await func(context.Context) error) {
				s.Options.CanUseTool = func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
					return protocol.PermissionResult{}, await(ctx)
				}
			},
			limit: func(s *runtime.Spec) { s.Options.PermissionTimeout = time.Hour }, option: "PermissionTimeout"},
		"hook": {planned: "a hook of PreToolUse for Bash", wait: "hook request PreToolUse", steps: ask, usual: 59 * time.Second,
			set: func(s *runtime.Spec, await func(context.Context) error) {
				s.Options.Hooks = []session.Hook{{Event: protocol.HookPreToolUse, Matcher: "Bash", Func: func(ctx context.Context, _ *session.HookCall) (json.RawMessage, error) {
					return nil, await(ctx)
				}}}
			},
			limit: func(s *runtime.Spec) { s.Options.Hooks[0].Timeout = time.Hour }, want: time.Hour - time.Second, option: "the hook's Timeout"},
		"tool": {planned: "a call of mcp__srv__stuck", wait: "mcp request mcp__srv__stuck", steps: use, usual: 10 * time.Minute,
			set: func(s *runtime.Spec, await func(context.Context) error) {
				s.Options.SDKMCPServers = []*session.MCPServer{{MCPHandler: stuckServer{await: await}}}
			},
			limit: func(s *runtime.Spec) {
				server, _ := s.Options.SDKMCPServers[0].MCPHandler.(stuckServer)
				server.limit = time.Hour
				s.Options.SDKMCPServers[0].MCPHandler = server
			}, option: "the tool's Timeout"},
		"server": {planned: "a call of mcp__srv__stuck", wait: "mcp request mcp__srv__stuck", steps: use, usual: 10 * time.Minute,
			set: func(s *runtime.Spec, await func(context.Context) error) {
				s.Options.SDKMCPServers = []*session.MCPServer{{MCPHandler: stuckServer{await: await}}}
			},
			limit: func(s *runtime.Spec) {
				s.Options.SDKMCPServerConfigs = map[string]session.SDKMCPServerConfig{"srv": {Timeout: time.Hour}}
			}, option: `SDKMCPServerConfigs["srv"].Timeout`},
		"model": {planned: "a model", wait: "model policy request get_model_policy", steps: scripted.Steps{&scripted.ModelPolicy{}}, usual: 500 * time.Millisecond,
			qoder: true, set: func(s *runtime.Spec, await func(context.Context) error) {
				s.Dialect, s.Options.Auth = qoder.New(), &session.Auth{Type: session.AuthQoderCLI}
				s.Options.ResolveModel = func(ctx context.Context, _ *protocol.ModelPolicyRequest) (protocol.ModelPolicyReply, error) {
					return protocol.ModelPolicyReply{}, await(ctx)
				}
			},
			limit: func(s *runtime.Spec) { s.Options.ResolveModelTimeout = time.Hour }, option: "ResolveModelTimeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, given := range []bool{false, true} {
				w := inSim(t, 1)
				script := turns(c.steps)
				if c.qoder {
					script.Dialect = agent.Qoder
				}
				if c.silent {
					script.Misbehave.Initialize.Mode = "never"
				}
				if c.call {
					script.Misbehave.Ignore = []string{"get_thing"}
				}
				spec := w.spec(script)
				if c.set != nil {
					c.set(&spec, func(ctx context.Context) error { return w.Executor().Await(ctx, never) })
				}
				want := runtime.Timeout{What: c.planned, Limit: c.usual, Option: c.option, Default: true}
				if given {
					c.limit(&spec)
					want.Limit, want.Default = cmp.Or(c.want, time.Hour), false
				}
				plan, err := spec.Preview()
				require.NoError(t, err)
				if c.option == `SDKMCPServerConfigs["srv"].Timeout` && !given {
					want.Option = "the tool's Timeout"
				}
				assert.Contains(t, plan.Timeouts, want)

				var limits []session.Wait
				over := w.Task(func() {
					s, err := w.Open(context.Background(), spec)
					if err != nil {
						return // it was never initialized
					}
					if c.call {
						_ = s.Call(context.Background(), &protocol.UnknownHostRequest{Name: "get_thing", Raw: json.RawMessage(`{"subtype":"get_thing"}`)}, nil, 0)
						return
					}
					_, _ = w.send(s, "go").Result(context.Background())
				})
				w.Pass(100 * time.Millisecond)
				for _, s := range w.Tree(context.Background()).Sessions {
					for _, wait := range s.Waits {
						if strings.HasPrefix(wait.What, c.wait) {
							limits = append(limits, session.Wait{Limit: wait.Limit, SetBy: wait.SetBy})
						}
					}
				}
				assert.Equal(t, []session.Wait{{Limit: want.Limit, SetBy: want.Option}}, limits, "what the wait shows")
				require.NoError(t, w.Shutdown(context.Background()))
				over()
			}
		})
	}
}

package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	goruntime "runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

// callback is what the user answers, whatever the kind: yes with that many
// bytes, or the zero value for 0.
type callback func(ctx context.Context) (size int, err error)

// callbackKind is one of the ways in which the agent calls the user back.
type callbackKind struct {
	name    string
	request string
	install func(spec *runtime.Spec, limit time.Duration, f callback)
	zero    string                      // the answer to a callback that returns its zero value
	refuses func(m map[string]any) bool // what lets nothing happen
}

func at(m map[string]any, path string) any {
	var v any = m
	for key := range strings.SplitSeq(path, ".") {
		o, _ := v.(map[string]any)
		v = o[key]
	}
	return v
}

func padding(size int) json.RawMessage {
	return json.RawMessage(`{"v":"` + strings.Repeat("x", size) + `"}`)
}

func callbackKinds() []callbackKind {
	return []callbackKind{
		{
			name:    "permission",
			request: `{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"date"},"tool_use_id":"t"}`,
			install: func(spec *runtime.Spec, limit time.Duration, f callback) {
				spec.Options.PermissionTimeout = limit
				spec.Options.CanUseTool = func(ctx context.Context, _ *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
					n, err := f(ctx)
					if n == 0 {
						return protocol.PermissionResult{}, err
					}
					return protocol.PermissionResult{Behavior: protocol.BehaviorAllow, UpdatedInput: padding(n)}, err
				}
			},
			zero:    `{"behavior":"deny","message":"The host denied this tool call.","toolUseID":"t"}`,
			refuses: func(m map[string]any) bool { return at(m, "response.response.behavior") == "deny" },
		},
		{
			name:    "hook",
			request: `{"subtype":"hook_callback","callback_id":"hook_0","input":{"hook_event_name":"PreToolUse","tool_name":"Bash"},"tool_use_id":"t"}`,
			install: func(spec *runtime.Spec, limit time.Duration, f callback) {
				spec.Options.Hooks = []session.Hook{{Event: protocol.HookPreToolUse, Timeout: limit, Func: func(ctx context.Context, _ *session.HookCall) (json.RawMessage, error) {
					n, err := f(ctx)
					if n == 0 {
						return nil, err
					}
					return padding(n), err
				}}}
			},
			zero: `{}`,
			refuses: func(m map[string]any) bool {
				return at(m, "response.response.hookSpecificOutput.permissionDecision") == "deny"
			},
		},
		{
			name:    "mcp",
			request: `{"subtype":"mcp_message","server_name":"tools","message":{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"echo","arguments":{}}}}`,
			install: func(spec *runtime.Spec, limit time.Duration, f callback) {
				spec.Options.SDKMCPServers = []*session.MCPServer{{MCPHandler: toolServer{limit: limit, f: f}}}
			},
			zero:    `{"mcp_response":{"jsonrpc":"2.0","id":7,"result":{}}}`,
			refuses: func(m map[string]any) bool { return at(m, "response.response.mcp_response.result.isError") != nil },
		},
		{
			name:    "model policy",
			request: `{"subtype":"get_model_policy","type":"get_model_policy","resolvedModel":"auto","purpose":"main"}`,
			install: func(spec *runtime.Spec, limit time.Duration, f callback) {
				spec.Dialect = qoder.New()
				spec.Options.Auth = &session.Auth{Type: session.AuthAccessToken, AccessToken: "t"}
				spec.Options.ResolveModelTimeout = limit
				if limit == 0 {
					spec.Options.ResolveModelTimeout = -1
				}
				spec.Options.ResolveModel = func(ctx context.Context, _ *protocol.ModelPolicyRequest) (protocol.ModelPolicyReply, error) {
					n, err := f(ctx)
					if n == 0 {
						return protocol.ModelPolicyReply{}, err
					}
					return protocol.ModelPolicyReply{Parameters: padding(n)}, err
				}
			},
			zero:    `{"type":"get_model_policy"}`,
			refuses: func(m map[string]any) bool { return at(m, "response.subtype") == "error" },
		},
	}
}

// toolServer is an in-process MCP server whose one tool is a callback.
type toolServer struct {
	echo
	limit time.Duration
	f     callback
}

func (s toolServer) Timeout(string) time.Duration { return s.limit }

func (s toolServer) Handle(ctx context.Context, _ string, _ json.RawMessage) (json.RawMessage, error) {
	n, err := s.f(ctx)
	if n == 0 {
		return nil, err
	}
	return padding(n), err
}

// onKinds plays a test with each kind of callback.
func onKinds(t *testing.T, play func(s *stage, k callbackKind)) {
	t.Helper()
	for _, k := range callbackKinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			onStages(t, func(s *stage) { play(s, k) })
		})
	}
}

// turnWith plays one turn in which the agent does something, and returns the
// session with the turn's result read.
func (s *stage) turnWith(change func(*runtime.Spec), play func(h *hand)) (*runtime.Session, *reports) {
	s.Helper()
	spec := s.spec(func(h *hand) {
		uuid := h.prompt()
		play(h)
		h.say(resultLine(uuid))
	})
	if change != nil {
		change(&spec)
	}
	log := listen(&spec)
	sess := s.open(spec)
	r, err := s.send(sess).Result(s.ctx)
	require.NoError(s, err, "the session must go on")
	assert.Equal(s, "done", r.Result)
	return sess, log
}

// TestCallbacksThatFail lets every kind of callback fail in every way: its
// call is refused, once, the failure is reported, and the session continues.
func TestCallbacksThatFail(t *testing.T) {
	t.Parallel()
	ways := map[string]callback{
		"panics":               func(context.Context) (int, error) { panic("boom") },
		"panics with an error": func(context.Context) (int, error) { panic(errors.New("boom")) },
		"returns an error":     func(context.Context) (int, error) { return 0, errors.New("boom") },
		"says yes and fails":   func(context.Context) (int, error) { return 5, errors.New("boom") },
	}
	onKinds(t, func(s *stage, k callbackKind) {
		for way, f := range ways {
			var answer protocol.Frame
			sess, log := s.turnWith(func(spec *runtime.Spec) { k.install(spec, 0, f) }, func(h *hand) {
				h.ask("q", k.request)
				answer = h.reply("q")
			})
			assert.True(s, k.refuses(object(s, answer.Raw)), "%s: %s", way, answer.Raw)
			s.close(sess)
			failed := reported[*session.CallbackFailed](s, log)
			if k.name == "mcp" && !strings.HasPrefix(way, "panics") {
				assert.Empty(s, failed, "what a tool returns is for the model")
				continue
			}
			require.Len(s, failed, 1, way)
			assert.Equal(s, k.name, failed[0].Kind)
			assert.Equal(s, "q", failed[0].RequestID)
		}
	})
}

// TestCallbacksThatEndTheirGoroutine is for runtime.Goexit, which tests of users call
// by FailNow. A simulation does not start goroutines.
func TestCallbacksThatEndTheirGoroutine(t *testing.T) {
	t.Parallel()
	for _, k := range callbackKinds() {
		t.Run(k.name, func(t *testing.T) {
			t.Parallel()
			onGoroutines(t, func(s *stage) {
				var answer protocol.Frame
				sess, log := s.turnWith(func(spec *runtime.Spec) {
					k.install(spec, 0, func(context.Context) (int, error) { goruntime.Goexit(); return 0, nil })
				}, func(h *hand) {
					h.ask("q", k.request)
					answer = h.reply("q")
				})
				assert.True(s, k.refuses(object(s, answer.Raw)), "%s", answer.Raw)
				s.close(sess)
				assert.Len(s, reported[*session.CallbackFailed](s, log), 1)
			})
		})
	}
}

// TestCallbacksThatSayNothing return the zero value: a deny for a permission,
// "continue" for the others.
func TestCallbacksThatSayNothing(t *testing.T) {
	t.Parallel()
	onKinds(t, func(s *stage, k callbackKind) {
		var answer protocol.Frame
		sess, log := s.turnWith(func(spec *runtime.Spec) {
			k.install(spec, 0, func(context.Context) (int, error) { return 0, nil })
		}, func(h *hand) {
			h.ask("q", k.request)
			answer = h.reply("q")
		})
		var m struct {
			Response struct{ Response json.RawMessage }
		}
		require.NoError(s, json.Unmarshal(answer.Raw, &m))
		assert.JSONEq(s, k.zero, string(m.Response.Response))
		s.close(sess)
		assert.Empty(s, reported[*session.CallbackFailed](s, log))
	})
}

// TestCallbacksThatNeverReturn run into their limit, or into the end of the
// session. Neither waits for them.
func TestCallbacksThatNeverReturn(t *testing.T) {
	t.Parallel()
	onKinds(t, func(s *stage, k callbackKind) {
		release, started, returned := make(chan struct{}), make(chan struct{}), make(chan struct{})
		stuck := func(context.Context) (int, error) {
			defer close(returned)
			close(started)
			return 5, s.rt.Executor().Await(context.Background(), release)
		}
		var answer protocol.Frame
		late := make(chan struct{})
		tooLate := func(context.Context) (int, error) { return 5, s.rt.Executor().Await(context.Background(), late) }
		limited, log := s.turnWith(func(spec *runtime.Spec) { k.install(spec, 20*time.Millisecond, tooLate) }, func(h *hand) {
			h.ask("q", k.request)
			answer = h.reply("q")
		})
		assert.True(s, k.refuses(object(s, answer.Raw)), "%s", answer.Raw)
		close(late)
		s.await(log.seen(func(e session.Event) bool {
			late, ok := e.(*session.LateAnswer)
			return ok && late.Kind == k.name && late.RequestID == "q"
		}))
		s.close(limited)
		failed := reported[*session.CallbackFailed](s, log)
		require.Len(s, failed, 1)
		require.ErrorIs(s, failed[0].Err, context.DeadlineExceeded)

		asked, heard := make(chan struct{}), make(chan protocol.Frame, 1)
		spec := s.spec(func(h *hand) {
			uuid := h.prompt()
			h.ask("q", k.request)
			h.fence("f")
			close(asked)
			heard <- h.reply("q")
			h.say(resultLine(uuid))
		})
		spec.Options.InterruptGrace = patience // it has the time to hear the answer
		k.install(&spec, 0, stuck)
		if k.name == "hook" || k.name == "mcp" {
			k.install(&spec, time.Hour, stuck)
		}
		unlimited := s.open(spec)
		s.send(unlimited)
		s.await(asked)
		s.await(started)
		s.close(unlimited)
		assert.True(s, k.refuses(object(s, (<-heard).Raw)), "fail-closed at the end of the session")
		close(release)
		s.await(returned)
	})
}

// TestCallbacksThatAnswerMuch answers 20 MiB, which the agent gets, and more
// than a line for the agent may have, which is refused in its stead.
func TestCallbacksThatAnswerMuch(t *testing.T) { // alone: it takes memory
	for _, k := range callbackKinds() {
		t.Run(k.name, func(t *testing.T) {
			sizes := []int{20 * mib, 33 * mib}
			if k.name != "hook" { // whose answers are encoded the fastest
				sizes = []int{scaled(2*mib, 20*mib), scaled(0, 33*mib)}
			} else if sim.Raced() || testing.Short() {
				sizes = []int{2 * mib, 0}
			}
			onGoroutines(t, func(s *stage) {
				next := make(chan int, 2)
				next <- sizes[0]
				next <- sizes[1]
				var much, tooMuch protocol.Frame
				sess, log := s.turnWith(func(spec *runtime.Spec) {
					k.install(spec, time.Minute, func(context.Context) (int, error) { return <-next, nil })
				}, func(h *hand) {
					h.ask("much", k.request)
					much = h.reply("much")
					h.ask("too much", k.request)
					tooMuch = h.reply("too much")
				})
				assert.Greater(s, len(much.Raw), sizes[0])
				assert.Equal(s, "success", much.Subtype)
				s.close(sess)
				failed := reported[*session.CallbackFailed](s, log)
				if sizes[1] > 0 {
					assert.True(s, k.refuses(object(s, tooMuch.Raw)), "%.200s", tooMuch.Raw)
					require.Len(s, failed, 1)
					require.ErrorIs(s, failed[0].Err, session.ErrTooLarge)
				}
			})
		})
	}
}

// TestRepeatedRequests asks again under the same id, while the callback runs
// and after it: it runs once, and all get the same bytes.
func TestRepeatedRequests(t *testing.T) {
	t.Parallel()
	onKinds(t, func(s *stage, k callbackKind) {
		calls := 0
		release := make(chan struct{})
		sess, log := s.turnWith(func(spec *runtime.Spec) {
			k.install(spec, time.Minute, func(context.Context) (int, error) {
				calls++
				return 5, s.rt.Executor().Await(s.ctx, release)
			})
		}, func(h *hand) {
			for range 3 {
				h.ask("q", k.request)
			}
			assert.Empty(s, h.fence("in flight"), "an answer before the callback had one")
			close(release)
			first := h.reply("q")
			assert.False(s, k.refuses(object(s, first.Raw)))
			assert.Empty(s, h.fence("answered"), "more than one answer")
			for range 3 {
				h.ask("q", k.request)
				assert.Equal(s, string(first.Raw), string(h.reply("q").Raw))
			}
			assert.Empty(s, h.fence("repeated"))
		})
		s.close(sess)
		assert.Equal(s, 1, calls)
		assert.Len(s, reported[*session.RepeatedRequest](s, log), 5)
	})
}

// TestReusedIDs asks for something else under an id that was used before: once
// the first was answered, and while it is open.
func TestReusedIDs(t *testing.T) {
	t.Parallel()
	onKinds(t, func(s *stage, k callbackKind) {
		var calls atomic.Int64
		release := make(chan struct{})
		other := strings.Replace(k.request, `{"subtype"`, `{"x_other":1,"subtype"`, 1)
		require.NotEqual(s, k.request, other)
		sess, log := s.turnWith(func(spec *runtime.Spec) {
			k.install(spec, time.Minute, func(ctx context.Context) (int, error) {
				if calls.Add(1) == 3 {
					return 5, s.rt.Executor().Await(ctx, release)
				}
				return 5, nil
			})
		}, func(h *hand) {
			h.ask("q", k.request)
			h.reply("q")
			h.ask("q", other)
			assert.False(s, k.refuses(object(s, h.reply("q").Raw)))
			assert.Empty(s, h.fence("answered"))

			h.ask("open", k.request)
			assert.Empty(s, h.fence("it is open"))
			h.ask("open", other)
			for range 2 {
				assert.Contains(s, string(h.reply("open").Raw), `"permissionDecision":"deny"`, "what denies everything")
			}
			close(release)
			assert.Empty(s, h.fence("both were denied"))
		})
		s.close(sess)
		assert.Contains(s, []int64{2, 3}, calls.Load(), "the third may be denied before it runs")
		assert.Len(s, reported[*session.RepeatedRequest](s, log), 1)
	})
}

// TestKeysThatAreAlike: what a gate is shown is what the agent reads, or it is not
// asked.
func TestKeysThatAreAlike(t *testing.T) {
	t.Parallel()
	shown := map[string]bool{ // whether the callback is asked
		`{"subtype":"can_use_tool","tool_name":"Bash","Tool_Name":"Read","input":{"command":"rm"},"new":1}`:           true,
		`{"Tool_Name":"Read","subtype":"can_use_tool","tool_name":"Bash","INPUT":{},"input":{"command":"rm"},"n":[]}`: true,
		`{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"rm"},"\u0049nput":{"command":"ls"},"n":1}`:  true,
		`{"subtype":"can_use_tool","tool_name":"Read","tool_name":"Bash","input":{"command":"rm"}}`:                   false,
		`{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls"},"input":{"command":"rm"}}`:             false,
		`{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"ls","command":"rm"}}`:                       false,
		`{"subtype":"mcp_message","subtype":"can_use_tool","tool_name":"Bash","input":{"command":"rm"}}`:              false,
	}
	onStages(t, func(s *stage) {
		asked := 0
		sess, log := s.turnWith(func(spec *runtime.Spec) {
			spec.Options.CanUseTool = func(_ context.Context, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
				asked++
				assert.Equal(s, "Bash", r.ToolName)
				assert.JSONEq(s, `{"command":"rm"}`, string(r.Input))
				return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, nil
			}
		}, func(h *hand) {
			for body, shows := range shown {
				h.ask("q", body)
				answer := string(h.reply("q").Raw)
				assert.Equal(s, !shows, strings.Contains(answer, `"deny"`), "%s: %s", body, answer)
			}
		})
		s.close(sess)
		assert.Equal(s, 3, asked)
		for _, failed := range reported[*session.CallbackFailed](s, log) {
			var twice *protocol.DuplicateKeyError
			require.ErrorAs(s, failed.Err, &twice)
		}
	})
}

// TestCancelledRequests takes requests back: unknown ones, while the callback
// runs, again, and after the answer.
func TestCancelledRequests(t *testing.T) {
	t.Parallel()
	cancel := func(h *hand, id string) {
		h.say(fmt.Sprintf(`{"type":"control_cancel_request","request_id":%q}`, id))
	}
	onKinds(t, func(s *stage, k callbackKind) {
		var calls, ended int
		started, over := make(chan struct{}), make(chan struct{})
		sess, log := s.turnWith(func(spec *runtime.Spec) {
			k.install(spec, time.Minute, func(ctx context.Context) (int, error) {
				calls++
				if calls != 2 {
					return 5, nil
				}
				close(started)
				defer close(over)
				if errors.Is(s.rt.Executor().Await(ctx, make(chan struct{})), context.Canceled) {
					ended++
				}
				return 5, nil
			})
		}, func(h *hand) {
			cancel(h, "early")
			cancel(h, "")
			h.ask("early", k.request) // the cancel had no receiver
			first := h.reply("early")
			assert.False(s, k.refuses(object(s, first.Raw)))
			cancel(h, "early")
			assert.Empty(s, h.fence("late cancel"))
			h.ask("early", k.request)
			assert.Equal(s, string(first.Raw), string(h.reply("early").Raw), "a late cancel changes nothing")

			h.ask("q", k.request)
			assert.NoError(s, s.rt.Executor().Await(s.ctx, started))
			cancel(h, "q")
			cancel(h, "q")
			assert.NoError(s, s.rt.Executor().Await(s.ctx, over))
			assert.Empty(s, h.fence("cancelled"), "an answer to a request that was taken back")
			h.ask("q", k.request) // a new request
			assert.False(s, k.refuses(object(s, h.reply("q").Raw)))
			assert.Empty(s, h.fence("asked again"))
		})
		s.close(sess)
		assert.Equal(s, []int{3, 1}, []int{calls, ended})
		assert.Empty(s, reported[*session.CallbackFailed](s, log))
	})
}

// TestRequestsThatMakeNoSense get an error or a deny, each exactly one.
func TestRequestsThatMakeNoSense(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000)
	bodies := map[string]string{ // what the answer must have in it
		`{"subtype":"hologram"}`:            "Unsupported control request subtype: hologram",
		`{"subtype":""}`:                    "Unsupported control request subtype",
		`{"subtype":5}`:                     "Unsupported control request subtype",
		`{}`:                                "Unsupported control request subtype",
		`null`:                              "Unsupported control request subtype",
		`[]`:                                "Unsupported control request subtype",
		`"can_use_tool"`:                    "Unsupported control request subtype",
		`{"subtype":"initialize"}`:          "Unsupported control request subtype: initialize",
		`{"subtype":"request_user_dialog"}`: `"cancelled"`,
		`{"subtype":"elicitation"}`:         `"decline"`,
		`{"subtype":"can_use_tool"}`:        `"deny"`,
		`{"subtype":"can_use_tool","tool_name":7}`:                                               `"deny"`,
		`{"subtype":"can_use_tool","tool_name":"Bash","input":tru}`:                              `"deny"`,
		`{"subtype":"can_use_tool","tool_name":"Bash","input":` + deep + `}`:                     `"deny"`,
		`{"subtype":"hook_callback"}`:                                                            `"permissionDecision":"deny"`,
		`{"subtype":"hook_callback","callback_id":"hook_99"}`:                                    `"permissionDecision":"deny"`,
		`{"subtype":"hook_callback","callback_id":"hook_99","input":{"hook_event_name":"Stop"}}`: `No hook callback found for ID: hook_99`,
		`{"subtype":"hook_callback","callback_id":{},"input":[]}`:                                `"permissionDecision":"deny"`,
		`{"subtype":"mcp_message"}`:                                                              `SDK MCP server not found`,
		`{"subtype":"mcp_message","server_name":"nobody","message":{}}`:                          `SDK MCP server not found: nobody`,
		`{"subtype":"mcp_message","server_name":"tools","message":5}`:                            `"error"`,
		`{"subtype":"mcp_message","server_name":"tools"}`:                                        `"error"`,
		`{"subtype":"get_model_policy"}`:                                                         `"error"`,
	}
	onStages(t, func(s *stage) {
		answers := make(map[string]string)
		sess, _ := s.turnWith(func(spec *runtime.Spec) {
			spec.Options.SDKMCPServers = []*session.MCPServer{{MCPHandler: echo{}}}
			spec.Options.Hooks = []session.Hook{{Event: protocol.HookPreToolUse, Func: func(context.Context, *session.HookCall) (json.RawMessage, error) {
				panic("nobody asked for this hook")
			}}}
		}, func(h *hand) {
			n := 0
			for body := range bodies {
				n++
				id := fmt.Sprint("q", n)
				h.ask(id, body)
				answers[body] = string(h.reply(id).Raw)
				assert.Empty(s, h.fence(id+" again"), "a second answer to %.80s", body)
			}
			// An answer without an id is for whom it may concern, and no harm.
			h.say(`{"type":"control_request"}`, `{"type":"control_request","request_id":5,"request":{"subtype":"hologram"}}`,
				`{"type":"control_request","request_id":null,"request":{"subtype":"can_use_tool"}}`)
			h.fence("last")
		})
		for body, part := range bodies {
			assert.Contains(s, answers[body], part, "%.80s", body)
			assert.True(s, json.Valid([]byte(answers[body])), answers[body])
		}
		s.close(sess)
	})
}

// TestAnswersToNothing writes answers without a waiter, and odd ones.
func TestAnswersToNothing(t *testing.T) {
	t.Parallel()
	respond := func(h *hand, id string) { h.answer(id, `{"late":true}`) }
	call := func(ctx context.Context, sess *runtime.Session, limit time.Duration) error {
		return sess.Call(ctx, &protocol.UnknownHostRequest{Name: "get_thing", Raw: json.RawMessage(`{"subtype":"get_thing"}`)}, nil, limit)
	}
	onStages(t, func(s *stage) {
		given, gone := context.WithCancelCause(s.ctx)
		why := errors.New("changed my mind")
		spec := s.spec(func(h *hand) {
			respond(h, "nobody")
			respond(h, "")
			h.say(`{"type":"control_response"}`, `{"type":"control_response","response":null}`, `{"type":"control_response","response":{"subtype":"error"}}`)

			first := h.request("get_thing") // in time, and then again
			respond(h, first.RequestID)
			respond(h, first.RequestID)

			late := h.request("get_thing")
			assert.Equal(s, late.RequestID, h.cancelled()) // its limit is over
			respond(h, late.RequestID)

			abandoned := h.request("get_thing")
			gone(why)
			assert.Equal(s, abandoned.RequestID, h.cancelled())
			respond(h, abandoned.RequestID)

			bare := h.request("get_thing")
			h.say(fmt.Sprintf(`{"type":"control_response","response":{"request_id":%q,"subtype":"success"}}`, bare.RequestID))
			odd := h.request("get_thing")
			h.say(fmt.Sprintf(`{"type":"control_response","response":{"request_id":%q,"subtype":"maybe","error":{"a":1}}}`, odd.RequestID))
			h.fence("done")
		})
		log := listen(&spec)
		sess := s.open(spec)
		require.NoError(s, call(s.ctx, sess, 0))
		var late *session.TimeoutError
		require.ErrorAs(s, call(s.ctx, sess, 20*time.Millisecond), &late)
		require.ErrorIs(s, call(given, sess, 0), why)
		require.NoError(s, call(s.ctx, sess, 0))
		var refused *session.ControlError
		require.ErrorAs(s, call(s.ctx, sess, 0), &refused)
		s.close(sess)
		assert.Len(s, reported[*session.UnexpectedFrame](s, log), 8)
	})
}

// cancelled reads until the host cancels a request, and returns its id.
func (h *hand) cancelled() string {
	for {
		if f := h.hear(); f.Type == protocol.TypeControlCancel {
			return f.RequestID
		}
	}
}

// TestTenThousandCallbacks has them all in flight at once, and answers each
// exactly once.
func TestTenThousandCallbacks(t *testing.T) { // alone: for the race detector's bound on goroutines
	n := 10_000
	switch {
	case testing.Short():
		n = 2_000
	case sim.Raced():
		n = 7_000
	}
	onGoroutines(t, func(s *stage) {
		var inFlight atomic.Int64
		all := make(chan struct{})
		answers := make(map[string]int)
		var mu sync.Mutex
		seen := make(map[string]bool)
		sess, _ := s.turnWith(func(spec *runtime.Spec) {
			spec.Options.Limits.Requests = n
			spec.Options.CanUseTool = func(_ context.Context, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
				mu.Lock()
				seen[r.ToolUseID] = true
				mu.Unlock()
				if inFlight.Add(1) == int64(n) {
					close(all)
				}
				return protocol.PermissionResult{Behavior: protocol.BehaviorAllow}, s.rt.Executor().Await(s.ctx, all)
			}
		}, func(h *hand) {
			for i := range n {
				h.ask(fmt.Sprint("q", i), fmt.Sprintf(`{"subtype":"can_use_tool","tool_name":"Bash","input":{},"tool_use_id":"t%d"}`, i))
			}
			for range n {
				f := h.hear()
				answers[f.RequestID]++
				if !strings.Contains(string(f.Raw), `"behavior":"allow"`) {
					answers["denied"]++
				}
			}
			assert.Empty(s, h.fence("done"))
		})
		assert.Len(s, seen, n)
		assert.Len(s, answers, n, "each id once, and no deny")
		s.close(sess)
	})
}

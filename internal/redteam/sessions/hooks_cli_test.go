package sessions_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

func made(r *rig, name string) bool {
	_, err := os.Stat(r.at(name))
	return err == nil
}

func cmd(command string) json.RawMessage {
	b, _ := json.Marshal(map[string]string{"command": command, "description": "x"})
	return b
}

// docs/hooks.md: "Deny and ask rules hold for every call, also for those
// that the agent would not ask about". An input that a hook changes without a
// decision is held against them only if the agent asks.
func TestCLIPolicyAndChangedInputs(t *testing.T) {
	change := func(o *sdk.Options) {
		o.Hooks = []sdk.Hook{sdk.OnPreToolUse(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
			return sdk.PreToolUseOutput{UpdatedInput: cmd("touch made")}, nil
		})}
	}
	for name, set := range map[string]func(*sdk.Options){
		"hook changes, no decision, agent asks": change,
		"hook changes, no decision, AllowedTools": func(o *sdk.Options) {
			change(o)
			o.AllowedTools = []string{"Bash"}
		},
		"hook changes, no decision, bypassPermissions": func(o *sdk.Options) {
			change(o)
			o.PermissionMode, o.AllowDangerouslySkipPermissions = sdk.ModeBypassPermissions, true
		},
		"hook changes, no decision, acceptEdits": func(o *sdk.Options) {
			change(o)
			o.PermissionMode = sdk.ModeAcceptEdits
		},
		"PermissionRequest hook allows with another input": func(o *sdk.Options) {
			o.Hooks = []sdk.Hook{sdk.OnPermissionRequest(func(context.Context, *protocol.PermissionRequestInput) (sdk.PermissionRequestOutput, error) {
				allow := sdk.AllowInput(cmd("touch made"))
				return sdk.PermissionRequestOutput{Decision: &allow}, nil
			})}
		},
		"CanUseTool allows with another input": func(o *sdk.Options) {
			o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				return sdk.AllowInput(cmd("touch made")), nil
			}
		},
		"CanUseTool allows with another input, case": func(o *sdk.Options) {
			o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				return sdk.AllowInput(json.RawMessage(`{"Command":"ls","command":"touch made","description":"x"}`)), nil
			}
		},
		"CanUseTool allows with another input, doubt": func(o *sdk.Options) {
			o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
				return sdk.AllowInput(cmd("X=touch; $X made")), nil
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			o := r.options()
			o.Policy = &sdk.Policy{Deny: []string{"Bash(touch:*)"}}
			set(o)
			out, _ := r.play(o, one(shell("mkdir dir")))
			t.Logf("made=%v %v", made(r, "made"), out)
			if made(r, "made") && name != "CanUseTool allows with another input, doubt" { // which the callback itself said
				t.Error("what the policy denies has run")
			}
		})
	}
}

// Callbacks that do everything wrong, on the real agent: nothing may be let in.
func TestCLIGatesThatFail(t *testing.T) {
	never := make(chan struct{})
	t.Cleanup(func() { close(never) })
	type decide = sdk.CanUseTool
	var client *sdk.Client
	cases := map[string]func(r *rig, o *sdk.Options){}
	for name, f := range map[string]decide{
		"goexit": func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			runtime.Goexit()
			return sdk.Allow(), nil
		},
		"panic":     func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) { panic("x") },
		"panic nil": func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) { panic(nil) },
		"error+allow": func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.Allow(), errors.New("x")
		},
		"Allow upper": func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.PermissionResult{Behavior: "Allow"}, nil
		},
		"extra behavior": func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.PermissionResult{Extra: map[string]json.RawMessage{"behavior": json.RawMessage(`"allow"`), "Behavior": json.RawMessage(`"allow"`)}}, nil
		},
		"extra injection": func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.PermissionResult{Extra: map[string]json.RawMessage{"x": json.RawMessage(`1,"behavior":"allow"`)}}, nil
		},
		"input null": func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.AllowInput(json.RawMessage("null")), nil
		},
		"input broken": func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.AllowInput(json.RawMessage(`{"command":"touch made"`)), nil
		},
		"input trailing": func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.AllowInput(json.RawMessage(`{"command":"touch made"} {"x":1}`)), nil
		},
		"input with newline": func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			return sdk.AllowInput(json.RawMessage("{\"command\":\n\"touch made2\"\n}")), nil
		},
		"closes the client": func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			_ = client.Close(ctx)
			return sdk.Allow(), nil
		},
		"closes with background": func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			go func() { _ = client.Close(context.Background()) }()
			time.Sleep(50 * time.Millisecond)
			return sdk.Allow(), nil
		},
		"interrupts": func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			_, _ = client.Interrupt(ctx)
			return sdk.Allow(), nil
		},
		"after cancel": func(ctx context.Context, _ *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			go func() { _, _ = client.Interrupt(context.Background()) }()
			<-ctx.Done()
			return sdk.Allow(), nil
		},
	} {
		cases["callback "+name] = func(_ *rig, o *sdk.Options) { o.CanUseTool = f }
	}
	cases["callback too slow"] = func(_ *rig, o *sdk.Options) {
		o.PermissionTimeout = 200 * time.Millisecond
		o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
			<-never
			return sdk.Allow(), nil
		}
	}
	hook := func(f func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error), opt ...sdk.HookOption) func(*rig, *sdk.Options) {
		return func(_ *rig, o *sdk.Options) {
			o.AllowedTools = []string{"Bash"}
			o.Hooks = []sdk.Hook{sdk.OnPreToolUse(f, opt...)}
		}
	}
	raw := func(s string) func(*rig, *sdk.Options) {
		return func(_ *rig, o *sdk.Options) {
			o.AllowedTools = []string{"Bash"}
			o.Hooks = []sdk.Hook{sdk.OnHookEvent("PreToolUse", func(context.Context, *session.HookCall) (json.RawMessage, error) { return json.RawMessage(s), nil })}
		}
	}
	cases["hook error"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.PreToolUseOutput{}, errors.New("x")
	})
	cases["hook panic"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) { panic("x") })
	cases["hook goexit"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		runtime.Goexit()
		return sdk.PreToolUseOutput{}, nil
	})
	cases["hook slow"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		<-never
		return sdk.PreToolUseOutput{}, nil
	}, sdk.Timeout(time.Second))
	cases["hook slow 1ms"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		<-never
		return sdk.PreToolUseOutput{}, nil
	}, sdk.Timeout(time.Millisecond))
	cases["hook slow negative"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		time.Sleep(100 * time.Millisecond)
		return sdk.DenyPreToolUse("no"), nil
	}, sdk.Timeout(-time.Second))
	cases["hook bad matcher js only"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.DenyPreToolUse("no"), nil
	}, sdk.Match("(?<=B)ash"))
	cases["hook matcher lower"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.DenyPreToolUse("no"), nil
	}, sdk.Match("bash"))
	cases["hook matcher re2-only"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.DenyPreToolUse("no"), nil
	}, sdk.Match("(?i)bash"))
	cases["hook matcher posix class"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.DenyPreToolUse("no"), nil
	}, sdk.Match("[[:alpha:]]+"))
	cases["hook matcher anchored \\A"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.DenyPreToolUse("no"), nil
	}, sdk.Match(`\ABash\z`))
	cases["hook matcher \\QBash\\E"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.DenyPreToolUse("no"), nil
	}, sdk.Match(`\QBash\E`))
	cases["hook matcher (?P<x>Bash)"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.DenyPreToolUse("no"), nil
	}, sdk.Match(`(?P<x>Bash)`))
	cases["hook matcher (?s:Bash)"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.DenyPreToolUse("no"), nil
	}, sdk.Match(`(?s:B.sh)`))
	cases["hook matcher \\p{L}+"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.DenyPreToolUse("no"), nil
	}, sdk.Match(`\p{L}+`))
	cases["hook matcher x{,3}"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.DenyPreToolUse("no"), nil
	}, sdk.Match(`Bas{,3}h`))
	cases["hook matcher Bash\\b"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.DenyPreToolUse("no"), nil
	}, sdk.Match(`Bash\b`))
	cases["hook matcher space"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.DenyPreToolUse("no"), nil
	}, sdk.Match(` Bash`))
	cases["hook matcher 'Bash | Write'"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.DenyPreToolUse("no"), nil
	}, sdk.Match(`Bash | Write`))
	cases["hook matcher 'Bash, Write'"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.DenyPreToolUse("no"), nil
	}, sdk.Match(`Bash, Write`))
	cases["hook matcher Ba"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.DenyPreToolUse("no"), nil
	}, sdk.Match(`Ba`))
	cases["hook matcher B.*"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.DenyPreToolUse("no"), nil
	}, sdk.Match(`B.*`))
	cases["hook decision typo"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.PreToolUseOutput{PermissionDecision: "Deny"}, nil
	})
	cases["hook decision block"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		return sdk.PreToolUseOutput{PermissionDecision: "block"}, nil
	})
	cases["hook deny+async"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		d := sdk.DenyPreToolUse("no")
		d.Async = true
		return d, nil
	})
	cases["hook deny+continue"] = hook(func(context.Context, *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		d := sdk.DenyPreToolUse("no")
		d.UpdatedInput = cmd("touch made")
		return d, nil
	})
	for _, s := range []string{`null`, `true`, `"deny"`, `[]`, `7`, `{"hookSpecificOutput":null}`, `{"hookSpecificOutput":{"permissionDecision":"deny"}}`, `{"hookSpecificOutput":{"hookEventName":"PostToolUse","permissionDecision":"deny"}}`, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"DENY"}}`, `{"decision":"deny"}`, `{"decision":"block"}`, `{"continue":false}`, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":5}}`, `{"hookSpecificOutput":"deny"}`, `{"a":`, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny"}} x`, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"allow","permissionDecision":"deny"}}`, `{"hookSpecificOutput":{"hookEventName":"PreToolUse","permissionDecision":"deny","permissionDecision":"allow"}}`} {
		cases["hook raw "+s] = raw(s)
	}
	for name, set := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			o := r.options()
			set(r, o)
			client = sdk.NewClient(o)
			if err := client.Connect(r.ctx); err != nil {
				t.Logf("connect: %v", err)
				return
			}
			r.model.Script("one", modelapi.Say(shell("touch made")), modelapi.Say(modelapi.Text("done")))
			turn, err := client.Send(r.ctx, sdk.UserText("go [[scn:one]]"))
			if err != nil {
				t.Fatal(err)
			}
			all, err := sdk.Collect(turn.Messages(r.ctx))
			var text string
			for _, m := range all {
				for _, res := range sdk.ToolResults(m) {
					text += res.Content.Text()
				}
			}
			_ = client.Close(context.Background())
			t.Logf("made=%v made2=%v err=%v %.100q warnings=%v", made(r, "made"), made(r, "made2"), err, text, client.Warnings())
		})
	}
}

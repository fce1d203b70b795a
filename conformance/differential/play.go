package differential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// Model is the model of cases that name none.
const Model = "claude-opus-5-5"

// Agent is who plays a case.
type Agent struct {
	// CLI is the path of Claude Code; "": the embedded agent.
	CLI string
	// Tools are the built-in tools that are offered; nil: those that the agent offers.
	Tools []string
	// Bare: what this host, and not the agent, adds to the environment of commands is left out, as
	// in recordings, which were made without it.
	Bare bool
	// Results is how many results to wait for; 0: as many as there are prompts, and those of
	// turns that end background work.
	Results int
}

// limit is how long a case may take.
const limit = 45 * time.Second

// standstill is how long a case is played that Claude Code is known not to end.
const standstill = 10 * time.Second

// Play plays a case in a new directory, which it removes.
func Play(ctx context.Context, c *Case, a Agent) (*Observation, error) {
	ctx, cancel := context.WithTimeout(ctx, limit) //nolint:contextcheck // a test's
	defer cancel()
	top, err := os.MkdirTemp("", "w")
	if err != nil {
		return nil, err
	}
	// Claude Code estimates the cost of an answer that breaks off by its length, so paths have one length.
	digits := strings.TrimPrefix(filepath.Base(top), "w")
	root := filepath.Join(filepath.Dir(top), "w"+strings.Repeat("0", max(0, 10-len(digits)))+digits)
	if root != top {
		if err := os.Rename(top, root); err != nil {
			return nil, err
		}
	}
	defer func() { _ = os.RemoveAll(root) }()
	if root, err = filepath.EvalSymlinks(root); err != nil {
		return nil, err
	}
	if c, err = c.at(root); err != nil {
		return nil, err
	}
	place, err := newPlace(root, c)
	if err != nil {
		return nil, err
	}
	s := &script{c: c, place: place}
	server, err := modelapi.Start(modelapi.Config{WorkDir: place.Proj, Answer: s.answer, CountTokens: c.tokens})
	if err != nil {
		return nil, err
	}
	defer func() { _ = server.Close() }()
	before, err := place.files()
	if err != nil {
		return nil, err
	}
	t := newTap()
	o, err := a.options(c, place, server.URL(), t)
	if err != nil {
		return nil, err
	}
	playing, stop := ctx, func() {}
	if a.CLI != "" && c.Endless {
		playing, stop = context.WithTimeout(ctx, standstill) //nolint:contextcheck // as above
	}
	defer stop()
	log, err := drive(playing, c, a, o, t)
	endless := err != nil && playing != ctx && playing.Err() != nil && ctx.Err() == nil
	if err != nil && !endless {
		return nil, fmt.Errorf("%w (after %d lines)", err, len(log))
	}
	after, err := place.files()
	if err != nil {
		return nil, err
	}
	seen := observe(c, place, server, log, changes(before, after))
	seen.Endless, seen.times = endless, place.times
	return seen, nil
}

// tokens is the answer of the endpoint that counts them.
func (c *Case) tokens(modelapi.Request) int {
	n := 10
	_ = json.Unmarshal(c.CountTokens, &n) // none
	return n
}

// options are the same for both agents, but for what starts them.
func (a *Agent) options(c *Case, p *Place, url string, t *tap) (*sdk.Options, error) {
	env := map[string]string{
		"HOME": p.Home, "TMPDIR": p.Tmp, "PATH": "/usr/local/bin:/usr/bin:/bin", "SHELL": "/bin/bash",
		"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-test-offline",
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "ENABLE_TOOL_SEARCH": "false",
	}
	if os.Getuid() == 0 {
		env["IS_SANDBOX"] = "1" // without it Claude Code lets root not skip permissions
	}
	maps.Copy(env, c.Env)
	o := &sdk.Options{
		Cwd: p.Proj, CleanEnv: true, Env: env, Model: Model,
		PermissionMode: sdk.PermissionMode(c.Mode), AllowDangerouslySkipPermissions: c.Mode == "bypassPermissions",
		AllowedTools: c.Settings.Permissions.Allow, DisallowedTools: c.Settings.Permissions.Deny,
		IncludePartialMessages: c.Partial, CloseTimeout: 5 * time.Second,
	}
	o.Limits.Retry = -1 // the agent decides when it gives up
	if a.Bare {
		env["IS_SANDBOX"], env["OLDPWD"], env["CLAUDE_CODE_ENTRYPOINT"] = "1", p.Proj, "sdk-cli"
		o.UnsetEnv = []string{"CLAUDE_AGENT_SDK_CLIENT_APP", "CLAUDE_AGENT_SDK_VERSION"}
	}
	if a.Tools != nil {
		o.Tools = sdk.Only(a.Tools...)
	}
	if a.Tools == nil && slices.Contains(c.Calls(), "WebFetch") {
		o.Tools = sdk.Only(c.Calls()...)
	}
	if c.Init.SystemPrompt != nil {
		o.SystemPrompt = sdk.PromptText(c.Init.SystemPrompt...)
	}
	if c.Init.AppendSystemPrompt != "" {
		o.SystemPrompt = session.SystemPrompt{Preset: true, Append: c.Init.AppendSystemPrompt}
	}
	o.MCPServers = c.servers()
	for i, f := range c.Flags {
		name, value, _ := strings.Cut(f, "=")
		if i > 0 && c.Flags[i-1] == mcpFlag {
			continue // it is the value
		}
		switch name {
		case mcpFlag: // see servers
		case "--model":
			o.Model = value
		case "--json-schema":
			o.OutputFormat = sdk.JSONSchema(json.RawMessage(value))
		case "--add-dir":
			o.AdditionalDirectories = append(o.AdditionalDirectories, value)
		case "--max-turns":
			n, err := strconv.Atoi(value)
			if err != nil {
				return nil, err
			}
			o.MaxTurns = sdk.Some(n)
		case "--include-partial-messages":
			o.IncludePartialMessages = true
		case "--effort":
			o.Effort = value
		case "--fallback-model":
			// The vendor's alias is that of Claude Code 2.1.329 (observed); other agents do not know it.
			o.FallbackModel = strings.Replace(value, "haiku", "claude-haiku-5-5", 1)
		case "--thinking":
			o.Thinking = &session.Thinking{Type: value}
		case "--max-thinking-tokens":
			n, err := strconv.Atoi(value)
			if err != nil {
				return nil, err
			}
			o.MaxThinkingTokens = sdk.Some(n)
		default:
			return nil, fmt.Errorf("the player does not know the flag %s", name)
		}
	}
	for i, h := range c.Hooks {
		var more []sdk.HookOption
		if h.Matcher != "" {
			more = append(more, sdk.Match(h.Matcher))
		}
		o.Hooks = append(o.Hooks, sdk.OnHookEvent(h.Event, func(context.Context, *session.HookCall) (json.RawMessage, error) {
			return c.Hooks[i].Answer, nil
		}, more...))
	}
	if c.Asker == nil || *c.Asker {
		o.CanUseTool = c.asker()
	}
	if c.Host {
		server, err := hostTools()
		if err != nil {
			return nil, err
		}
		o.SDKMCPServers = []*sdk.MCPServer{server}
	}
	if a.CLI != "" {
		o.Backend, o.Spawner, o.SettingSources = sdk.Claude(sdk.ClaudeConfig{Path: a.CLI}), t.spawner(), sdk.None()
		return o, nil
	}
	if older.MatchString(o.Model) && c.Env["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] == "" {
		// Claude Code 2.1.329 compacts conversations with these models when the endpoint refuses them,
		// and never before (observed up to 975,000 tokens). This agent does it before, unless told not to.
		env["DISABLE_AUTO_COMPACT"] = "1"
	}
	var skills []string
	if slices.Contains(c.Calls(), "Skill") {
		skills = []string{".claude/skills", ".claude/commands"}
	}
	m := model.NewAnthropic(model.AnthropicConfig{Config: model.Config{
		URL: url + "/v1", Key: func(context.Context) (string, error) { return "sk-test-offline", nil },
		Idle: idle(c.Env),
	}})
	o.Backend = t.listen(embedded.New(embedded.Config{Model: m, Dir: filepath.Join(p.Home, ".claude"), Retries: retries(c.Env), Web: pages{}, Skills: skills}))
	return o, nil
}

// older are the older models of Claude Code's vendor.
var older = regexp.MustCompile(`^claude-[a-z]+-[1-4]\b`)

// idle and retries are what the CLI reads from its environment, and the embedded agent has in
// its configuration.
func idle(env map[string]string) time.Duration {
	n, _ := strconv.Atoi(env["CLAUDE_STREAM_IDLE_TIMEOUT_MS"]) // 0: the default
	return time.Duration(n) * time.Millisecond
}

func retries(env map[string]string) int {
	text, set := env["CLAUDE_CODE_MAX_RETRIES"]
	n, _ := strconv.Atoi(text)
	if set && n == 0 {
		return -1
	}
	return n
}

// asker answers as the case says, and allows when it says nothing.
func (c *Case) asker() sdk.CanUseTool {
	var mu sync.Mutex
	asked := 0
	return func(ctx context.Context, r *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
		mu.Lock()
		n := asked
		asked++
		mu.Unlock()
		result := sdk.Allow()
		if n >= len(c.Answers) {
			return result, nil
		}
		var a struct {
			Hold    bool           `json:"hold"`
			Answers map[string]any `json:"answers"`
		}
		if err := json.Unmarshal(c.Answers[n], &a); err != nil {
			return result, err
		}
		if a.Hold {
			<-ctx.Done()
			return result, context.Cause(ctx)
		}
		result = sdk.PermissionResult{}
		if err := json.Unmarshal(c.Answers[n], &result); err != nil {
			return result, err
		}
		result.Extra = nil
		if a.Answers != nil {
			var in map[string]any
			if err := json.Unmarshal(r.Input, &in); err != nil {
				return result, err
			}
			in["answers"] = a.Answers
			var err error
			if result.UpdatedInput, err = json.Marshal(in); err != nil {
				return result, err
			}
		}
		return result, nil
	}
}

type echoInput struct {
	X string `json:"x"`
}

// hostTools are tools of this process.
func hostTools() (*sdk.MCPServer, error) {
	return sdk.NewMCPServer("srv", "1.2.3",
		sdk.NewTool("echo", "Says it again.", func(_ context.Context, in echoInput) (*sdk.ToolResult, error) {
			return sdk.Text("again: " + in.X), nil
		}),
		sdk.NewTool("boom", "Fails.", func(context.Context, struct{}) (*sdk.ToolResult, error) {
			return nil, fmt.Errorf("boom")
		}),
		sdk.NewTool("slow", "Takes its time.", func(ctx context.Context, _ struct{}) (*sdk.ToolResult, error) {
			timer := time.NewTimer(300 * time.Millisecond)
			defer timer.Stop()
			select {
			case <-timer.C:
			case <-ctx.Done():
			}
			return sdk.Text("slow done"), nil
		}),
	)
}

// Tools are the tools that the embedded agent offers.
func Tools(ctx context.Context) ([]string, error) {
	c, err := decode(json.RawMessage(`{"name":"tools","mode":"default"}`))
	if err != nil {
		return nil, err
	}
	o, err := Play(ctx, c, Agent{})
	if err != nil {
		return nil, err
	}
	for _, f := range o.Frames {
		if frame, ok := f.Value.(map[string]any); ok && f.Key == "system/init" {
			var names []string
			list, _ := frame["tools"].([]any)
			for _, name := range list {
				names = append(names, fmt.Sprint(name))
			}
			return names, nil
		}
	}
	return nil, errors.New("the embedded agent said no system/init")
}

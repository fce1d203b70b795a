package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/sdk"
)

// settings is what the arguments of a command say.
type settings struct {
	words      []string // the prompt
	config     string   // a file of options, or ""
	agent      string   // "" for whatever is installed
	path       string
	endpoint   string         // of the embedded agent's model
	key        string         // the variable of its key; "": none
	demo       *demonstration // nil: another agent
	unreal     bool           // the agent plays the built-in script, whose commands are not run
	output     string
	partial    bool
	quiet      bool
	window     windowSettings
	inspect    bool   // open the socket that troupe ps finds
	socket     string // of troupe ps; "" for all in the default directory
	asJSON     bool
	status     string // of troupe ctl
	into       string // of troupe man
	like       bool   // of troupe approvals
	yes, no    bool
	level      slog.Level
	timeout    time.Duration
	appendText string
	batch      batchSettings // of troupe batch
	acp        acpSettings   // of troupe acp
	machines   machineSettings
	opts       sdk.Options
	given      []givenFlag  // in their order
	file       sdk.Options  // of --config
	agents     []Agent      // that the program adds
	rest       restSettings // of troupe sessions
}

// Values of --output.
const (
	outputText   = "text"
	outputJSON   = "json"
	outputStream = "stream-json"
)

func quietFlag() []flagSpec {
	return slices.DeleteFunc(outputFlags(), func(f flagSpec) bool { return f.name != "quiet" })
}

func agentFlags() []flagSpec {
	return []flagSpec{
		{name: "agent", short: "a", arg: "NAME", help: "claude, qoder, embedded (in this program, with --model), demo (the same with a few built-in rules as its model), scripted[:FILE] (a script in YAML), or acp:COMMAND (an agent of the Agent Client Protocol); default: embedded if --model says where the model is, else the installed one, else demo", set: text(func(s *settings) *string { return &s.agent })},
		{name: "config", arg: "FILE", help: "a file of options in YAML or JSON; flags override it", set: text(func(s *settings) *string { return &s.config })},
		{name: "path", arg: "FILE", option: "PathToExecutable", help: "the agent's program, if it is not on PATH; needs --agent", set: text(func(s *settings) *string { return &s.path })},
		{name: "model", short: "m", arg: "NAME", option: "Model", help: "the model; anthropic/NAME, openai/NAME or URL#NAME is one of the embedded agent, as is the variable TROUPE_MODEL", set: text(func(s *settings) *string { return &s.opts.Model })},
		{name: "system-prompt", arg: "TEXT", option: "SystemPrompt", help: "replaces the agent's system prompt", set: func(s *settings, v string) error { s.opts.SystemPrompt = sdk.PromptText(v); return nil }},
		{name: "append-system-prompt", arg: "TEXT", help: "adds to the agent's system prompt", set: text(func(s *settings) *string { return &s.appendText })},
		{name: "max-turns", arg: "N", option: "MaxTurns", help: "the most model calls of a turn", set: func(s *settings, v string) error {
			n, err := strconv.Atoi(v)
			if err != nil {
				return fmt.Errorf("%q is not a number", v)
			}
			s.opts.MaxTurns = sdk.Some(n)
			return nil
		}},
		{name: "timeout", short: "t", arg: "TIME", help: "the time limit of the whole run, such as 90s or 10m", set: func(s *settings, v string) error {
			d, err := time.ParseDuration(v)
			if err != nil || d <= 0 {
				return fmt.Errorf("%q is not a time; write 90s or 10m", v)
			}
			s.timeout = d
			return nil
		}},
		{name: "cwd", short: "C", arg: "DIR", option: "Cwd", help: "the working directory of the agent", set: text(func(s *settings) *string { return &s.opts.Cwd })},
		{name: "add-dir", arg: "DIR", option: "AdditionalDirectories", help: "another directory that the agent may work in; may be repeated", set: func(s *settings, v string) error {
			s.opts.AdditionalDirectories = append(s.opts.AdditionalDirectories, v)
			return nil
		}},
		{name: "env", short: "e", arg: "NAME=VALUE", option: "Env", help: "sets a variable in the agent's environment; may be repeated", set: setEnv},
		{name: "settings", arg: "FILE|JSON", option: "Settings", help: "settings of the agent", set: func(s *settings, v string) error {
			if strings.HasPrefix(strings.TrimSpace(v), "{") {
				s.opts.Settings, s.opts.SettingsPath = json.RawMessage(v), ""
			} else {
				s.opts.Settings, s.opts.SettingsPath = nil, v
			}
			return nil
		}},
		{name: "mcp-config", arg: "FILE|JSON", option: "MCPServers", help: "MCP servers for the agent, under the key mcpServers", set: setMCP},
	}
}

func outputFlags() []flagSpec {
	return []flagSpec{
		flagSpec{name: "output", short: "o", arg: "FORM", help: "text (as it is written), json (one object at the end), or stream-json (each message of the agent); default: text"}.of(func(s *settings) *string { return &s.output }, outputText, outputJSON, outputStream),
		{name: "json", help: "the same as --output json", set: func(s *settings, _ string) error { s.output = outputJSON; return nil }},
		{name: "partial", help: "with stream-json: also prints messages while they are written", set: on(func(s *settings) *bool { return &s.partial })},
		{name: "quiet", short: "q", help: "do not print tool calls and remarks on stderr", set: on(func(s *settings) *bool { return &s.quiet })},
	}
}

func permissionFlags() []flagSpec {
	return []flagSpec{
		{name: "yes", short: "y", help: "allow every call that needs permission", set: on(func(s *settings) *bool { return &s.yes })},
		{name: "no", help: "deny every call that needs permission", set: on(func(s *settings) *bool { return &s.no })},
		{name: "permission-mode", arg: "MODE", option: "PermissionMode", help: "the agent's permission mode: default, plan, acceptEdits, dontAsk, …", set: func(s *settings, v string) error {
			s.opts.PermissionMode = sdk.PermissionMode(v)
			return nil
		}},
		{name: "allow-dangerously-skip-permissions", option: "AllowDangerouslySkipPermissions", help: "needed for --permission-mode bypassPermissions", set: on(func(s *settings) *bool { return &s.opts.AllowDangerouslySkipPermissions })},
		{name: "allowed-tools", arg: "RULES", option: "AllowedTools", help: "tools that need no permission, such as 'Read,Bash(git *)'; may be repeated", set: rules(func(s *settings) *[]string { return &s.opts.AllowedTools })},
		{name: "disallowed-tools", arg: "RULES", option: "DisallowedTools", help: "tools that are denied; may be repeated", set: rules(func(s *settings) *[]string { return &s.opts.DisallowedTools })},
		{name: "tools", arg: "NAMES", option: "Tools", help: "the built-in tools that the model sees: names, all, or none", set: func(s *settings, v string) error {
			switch v {
			case "all":
				s.opts.Tools = sdk.All()
			case "none", "":
				s.opts.Tools = sdk.None()
			default:
				s.opts.Tools = sdk.Only(split(v)...)
			}
			return nil
		}},
	}
}

func sessionFlags() []flagSpec {
	return []flagSpec{
		{name: "resume", short: "r", arg: "ID", option: "Resume", help: "continue the session with this id, or with the one of this directory that begins so", set: text(func(s *settings) *string { return &s.opts.Resume })},
		{name: "continue", short: "c", option: "Continue", help: "continue the last session in this directory", set: on(func(s *settings) *bool { return &s.opts.Continue })},
		{name: "fork-session", option: "ForkSession", help: "with --resume or --continue: continue a copy under a new id", set: on(func(s *settings) *bool { return &s.opts.ForkSession })},
	}
}

func logFlags() []flagSpec {
	return []flagSpec{
		{name: "verbose", short: "v", help: "log all events of the session; the same as --log-level debug", set: func(s *settings, _ string) error { s.level = slog.LevelDebug; return nil }},
		{name: "log-level", arg: "LEVEL", help: "debug, info, warn or error; default: warn", set: func(s *settings, v string) error {
			if s.level.UnmarshalText([]byte(v)) != nil {
				return fmt.Errorf("%q is not debug, info, warn or error", v)
			}
			return nil
		}},
		{name: "inspect", help: "show the session to troupe ps, troupe top and troupe mcp; so does the variable TROUPE_INSPECT=1", set: on(func(s *settings) *bool { return &s.inspect })},
		helpFlag(),
	}
}

// setting is the type of flagSpec.set.
type setting = func(*settings, string) error

func text(field func(*settings) *string) setting {
	return func(s *settings, v string) error {
		if v == "" {
			return errors.New("its value is empty")
		}
		*field(s) = v
		return nil
	}
}

func on(field func(*settings) *bool) setting {
	return func(s *settings, _ string) error { *field(s) = true; return nil }
}

// of is the flag with one of these values.
func (f flagSpec) of(field func(*settings) *string, values ...string) flagSpec {
	f.values, f.set = values, func(s *settings, v string) error {
		if !slices.Contains(values, v) {
			return fmt.Errorf("%q is not one of %s", v, strings.Join(values, ", "))
		}
		*field(s) = v
		return nil
	}
	return f
}

func rules(field func(*settings) *[]string) setting {
	return func(s *settings, v string) error {
		*field(s) = append(*field(s), split(v)...)
		return nil
	}
}

func setEnv(s *settings, v string) error {
	name, value, ok := strings.Cut(v, "=")
	if !ok || name == "" {
		return fmt.Errorf("%q is not NAME=VALUE", name+strings.Repeat("=…", strings.Count(v[len(name):min(len(name)+1, len(v))], "="))) // the value may be a secret
	}
	if s.opts.Env == nil {
		s.opts.Env = map[string]string{}
	}
	s.opts.Env[name] = value
	s.opts.UnsetEnv = slices.DeleteFunc(s.opts.UnsetEnv, func(gone string) bool { return gone == name })
	return nil
}

func setMCP(s *settings, v string) error {
	raw := []byte(v)
	if !strings.HasPrefix(strings.TrimSpace(v), "{") {
		var err error
		if raw, err = os.ReadFile(v); err != nil {
			return err
		}
	}
	servers, err := readServers(raw)
	if err != nil {
		return fmt.Errorf("not an MCP configuration: %w", err)
	}
	s.opts.MCPServers, s.opts.MCPConfigPath = servers, ""
	return nil
}

// settings are those of an empty command line.
func (a *app) settings() *settings {
	s := &settings{output: outputText, level: slog.LevelWarn, agents: a.process.agents}
	s.batch.job.EqualFailures = defaultEqualFailures
	s.rest.format = "markdown"
	return s
}

// completeSession checks what the flags of a command that starts an agent say together.
func (s *settings) completeSession() error {
	if err := s.appendPrompt(); err != nil {
		return err
	}
	if s.opts.SystemPrompt.IsZero() && !s.inCloud() && !s.isACP() {
		// The zero value is Claude Code without any prompt, which a person at a
		// terminal does not expect.
		s.opts.SystemPrompt = sdk.PresetPrompt(s.appendText)
	}
	if s.yes && s.no {
		return &usageError{"--yes and --no contradict each other", "leave one of them out"}
	}
	if s.partial && s.output != outputStream {
		return &usageError{"--partial is for --output stream-json", "leave it out: text always comes as it is written"}
	}
	s.opts.IncludePartialMessages = s.partial || s.output == outputText && !s.inCloud()
	return nil
}

// appendPrompt adds --append-system-prompt to the prompt that is kept.
func (s *settings) appendPrompt() error {
	prompt := &s.opts.SystemPrompt
	switch {
	case s.appendText == "" || prompt.IsZero():
		if s.appendText != "" {
			*prompt = sdk.PresetPrompt(s.appendText)
		}
	case !prompt.Preset:
		return &usageError{"--append-system-prompt adds to the agent's own prompt, and --system-prompt replaces it", "leave one of them out"}
	default:
		prompt.Append = s.appendText
	}
	return nil
}

package command

import (
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/sdk"
)

func TestUsageErrors(t *testing.T) {
	t.Parallel()
	both := t.TempDir()
	for _, name := range []string{"claude", "qodercli"} {
		require.NoError(t, os.WriteFile(filepath.Join(both, name), nil, 0o700))
	}
	for args, want := range map[string]string{
		"rnu":                                `there is no command "rnu"; did you mean troupe run?`,
		"fix the tests":                      `there is no command "fix"; to give it to an agent: troupe run "fix"`,
		"--agent claude":                     `a flag comes before the command; write troupe run [flags] PROMPT`,
		"help nothing":                       `there is no command "nothing"; to give it to an agent: troupe run "nothing"`,
		"run --modell x hi":                  `there is no flag --modell; did you mean --model?`,
		"run -x hi":                          `there is no flag -x; troupe help run lists them all; put -- before a prompt that begins with a dash`,
		"run -5s hi":                         `there is no flag -5s; troupe help run lists them all; put -- before a prompt that begins with a dash`,
		"run -moodel opus hi":                `there is no flag -moodel; did you mean --model?`,
		"run -hq hi":                         `there is no flag -hq; troupe help run lists them all; put -- before a prompt that begins with a dash`,
		"run -y= hi":                         `--yes takes no value; write it without =`,
		"run -=x hi":                         `there is no flag -; troupe help run lists them all; put -- before a prompt that begins with a dash`,
		"run ---yes hi":                      `there is no flag ---yes; did you mean --yes?`,
		"run -m= hi":                         `--model: its value is empty`,
		"--agent=claude run hi":              `a flag comes before the command; write troupe run [flags] PROMPT`,
		"-q run hi":                          `a flag comes before the command; write troupe run [flags] PROMPT`,
		"-- run hi":                          `a flag comes before the command; write troupe run [flags] PROMPT`,
		"sessions --json list":               `a flag comes before the command; write troupe sessions COMMAND [flags]`,
		"sessions list --nothing":            `there is no flag --nothing; troupe help sessions lists them all`,
		"batch -j8 tasks":                    `there is no flag -j8; troupe help batch lists them all`,
		"options run --nothing":              `there is no flag --nothing; troupe help options lists them all; put -- before a prompt that begins with a dash`,
		"run hi --model":                     `--model needs a value; write --model NAME`,
		"run hi --model=":                    `--model: its value is empty`,
		"run hi --yes=true":                  `--yes takes no value; write it without =true`,
		"run hi --yes --no":                  `--yes and --no contradict each other; leave one of them out`,
		"run hi --output xml":                `--output: "xml" is not one of text, json, stream-json`,
		"run hi --partial":                   `--partial is for --output stream-json; leave it out: text always comes as it is written`,
		"run hi --max-turns many":            `--max-turns: "many" is not a number`,
		"run hi --timeout 90":                `--timeout: "90" is not a time; write 90s or 10m`,
		"run hi --timeout -1s":               `--timeout: "-1s" is not a time; write 90s or 10m`,
		"run hi --env PATH":                  `--env: "PATH" is not NAME=VALUE`,
		"run hi --log-level loud":            `--log-level: "loud" is not debug, info, warn or error`,
		"run hi --mcp-config {}":             `--mcp-config: not an MCP configuration: the key "mcpServers" is missing`,
		"run hi --mcp-config /none.json":     `--mcp-config: open /none.json: no such file or directory`,
		"run hi --agent gpt":                 `--agent: "gpt" is not known; use claude, qoder, embedded, demo, scripted[:FILE] or acp:COMMAND`,
		"run hi --agent acp":                 `--agent: acp has no command; write it after the colon, such as --agent "acp:gemini --experimental-acp"`,
		"run hi --agent acp:\"x":             `--agent: the command of acp: 1:1: reached EOF without closing quote ` + "`\"`",
		"run hi --agent acp:x --path /x":     `--path is not for an agent of the Agent Client Protocol: --agent has its whole command; leave it out`,
		"run hi --agent claude:x":            `--agent: only scripted takes a file, and only acp a command`,
		"run hi --agent scripted:/none.yaml": `load a script: open /none.yaml: no such file or directory`,
		"run hi --agent scripted --path /x":  `--path is not for the scripted agent, which is a part of this program; leave it out`,
		"run hi --path /x":                   `--path does not say whose program it is; add --agent claude or --agent qoder`,
		"run hi --env PATH=" + both:          `there is more than one agent: claude, qoder; say which with --agent`,
		"run hi --system-prompt a --append-system-prompt b": `--append-system-prompt adds to the agent's own prompt, and --system-prompt replaces it; leave one of them out`,
		"chat hi":         `troupe chat reads its prompts from stdin; leave the words out, or write troupe run "PROMPT"`,
		"chat --yes --no": `--yes and --no contradict each other; leave one of them out`,
		"caht":            `there is no command "caht"; did you mean troupe chat?`,
		"run":             `the prompt is empty; write troupe run "PROMPT", or give it on stdin`,
	} {
		w := newWorld()
		w.getenv = func(string) string { return "" }
		arguments := strings.Fields(args)
		if args == "run" {
			arguments = append(arguments, "--agent", "scripted")
		}
		assert.Equal(t, exitUsage, w.run(arguments...), args)
		assert.Equal(t, "troupe: "+want+"\n", w.err.String(), args)
		assert.Empty(t, w.out.String(), args)
	}
}

func TestNoPromptAtATerminal(t *testing.T) {
	t.Parallel()
	w := newWorld()
	w.stdinTTY = true
	assert.Equal(t, exitUsage, w.run("run"))
	assert.Equal(t, "troupe: there is no prompt; write troupe run \"PROMPT\", or - to type it\n", w.err.String())
}

func TestSettings(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "mcp.json")
	require.NoError(t, os.WriteFile(config, []byte(`{"mcpServers": {"db": {"command": "db-server"}}}`), 0o600))
	s, err := parseRun(t, []string{"fix", "-m", "opus", "--agent=claude", "the", "-path", "/x", "--max-turns", "0",
		"--allowed-tools", "Read,Bash(git log, git diff)", "--allowed-tools=Edit", "--disallowed-tools", "Write",
		"-e", "A=1", "--env", "B=x=y", "--add-dir", "/a", "--add-dir", "/b", "-C", "/w", "-t", "2m", "--tools", "Read, Bash",
		"--settings", `{"a": 1}`, "--mcp-config", config, "--permission-mode", "plan", "--append-system-prompt", "-be kind",
		"-r", "id", "--continue", "--fork-session", "-q", "-y", "--log-level", "info", "--", "--tests", "-"})
	require.NoError(t, err)
	assert.Equal(t, []string{"fix", "the", "--tests", "-"}, s.words)
	assert.Equal(t, []any{"claude", "/x", true, true, false, 2 * time.Minute, slog.LevelInfo},
		[]any{s.agent, s.path, s.quiet, s.yes, s.no, s.timeout, s.level})
	assert.Equal(t, sdk.Options{
		Model: "opus", MaxTurns: sdk.Some(0), Cwd: "/w", AdditionalDirectories: []string{"/a", "/b"},
		AllowedTools: []string{"Read", "Bash(git log, git diff)", "Edit"}, DisallowedTools: []string{"Write"},
		Env: map[string]string{"A": "1", "B": "x=y"}, Tools: sdk.Only("Read", "Bash"), Settings: []byte(`{"a": 1}`),
		MCPServers: map[string]sdk.MCPServerConfig{"db": {Command: "db-server"}}, PermissionMode: sdk.ModePlan,
		SystemPrompt: sdk.PresetPrompt("-be kind"), Resume: "id", Continue: true, ForkSession: true, IncludePartialMessages: true,
	}, s.opts)
}

// The flags come first, then the model that says where it is, then what is installed, then
// the demonstration.
func TestChooseAgent(t *testing.T) {
	t.Parallel()
	bin, both := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(bin, "claude"), nil, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(bin, "qodercli"), nil, 0o600)) // cannot be run
	for _, name := range []string{"claude", "qodercli"} {
		require.NoError(t, os.WriteFile(filepath.Join(both, name), nil, 0o700))
	}
	const local = "http://localhost:1/v1#m"
	type env = map[string]string
	for name, c := range map[string]struct {
		env          env
		agent, model string
		want, says   string // the agent, or the mistake
	}{
		"on PATH":                    {env{"PATH": "relative:" + bin}, "", "", "claude", ""},
		"by variable":                {env{"QODERCLI_PATH": "/q"}, "", "", "qoder", ""},
		"two":                        {env{"PATH": both}, "", "", "", "more than one agent: claude, qoder"},
		"none":                       {nil, "", "", "demo", ""},
		"named":                      {nil, "qoder", "", "qoder", ""},
		"by protocol":                {env{"FLAG": "a b"}, `acp:npx "$FLAG"`, "", "acp", ""},
		"scripted":                   {env{"PATH": bin}, "scripted", "", "scripted", ""},
		"from a script":              {nil, scriptedSession, "", "scripted", ""},
		"the demonstration":          {env{"PATH": bin}, "demo", "", "demo", ""},
		"embedded without a model":   {env{"PATH": bin}, "embedded", "", "demo", ""},
		"embedded by variable":       {nil, "embedded", "VAR " + local, "embedded", ""},
		"a model with its place":     {env{"PATH": bin}, "", local, "embedded", ""},
		"two, and a model":           {env{"PATH": both}, "", local, "embedded", ""},
		"a provider's model":         {env{"PATH": bin, "OPENAI_API_KEY": "k"}, "", "openai/gpt-5", "embedded", ""},
		"a model without its key":    {env{"PATH": bin}, "", "openai/gpt-5", "", "set OPENAI_API_KEY"},
		"a variable":                 {env{"PATH": bin}, "", "VAR " + local, "embedded", ""},
		"a variable and a program":   {nil, "claude", "VAR " + local, "claude", ""},
		"a variable, no endpoint":    {env{"PATH": bin}, "", "VAR gpt-5", "", "TROUPE_MODEL: "},
		"a model of the program":     {env{"PATH": bin}, "", "sonnet", "claude", ""},
		"a model of none":            {nil, "", "sonnet", "", `"sonnet" is the name of a model alone`},
		"a provider of none":         {nil, "", "foo/bar", "", `no provider is called "foo"`},
		"a provider without a name":  {nil, "", "anthropic/", "", "it has no name"},
		"the model of a named agent": {nil, "claude", "anthropic/x", "claude", ""},
		"an endpoint, no model":      {env{"PATH": bin}, "", "http://localhost:1/v1", "", "no model is named after a #"},
		"one that Bedrock names":     {env{"PATH": bin}, "", "arn:aws:bedrock:us-east-1:1:inference-profile/x", "claude", ""},
		"a model of the scripted":    {nil, "scripted", "haiku", "scripted", ""},
		"a model of the demo":        {nil, "demo", local, "", "the demonstration has its own model"},
		"keys alone":                 {env{"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "TROUPE_MODEL_KEY": "k"}, "", "", "demo", ""},
		"keys and a program":         {env{"PATH": bin, "ANTHROPIC_API_KEY": "k"}, "", "", "claude", ""},
	} {
		s := &settings{agent: c.agent}
		if variable, ok := strings.CutPrefix(c.model, "VAR "); ok {
			c.env = maps.Clone(c.env)
			if c.env == nil {
				c.env = env{}
			}
			c.env["TROUPE_MODEL"] = variable
		} else {
			s.opts.Model = c.model
		}
		err := s.chooseAgent(func(n string) string { return c.env[n] })
		if c.says != "" {
			require.ErrorContains(t, err, c.says, name)
			continue
		}
		require.NoError(t, err, name)
		assert.Equal(t, c.want, s.agent, name)
		assert.Equal(t, c.want, s.opts.Backend.AgentName(), name)
		assert.Equal(t, c.want == "qoder", s.opts.Auth != nil, name)
		assert.Equal(t, c.want == "demo", s.demo != nil, name)
		assert.Empty(t, s.opts.Cwd, name+": to choose makes no directory")
	}
}

func TestQoderTokenFromTheEnvironment(t *testing.T) {
	t.Parallel()
	s := &settings{agent: "qoder"}
	err := s.chooseAgent(func(n string) string { return map[string]string{"QODER_PERSONAL_ACCESS_TOKEN": "t"}[n] })
	require.NoError(t, err)
	assert.Equal(t, sdk.AccessTokenFromEnv(""), s.opts.Auth)
}

// A script for qodercli is spoken to as qodercli is.
func TestQoderScript(t *testing.T) {
	t.Parallel()
	w := newWorld()
	assert.Equal(t, exitOK, w.run("run", "--agent", script(t, "dialect: qoder\nturns: [{steps: [{text: hi}]}]"), "hello"), w.err)
	assert.Equal(t, "hi\n", w.out.String())
}

func TestHelp(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"help": "Usage:", "--help": "Usage:", "-h": "Usage:", "help help": "Usage:", "help version": "troupe version",
		"version": "troupe ", "help run": exitCodes, "run --help": exitCodes, "run -h nonsense": exitCodes,
		"help chat": chatCommands, "chat --help": exitCodes, "-version": "troupe ", "--version": "troupe ", "-help": "Usage:", "help -h": "Usage:",
		"run --yes -help": exitCodes, "version --help": "Usage: troupe version", "help guard": "Usage: troupe guard", "help sessions list": "troupe sessions list:",
		"sessions list -h": "troupe sessions list:", "sessions help": "troupe sessions list:", "help options run": "Usage: troupe options", "options --help run hi": "Usage: troupe options",
	} {
		w := newWorld()
		assert.Equal(t, exitOK, w.run(strings.Fields(args)...), args)
		assert.Contains(t, w.out.String(), want, args)
		assert.Empty(t, w.err.String(), args)
	}
	w := newWorld()
	assert.Equal(t, exitUsage, w.run())
	usage := newWorld()
	assert.Equal(t, exitOK, usage.run("help"))
	assert.Equal(t, usage.out.String(), w.err.String())
	runs, chats := runPage(), chatPage()
	for line := range strings.Lines(runs.String() + chats.String()) {
		assert.LessOrEqual(t, len(strings.TrimSuffix(line, "\n")), width+2, line) // "…" is one letter of three bytes
	}
}

// Every flag is found by its name, and no two share one.
func TestFlagsAreDistinct(t *testing.T) {
	t.Parallel()
	seen, tree := map[string]bool{}, (&app{}).tree()
	flags := runPage()
	for _, f := range flags.flags() {
		assert.NotEmpty(t, f.help, f.name)
		for _, name := range []string{"--" + f.name, "-" + f.short} {
			if name == "-" {
				continue
			}
			assert.False(t, seen[name], name)
			seen[name] = true
			long, err := longFlags(tree, []string{"run", name})
			require.NoError(t, err)
			assert.Equal(t, []string{"run", "--" + f.name}, long)
		}
	}
}

func TestSplit(t *testing.T) {
	t.Parallel()
	for list, want := range map[string][]string{
		"":                     nil,
		" , ,":                 nil,
		"Read":                 {"Read"},
		"Read, Bash(a,b),Edit": {"Read", "Bash(a,b)", "Edit"},
		"Bash(f(a,b), c),X":    {"Bash(f(a,b), c)", "X"},
		"Bash(a,b":             {"Bash(a,b"},
	} {
		assert.Equal(t, want, split(list), list)
	}
}

func TestErrorsSpeakOfFlags(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"option MaxTurns: is -1":                                                    "option --max-turns: is -1",
		`option MCPServers["web"].Tools[0].Name: is empty`:                          `option MCPServers["web"].Tools[0].Name: is empty`,
		"option SystemPrompt.File: is not there; set SystemPrompt.":                 "option SystemPrompt.File: is not there; set --system-prompt.",
		"add Skill to Tools":                                                        "add Skill to --tools",
		"option SettingSources (claude): name the sources in SettingSources (user)": "option settingSources of --config (claude): name the sources in settingSources of --config (user)",
	} {
		assert.Equal(t, want, (&settings{}).inTerms(given))
	}
}

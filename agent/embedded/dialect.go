package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/session"
)

// dialectOf is Claude Code's dialect for an agent that has no files, settings and processes
// of the vendor's.
type dialectOf struct {
	claude.Dialect
	dir string // Config.Dir
}

// Name implements [dialect.Dialect].
func (dialectOf) Name() string { return Name }

// Traits implements [dialect.Dialect].
func (d dialectOf) Traits() dialect.Traits {
	t := d.Dialect.Traits()
	t.ExecutableNames, t.ExecutableEnv, t.ProviderEnv = nil, "", nil
	return t
}

// Validate implements [dialect.Dialect]: options that would do nothing are errors.
func (d dialectOf) Validate(o *dialect.Input) ([]session.Warning, error) {
	warnings, err := d.Dialect.Validate(unboxed(o))
	_, wrong := serversOf(o)
	_, more, box := sandboxOf(o)
	return append(warnings, more...), errors.Join(named(err), unsupported(o), d.unkept(o), wrong, box)
}

// named are mistakes in the options, with this agent's name.
func named(err error) error {
	switch e := err.(type) { //nolint:errorlint // each error of the tree is looked at by itself
	case *session.ConfigError:
		own := *e
		own.Backend = Name
		return &own
	case interface{ Unwrap() []error }:
		var all []error
		for _, one := range e.Unwrap() {
			all = append(all, named(one))
		}
		return errors.Join(all...)
	}
	return err
}

// ModelPolicyAnswer implements [dialect.Dialect]: the answer is that of Qoder's agent.
func (dialectOf) ModelPolicyAnswer(reply protocol.ModelPolicyReply) (json.RawMessage, error) {
	reply.Type = "get_model_policy"
	return json.Marshal(reply)
}

// Launch implements [dialect.Dialect].
func (d dialectOf) Launch(o *dialect.Input) (dialect.Launch, error) {
	_, wrong := serversOf(o)
	_, more, box := sandboxOf(o)
	o = plain(o)
	l, err := d.Dialect.Launch(o)
	l.Warnings = append(l.Warnings, more...)
	l.Names = []string{Name} // for errors: there is no program
	// Rules that are too long for an argument would be in a file of settings, which this agent does not read.
	for i, rules := range [][]string{o.AllowedTools, o.DisallowedTools} {
		flag := []string{"--allowedTools=", "--disallowedTools="}[i]
		if len(rules) > 0 && !slices.ContainsFunc(l.Args, func(a string) bool { return strings.HasPrefix(a, flag) }) {
			l.Args = append(l.Args, flag+strings.Join(rules, ","))
		}
	}
	return l, errors.Join(named(err), unsupported(o), d.unkept(o), wrong, box)
}

// Initialize implements [dialect.Dialect].
func (d dialectOf) Initialize(o *dialect.Input) (json.RawMessage, error) {
	return d.Dialect.Initialize(plain(o))
}

// CheckInitialize implements [dialect.Dialect].
func (d dialectOf) CheckInitialize(o *dialect.Input, response json.RawMessage) error {
	return d.Dialect.CheckInitialize(plain(o), response)
}

// unkept is an error if checkpoints are wanted and the session has no file to keep them in.
func (d dialectOf) unkept(o *dialect.Input) error {
	if o.EnableFileCheckpointing.Or(false) && (!o.PersistSession.Or(true) || d.folder(o) == "") {
		return problem("EnableFileCheckpointing", "needs a session that is stored: its file names the copies of files", "leave PersistSession out, and set Config.Dir, XDG_STATE_HOME or HOME")
	}
	return nil
}

// unsupported are the options that this agent does not have.
func unsupported(o *dialect.Input) error {
	var all []error
	const noVendor = "is about Claude Code's own files, and this agent reads none of them"
	const notYet = "is not supported by this agent yet"
	const noDialogs = "is about dialogs of Claude Code, and this agent has none"
	const noProgram = "is about a program, and this agent is none"
	for _, c := range []struct {
		option string
		set    bool
		why    string
	}{
		{"Settings", len(o.Settings) > 0, noVendor},
		{"SettingsPath", o.SettingsPath != "", noVendor},
		{"ManagedSettings", len(o.ManagedSettings) > 0, noVendor},
		{"SettingSources", o.SettingSources.IsAll() || len(o.SettingSources.Names()) > 0, noVendor},
		{"ProjectConfigRoot", o.ProjectConfigRoot != "", noVendor},
		{"Plugins", len(o.Plugins) > 0, noVendor},
		{"PluginDelivery", o.PluginDelivery != "", noVendor},
		{"Skills", o.Skills.IsAll() || len(o.Skills.Names()) > 0, noVendor},
		{"OnUserDialog", o.OnUserDialog != nil, noDialogs},
		{"SupportedDialogKinds", len(o.SupportedDialogKinds) > 0, noDialogs},
		{"Betas", len(o.Betas) > 0, "belongs to the endpoint: set it in model.AnthropicConfig"},
		{"Spawner", o.Spawner != nil, noProgram},
		{"Executable", o.Executable != "", noProgram},
		{"ExecutableArgs", len(o.ExecutableArgs) > 0, noProgram},
		{"PathToExecutable", o.PathToExecutable != "", noProgram},
		{"ExtraArgs", len(o.ExtraArgs) > 0, noProgram},
		{"Debug", o.Debug, noProgram},
		{"DebugFile", o.DebugFile != "", noProgram},
		{"IncludeHookEvents", o.IncludeHookEvents, "is about hooks that are commands, and this agent has none"},
		{"Agent", o.Agent != "", notYet},
		{"AgentProgressSummaries", o.AgentProgressSummaries, notYet},
		{"PerTaskStopAffordance", o.PerTaskStopAffordance, notYet},
		{"PermissionPromptToolName", o.PermissionPromptToolName != "", notYet},
		{"PermissionPrompts", o.PermissionPrompts != "", notYet},
		{"PromptSuggestions", o.PromptSuggestions, notYet},
		{"TaskBudget", o.TaskBudget.Or(0) != 0, notYet},
		{"Title", o.Title != "", notYet},
		{"ToolAliases", len(o.ToolAliases) > 0, notYet},
		{"ToolConfig", o.ToolConfig != nil, notYet},
	} {
		if c.set {
			all = append(all, problem(c.option, c.why, "leave it out"))
		}
	}
	if f := o.OutputFormat; f != nil {
		if err := shapeProblem(f.Schema); err != nil {
			all = append(all, problem("OutputFormat.Schema", "cannot be checked: "+err.Error(), "give a JSON Schema of an object, in draft 2020-12 or draft-07"))
		}
	}
	all = append(all, unsupportedKinds(o.Agents)...)
	for _, n := range o.Tools.Names() {
		if n != "default" && !slices.Contains(toolNames(), n) && n != agentName {
			all = append(all, problem("Tools", fmt.Sprintf("names %q, which this agent does not have", n), "its tools are "+strings.Join(toolNames(), ", ")))
		}
	}
	return errors.Join(all...)
}

// dirVariable is the variable that replaces Config.Dir. The runtime sets it for sessions with
// private directories.
const dirVariable = "TROUPE_EMBEDDED_DIR"

// folder is where sessions are stored; "": nowhere. given is Config.Dir.
func folder(given string, getenv func(string) string) string {
	if dir := getenv(dirVariable); dir != "" {
		return dir
	}
	if given != "" {
		return given
	}
	if state := getenv("XDG_STATE_HOME"); filepath.IsAbs(state) {
		return filepath.Join(state, "troupe")
	}
	if home := getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".local", "state", "troupe")
	}
	return ""
}

func (d dialectOf) folder(o *dialect.Input) string {
	return folder(d.dir, func(name string) string {
		value, _ := o.LookupEnv(name)
		return value
	})
}

// ConfigDir implements [dialect.Isolator]: there is nothing in it but sessions.
func (d dialectOf) ConfigDir(o *dialect.Input) dialect.ConfigDir {
	return dialect.ConfigDir{Variable: dirVariable, Path: d.folder(o)}
}

// SharedLogin implements [dialect.Isolator]: there is no login.
func (dialectOf) SharedLogin(*dialect.Input, []byte) string { return "" }

// Transcripts implements [dialect.Transcriber].
func (d dialectOf) Transcripts(o *dialect.Input) dialect.Transcripts {
	dir := d.folder(o)
	if dir == "" {
		return dialect.Transcripts{}
	}
	return dialect.Transcripts{Dir: filepath.Join(dir, "projects")}
}

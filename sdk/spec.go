package sdk

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/session"
)

const defaultCloseTimeout = 30 * time.Second

// shared runs the sessions that name no runtime. It has no goroutine while none
// is open.
var shared = sync.OnceValues(func() (*runtime.Runtime, error) { return runtime.New(runtime.Config{}) }) //nolint:gochecknoglobals // documented: programs without a runtime of their own share one

// homeOf is the runtime that the options name.
func homeOf(o *Options) (*runtime.Runtime, error) {
	if o.Runtime == nil {
		return shared()
	}
	rt, ok := o.Runtime.(*runtime.Runtime)
	switch {
	case !ok:
		return nil, &ConfigError{Option: "Runtime", Problem: fmt.Sprintf("is a %T", o.Runtime), Fix: "make it with runtime.New"}
	case rt == nil:
		return shared()
	}
	return rt, nil
}

func closeTimeout(o *Options) time.Duration {
	if o.CloseTimeout == 0 {
		return defaultCloseTimeout
	}
	return o.CloseTimeout
}

// specOf is the options in the terms of package runtime. It finds what is wrong
// with those that only this package knows; the runtime finds the rest.
func specOf(o *Options) (runtime.Spec, error) {
	data := dialect.Input{Options: *o, Facts: dialect.Facts{ParentEnv: os.Environ()}}
	what, err := choose(&data)
	problems := []error{err, unattendedProblem(o)}
	for i := range o.Hooks {
		problems = append(problems, hookProblem(&o.Hooks[i], i))
	}
	problems = append(problems, checkBounds(o)...)
	problems = append(problems, checkServers(o)...)
	problems = append(problems, checkTokens(o)...)
	if o.Spawner == nil { // elsewhere the path may mean another file
		problems = append(problems, readSettings(&data))
	}
	problems = append(problems, readPrompt(&data))
	spec := runtime.Spec{
		Dialect: what.Dialect, Program: what.Program, NewProgram: what.NewProgram, Translate: what.Translate, ProgramPlace: what.Place, ProgramStores: what.Stores,
		Options: data.Options, ParentEnv: data.ParentEnv, SettingsContent: data.SettingsContent, LoadedSettings: loadedSettings(&data, &what),
		Warnings: hookWarnings(o),
	}
	if w, empty := emptyPrompt(o, &what); empty {
		spec.Warnings = append(spec.Warnings, w)
	}
	if err := errors.Join(problems...); err != nil {
		return runtime.Spec{}, errors.Join(err, otherProblems(&spec))
	}
	return spec, nil
}

// otherProblems are the mistakes that the runtime and the dialect would find, so that all
// are reported at once.
func otherProblems(spec *runtime.Spec) error {
	in := dialect.Input{Options: spec.Options, Facts: dialect.Facts{
		ParentEnv: spec.ParentEnv, SettingsContent: spec.SettingsContent, LoadedSettings: spec.LoadedSettings,
	}}
	_, err := callback.EnforcePolicy(&in.Options, nil)
	if spec.Dialect == nil {
		return err
	}
	_, more := spec.Dialect.Validate(&in)
	return errors.Join(err, more)
}

func checkBounds(o *Options) []error {
	var problems []error
	negative := func(option string, bad bool) {
		if bad {
			problems = append(problems, &ConfigError{Option: option, Problem: "is negative", Fix: "give 0 for the default"})
		}
	}
	negative("PermissionTimeout", o.PermissionTimeout < 0)
	negative("InterruptGrace", o.InterruptGrace < 0)
	negative("MaxRestarts", o.MaxRestarts < 0)
	negative("RestartWindow", o.RestartWindow < 0)
	negative("PassivateAfter", o.PassivateAfter < 0)
	problems = append(problems, checkRecovery(o)...)
	problems = append(problems, o.Supervisors.Validate()...)
	problems = append(problems, session.CheckOptions(o)...)
	negative("MaxLine", o.MaxLine < 0)
	negative("Graces", o.Graces.Flush < 0 || o.Graces.EOF < 0 || o.Graces.Terminate < 0 || o.Graces.Output < 0 || o.Graces.Sweep < 0)
	negative("Limits", o.Limits.Messages < 0 || o.Limits.Bytes < 0 || o.Limits.HardBytes < 0 || o.Limits.Answers < 0 || o.Limits.StallKill < 0)
	return problems
}

func checkRecovery(o *Options) []error {
	var problems []error
	add := func(option, problem, fix string) {
		problems = append(problems, &ConfigError{Option: option, Problem: problem, Fix: fix})
	}
	if o.Recovery != "" && !o.Recovery.Known() {
		add("Recovery", fmt.Sprintf("is %q, which is no policy", string(o.Recovery)), "give continue, rerun, report or fail")
	}
	if o.Recovery != "" && o.DecideRecovery != nil {
		add("DecideRecovery", "is set together with Recovery", "give one of them")
	}
	if o.MaxRestarts == 0 && o.EqualDeaths != 0 {
		add("EqualDeaths", "has no effect: MaxRestarts is 0, so that the first death ends the session", "set MaxRestarts, or leave EqualDeaths out")
	}
	if o.MaxRestarts == 0 && (o.Recovery != "" || o.DecideRecovery != nil) {
		add("MaxRestarts", "is 0, so that no agent is started again and no policy applies", "allow a number of restarts")
	}
	if o.MaxRestarts > 0 && !o.PersistSession.Or(true) {
		add("MaxRestarts", "needs the agent's transcript, which PersistSession keeps the agent from writing: no process could resume the session",
			"leave PersistSession out, or set MaxRestarts to 0")
	}
	if o.PassivateAfter > 0 && !o.PersistSession.Or(true) {
		add("PassivateAfter", "needs the agent's transcript, which PersistSession keeps the agent from writing: no process could resume the session",
			"leave PersistSession out, or set PassivateAfter to 0")
	}
	if b := o.RestartBackoff; b.Initial < 0 || b.Max < 0 || b.ResetAfter < 0 || b.Factor != 0 && !(b.Factor >= 1) || b.Max > 0 && b.Max < b.Initial {
		add("RestartBackoff", "is no backoff", "give durations that are not negative, a Max not below Initial, and a Factor not below 1; 0 is the default")
	}
	return problems
}

func checkServers(o *Options) []error {
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(o.SDKMCPServerConfigs)) {
		if !slices.ContainsFunc(o.SDKMCPServers, func(s *MCPServer) bool { return s.Usable() && s.Name() == name }) {
			problems = append(problems, &ConfigError{Option: fmt.Sprintf("SDKMCPServerConfigs[%q]", name),
				Problem: "names no server of SDKMCPServers", Fix: "use the name of one of them"})
		}
	}
	for i, s := range o.SDKMCPServers {
		if !s.Usable() {
			problems = append(problems, &ConfigError{Option: fmt.Sprintf("SDKMCPServers[%d]", i), Problem: "is nil or empty", Fix: "make it with sdk.NewMCPServer"})
		}
	}
	return problems
}

// readSettings reads the settings file, into which other options may have to
// be merged. A path that the agent resolves is resolved as the agent does.
func readSettings(d *dialect.Input) error {
	if d.SettingsPath == "" {
		return nil
	}
	content, err := os.ReadFile(inCwd(d, d.SettingsPath))
	if err != nil {
		return &ConfigError{Option: "SettingsPath", Problem: fmt.Sprintf("cannot be read: %v", err), Fix: "give an existing file, or put the settings into Settings"}
	}
	d.SettingsContent = content
	return nil
}

// readPrompt reads the file that the system prompt is in.
func readPrompt(d *dialect.Input) error {
	s := &d.SystemPrompt
	if s.File == "" || s.Preset || s.Blocks != nil { // the dialect refuses two prompts
		return nil
	}
	content, err := os.ReadFile(inCwd(d, s.File))
	if err != nil {
		s.File = "" // told here
		return &ConfigError{Option: "SystemPrompt.File", Problem: fmt.Sprintf("cannot be read: %v", err), Fix: "give an existing file, or put the text into Blocks"}
	}
	s.Blocks, s.File = []string{string(content)}, ""
	return nil
}

// emptyPrompt warns of a Claude Code that has tools, and was not given a system prompt: its
// model has no instructions for them.
func emptyPrompt(o *Options, what *backend.Agent) (session.Warning, bool) {
	if what.Dialect == nil || what.Dialect.Name() != claude.Name || !what.Local() || !o.SystemPrompt.IsZero() || o.Tools.IsNone() {
		return session.Warning{}, false
	}
	return session.Warning{Option: "SystemPrompt", Problem: "is not given, so it is empty: the model has tools, without Claude Code's instructions for them",
		Fix: `use PresetPrompt("") for Claude Code's own ({"type":"preset"} in a file of options), or PromptText("") to leave it empty`}, true
}

// inCwd is a path as the agent resolves it.
func inCwd(d *dialect.Input, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(d.Cwd, path)
}

package command

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/shell"

	"github.com/agent-troupe/troupe/acp/acpclient"
	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/cloud"
	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/agent/embedded/demo"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

const (
	nameScripted = "scripted"
	nameACP      = "acp"
	knownAgents  = "use claude, qoder, embedded, demo, scripted[:FILE] or acp:COMMAND"
	noneOnPath   = "no agent is installed (neither claude nor qodercli is on PATH)"
)

// chooseAgent sets the backend, and says which it is.
func (s *settings) chooseAgent(getenv func(string) string) error {
	if dir := s.opts.Cwd; dir != "" && s.opts.Spawner == nil && !s.machines.elsewhere {
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			return &usageError{fmt.Sprintf("--cwd: %q is not a directory", dir), "give one that exists"}
		}
	}
	if s.path != "" {
		s.opts.PathToExecutable = "" // the flag wins over the file
	}
	if (s.path != "" || s.opts.PathToExecutable != "") && s.agent == "" {
		return &usageError{"--path does not say whose program it is", "add --agent claude or --agent qoder"}
	}
	if s.agent == "" {
		if err := s.defaultAgent(getenv); err != nil || s.opts.Backend != nil {
			return err
		}
	}
	name, file, _ := strings.Cut(s.agent, ":")
	if i := slices.IndexFunc(s.agents, func(a Agent) bool { return a.Name == name }); i >= 0 {
		return s.addedAgent(&s.agents[i], file)
	}
	if name == nameACP {
		return s.overACP(file, getenv)
	}
	if name != nameScripted && name != s.agent {
		return &usageError{fmt.Sprintf("--agent: only %s takes a file, and only %s a command", nameScripted, nameACP), ""}
	}
	switch name {
	case claude.Name:
		s.opts.Backend = sdk.Claude(sdk.ClaudeConfig{Path: s.path})
	case qoder.Name:
		s.opts.Backend = sdk.Qoder(sdk.QoderConfig{Path: s.path})
		if s.inCloud() && s.path == "" {
			s.opts.Backend = cloud.Backend(cloud.Config{})
		}
		if s.opts.Auth == nil {
			s.opts.Auth = qoderAuth(s.variable(getenv))
		}
	case embedded.Name:
		return s.embed(getenv)
	case demo.Name:
		return s.demonstrate("")
	case nameScripted:
		return s.playScript(file)
	default:
		fix := knownAgents
		for _, a := range s.agents {
			fix = strings.Replace(fix, "use ", "use "+a.Name+", ", 1)
		}
		return &usageError{fmt.Sprintf("--agent: %q is not known", s.agent), fix}
	}
	return nil
}

// defaultAgent chooses the agent when no --agent names one: that of a cloud configuration;
// the embedded agent, if --model or else TROUPE_MODEL says where a model is; the program on
// PATH; the demonstration. A key in the environment chooses nothing: it would cost money.
//
// A model that is a name alone, such as sonnet, is one of a program's, so it does not choose
// the embedded agent; without a program it is a mistake and no reason for the demonstration.
func (s *settings) defaultAgent(getenv func(string) string) error {
	if s.inCloud() {
		s.agent = qoder.Name
		return nil
	}
	if saysWhere(s.opts.Model) || s.opts.Model == "" && getenv(modelVariable) != "" {
		return s.embed(getenv)
	}
	switch found := installed(s.variable(getenv)); {
	case len(found) == 1:
		s.agent = found[0]
	case len(found) > 1:
		return &usageError{"there is more than one agent: " + strings.Join(found, ", "), "say which with --agent"}
	case strings.Contains(s.opts.Model, "/"): // a provider is meant
		_, err := model.ParseRef(s.opts.Model)
		return &usageError{problem: fmt.Sprintf("--model: %v; and %s", err, noneOnPath)}
	case s.opts.Model != "":
		return &usageError{fmt.Sprintf("--model: %q is the name of a model alone, and %s", s.opts.Model, noneOnPath), "for the embedded agent write " + modelForms}
	default:
		return s.demonstrate(noneOnPath)
	}
	return nil
}

// saysWhere reports whether a model's name has its provider or its endpoint.
func saysWhere(name string) bool {
	_, err := model.ParseRef(name)
	return err == nil || strings.Contains(name, "://")
}

// addedAgent makes an agent that the program adds the backend.
func (s *settings) addedAgent(a *Agent, argument string) (err error) {
	if s.path != "" {
		return &usageError{"--path is not for the agent " + a.Name, "leave it out"}
	}
	s.agent = a.Name
	if s.opts.Backend, err = a.Backend(argument); err != nil {
		return &usageError{problem: fmt.Sprintf("--agent %s: %v", a.Name, err)}
	}
	return nil
}

// overACP makes an agent of the Agent Client Protocol the backend. The command is split into
// words as a shell does it, so that quotes and variables work.
func (s *settings) overACP(command string, getenv func(string) string) error {
	if s.path != "" {
		return &usageError{"--path is not for an agent of the Agent Client Protocol: --agent has its whole command", "leave it out"}
	}
	words, err := shell.Fields(command, getenv)
	if err != nil {
		return &usageError{fmt.Sprintf("--agent: the command of %s: %v", nameACP, err), ""}
	}
	if len(words) == 0 {
		return &usageError{"--agent: " + nameACP + " has no command", `write it after the colon, such as --agent "acp:gemini --experimental-acp"`}
	}
	s.agent = nameACP
	s.opts.Backend = acpclient.Backend(words...)
	return nil
}

// isACP reports whether the agent is one of the Agent Client Protocol, which has no place for
// the prompt that the command adds.
func (s *settings) isACP() bool { return s.agent == nameACP || strings.HasPrefix(s.agent, nameACP+":") }

// inCloud reports whether the configuration names a cloud agent. It has its own prompt,
// tools and permissions, so the command adds none.
func (s *settings) inCloud() bool { return s.opts.ExperimentalCloudAgent != nil }

// playScript makes the scripted agent the backend.
func (s *settings) playScript(file string) error {
	if s.path != "" {
		return &usageError{"--path is not for the scripted agent, which is a part of this program", "leave it out"}
	}
	s.agent = nameScripted
	script := scripted.Demo()
	if s.unreal = file == ""; !s.unreal {
		var err error
		if script, err = scripted.Load(file); err != nil {
			return &usageError{problem: err.Error()}
		}
	}
	s.opts.Backend = scripted.New(scripted.WithScript(script))
	if script.Dialect == agent.Qoder && s.opts.Auth == nil {
		s.opts.Auth = sdk.QoderCLIAuth()
	}
	return nil
}

// qoderAuth is the token in the environment, or else the login of the CLI.
func qoderAuth(getenv func(string) string) *session.Auth {
	if getenv(session.DefaultTokenEnv) != "" {
		return sdk.AccessTokenFromEnv("")
	}
	return sdk.QoderCLIAuth()
}

// variable reads the agent's environment.
func (s *settings) variable(getenv func(string) string) func(string) string {
	return func(name string) string {
		if v, ok := s.opts.Env[name]; ok {
			return v
		}
		return getenv(name)
	}
}

// installed names the agents that are there.
func installed(getenv func(string) string) []string {
	var found []string
	for _, d := range []dialect.Dialect{claude.New(), qoder.New()} {
		t := d.Traits()
		if t.ExecutableEnv != "" && getenv(t.ExecutableEnv) != "" || onPath(getenv("PATH"), t.ExecutableNames) {
			found = append(found, d.Name())
		}
	}
	return found
}

func onPath(path string, names []string) bool { return findOnPath(path, names) != "" }

// findOnPath is the first program on the path with one of the names, or "".
func findOnPath(path string, names []string) string {
	for _, dir := range filepath.SplitList(path) {
		for _, name := range names {
			for _, ext := range []string{"", ".exe", ".cmd", ".bat"} {
				at := filepath.Join(dir, name+ext)
				st, err := os.Stat(at)
				if filepath.IsAbs(dir) && err == nil && st.Mode().IsRegular() && (ext != "" || st.Mode()&0o111 != 0) {
					return at
				}
			}
		}
	}
	return ""
}

// inTerms returns a message about sdk.Options in the terms of this command: an
// option is named by its flag, or, if it comes from the file of --config, by its
// key in that file.
func (s *settings) inTerms(message string) string {
	names := s.keys()
	flags := runPage()
	for _, f := range flags.flags() {
		if f.option != "" && (names[f.option] == "" || s.gave(f.name)) {
			names[f.option] = "--" + f.name
		}
	}
	if names["SettingSources"] == "" { // has no flag, and is the way to let a project's programs run
		names["SettingSources"] = "settingSources of --config"
	}
	var b strings.Builder
	end := 0
	for _, at := range regexp.MustCompile(`[.\w]*[A-Z]\w+[.\[]?`).FindAllStringIndex(message, -1) {
		if flag, ok := names[strings.TrimSuffix(message[at[0]:at[1]], ".")]; ok { // a path has more
			b.WriteString(message[end:at[0]] + flag + strings.Repeat(".", strings.Count(message[at[0]:at[1]], ".")))
			end = at[1]
		}
	}
	return b.String() + message[end:]
}

// keys are the options that the file of --config gives, by field, as "KEY in FILE".
func (s *settings) keys() map[string]string {
	keys, file := map[string]string{}, reflect.ValueOf(s.file)
	for i := range file.NumField() {
		f := file.Type().Field(i)
		if key, _, _ := strings.Cut(f.Tag.Get("json"), ","); key != "-" && !file.Field(i).IsZero() {
			keys[f.Name] = key + " in " + s.config
		}
	}
	return keys
}

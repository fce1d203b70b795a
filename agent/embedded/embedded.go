package embedded

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/session"
)

// Name is the backend's name.
const Name = "embedded"

// Config configures [New]. Model is required.
type Config struct {
	// Model makes the requests. It is shared by all sessions of the backend.
	Model model.Model
	// Name is the model's name in requests. Options.Model replaces it; one of both is
	// required.
	Name string
	// Profiles say what is known of models: window, output cap, prices; nil: those built in.
	// Commands do not get the variables that they name as those of keys; Options.UnsetEnv
	// names others.
	Profiles *model.Profiles
	// MaxTokens limits an answer; 0: what the profile of the model says, or 8,192.
	MaxTokens int
	// Dir is where sessions are stored, in Claude Code's format: package transcript reads
	// them with this as Sessions.Root. "": $XDG_STATE_HOME/troupe of the session's
	// environment, or ~/.local/state/troupe; without a home, nowhere.
	Dir string
	// Retries is how often a request is repeated that may succeed later; 0: 10, below 0: never.
	Retries int
}

// New returns the backend. A mistake in c is reported with those in the session's options.
func New(c Config) session.Backend {
	if c.Profiles == nil {
		c.Profiles = model.DefaultProfiles()
	}
	if c.Retries == 0 {
		c.Retries = 10
	}
	return &service{Config: c}
}

type service struct {
	Config
	shared shared
}

// AgentName implements [session.Backend].
func (*service) AgentName() string { return Name }

// Agent implements [backend.Backend].
func (s *service) Agent(in *dialect.Input) (backend.Agent, error) {
	a := backend.Agent{Dialect: dialectOf{claude.New()}, Place: place(s.Model)}
	if s.Model == nil {
		return a, problem("Backend", "has no model", "set Config.Model of embedded.New, for example to model.Open(ref, model.Config{}, nil)")
	}
	if s.Name == "" && in.Model == "" {
		return a, problem("Model", "is empty, and Config.Name of the backend is, too", "name the model in one of them")
	}
	name := in.Model
	if name == "" {
		name = s.Name
	}
	if !in.MaxBudgetUSD.IsZero() && s.Profiles.Model(name).Price == nil {
		return a, problem("MaxBudgetUSD", fmt.Sprintf("cannot limit the cost of %s, whose price is not known", name),
			"add the price to Config.Profiles of the backend, or limit the turns with MaxTurns")
	}
	a.NewProgram = func(seams backend.Seams) agent.Program {
		return &program{cfg: s.Config, shared: &s.shared, seams: seams}
	}
	return a, nil
}

// place is what sessions share a breaker for: the endpoint.
func place(m model.Model) string {
	if at, ok := m.(interface{ Endpoint() string }); ok {
		return at.Endpoint()
	}
	return ""
}

func problem(option, what, fix string) error {
	return &session.ConfigError{Option: option, Backend: Name, Problem: what, Fix: fix}
}

// dialectOf is Claude Code's dialect for an agent that has no files, settings and processes
// of the vendor's.
type dialectOf struct{ claude.Dialect }

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
	warnings, err := d.Dialect.Validate(o)
	return warnings, errors.Join(err, unsupported(o))
}

// Launch implements [dialect.Dialect].
func (d dialectOf) Launch(o *dialect.Input) (dialect.Launch, error) {
	l, err := d.Dialect.Launch(o)
	l.Names = []string{Name} // for errors: there is no program
	return l, errors.Join(err, unsupported(o))
}

// unsupported are the options that this agent does not have.
func unsupported(o *dialect.Input) error {
	var all []error
	const noVendor = "is about Claude Code's own files, and this agent reads none of them"
	const notYet = "is not supported by this agent yet"
	for _, c := range []struct {
		option string
		set    bool
		why    string
	}{
		{"Settings", len(o.Settings) > 0, noVendor},
		{"SettingsPath", o.SettingsPath != "", noVendor},
		{"ManagedSettings", len(o.ManagedSettings) > 0, noVendor},
		{"SettingSources", o.SettingSources.IsAll() || len(o.SettingSources.Names()) > 0, noVendor},
		{"Plugins", len(o.Plugins) > 0, noVendor},
		{"MCPServers", len(o.MCPServers) > 0, "is about servers that the agent starts; use SDKMCPServers"},
		{"MCPConfigPath", o.MCPConfigPath != "", "is about servers that the agent starts; use SDKMCPServers"},
		{"Betas", len(o.Betas) > 0, "belongs to the endpoint: set it in model.AnthropicConfig"},
		{"Sandbox", o.Sandbox != nil, notYet},
		{"EnableFileCheckpointing", o.EnableFileCheckpointing.Or(false), notYet},
		{"OutputFormat", o.OutputFormat != nil, notYet},
		{"FallbackModel", o.FallbackModel != "", notYet},
		{"Agents", len(o.Agents) > 0, notYet},
		{"Continue", o.Continue, notYet},
		{"ResumeSessionAt", o.ResumeSessionAt != "", notYet},
		{"SessionStore", o.HasSessionStore, notYet},
		{"Spawner", o.Spawner != nil, notYet},
		{"Executable", o.Executable != "", "is about a program, and this agent is none"},
		{"PathToExecutable", o.PathToExecutable != "", "is about a program, and this agent is none"},
	} {
		if c.set {
			all = append(all, problem(c.option, c.why, "leave it out"))
		}
	}
	for _, n := range o.Tools.Names() {
		if n != "default" && !slices.Contains(toolNames(), n) {
			all = append(all, problem("Tools", fmt.Sprintf("names %q, which this agent does not have", n), "its tools are "+strings.Join(toolNames(), ", ")))
		}
	}
	return errors.Join(all...)
}

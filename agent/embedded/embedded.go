package embedded

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

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
	// Name is the model's name in requests. Options.Model replaces it. One of the two is
	// required.
	Name string
	// Profiles say what is known of models: window, output cap, prices; nil: those built in.
	// Commands do not get the variables that they name as those of keys; Options.UnsetEnv
	// names others.
	Profiles *model.Profiles
	// MaxTokens limits an answer, in tokens; 0: what the profile of the model says, or 8,192.
	MaxTokens int
	// Window is how many tokens a conversation may have, with the answer: near its end it is
	// compacted. 0: what the profile of the model says, below 0: it is not known. The variable
	// CLAUDE_CODE_AUTO_COMPACT_WINDOW of the session's environment replaces it.
	Window int
	// Dir is where sessions are stored, in Claude Code's format: package transcript reads
	// them with this as Sessions.Root. "": $XDG_STATE_HOME/troupe of the session's
	// environment, or ~/.local/state/troupe; without a home, nowhere. The variable
	// TROUPE_EMBEDDED_DIR of the session's environment replaces it.
	Dir string
	// Instructions adds the project's AGENTS.md and CLAUDE.md to the system prompt of new
	// sessions: those of the repository's top directory down to the session's. They are part
	// of the prompt, so leave it off for projects that you do not trust. A file
	// counts up to 32 KB, all up to 64 KB; links that lead out of the repository are not
	// followed, and imports (@file) are not read. It has no effect if Options.SystemPrompt
	// replaces the prompt.
	Instructions bool
	// Skills are directories with skills: NAME/SKILL.md or NAME.md in the form of Claude Code's. A
	// relative one is below each session's directory, such as .claude/skills; as a part of the
	// project it is trusted like Instructions. The system prompt has their names and descriptions,
	// up to 100 of them, unless Options.SystemPrompt replaces it, and the tool Skill loads one. Of a
	// skill, 64 KB count. Its words about tools, models and hooks have no effect. If empty, the session has no skills.
	Skills []string
	// AgentDirs are directories with files NAME.md that define types of sub-agents, in the form
	// of Claude Code's .claude/agents: name, description, tools, disallowedTools, model, maxTurns
	// and background, and the prompt. A relative one is below the session's directory; links
	// that lead out of it are not followed. Their prompts are instructions, so name only
	// directories that you trust. A file that defines nothing is left out, as are tools that this
	// agent does not have. A short name of a model that means nothing beside the session's model
	// means that one. Options.Agents come first.
	AgentDirs []string
	// Retries is how often a request that may succeed later is repeated; 0: 10, below 0: never.
	// The variable CLAUDE_CODE_MAX_RETRIES of the session's environment replaces it.
	Retries int
	// Web makes the requests of WebFetch in place of the network, for example in tests. It
	// decides which names lead where; URLs with an address that is not public are refused before.
	// nil: the network, with addresses refused that are not public, through the proxy of HTTPS_PROXY and
	// NO_PROXY of the session's environment. WebFetch is offered only if a rule allows it, or
	// Options.Tools names it.
	Web http.RoundTripper
	// Confine confines the commands of the tool Bash. Zero: they can do what your user can.
	Confine Confine
	// Check is what the agent has to pass before a turn ends. If nil, turns end without a check.
	Check *Check
}

// New returns the backend. It is safe for concurrent use, and its sessions share tools, rules
// and c.Model, so make one for all. A mistake in c is a session.ConfigError of each session.
func New(c Config) session.Backend {
	if c.Profiles == nil {
		c.Profiles = model.DefaultProfiles()
	}
	if c.Retries == 0 {
		c.Retries = 10
	}
	s := &service{Config: c}
	if c.Model != nil {
		s.shared.api = c.Model.Codec().Name()
	}
	return s
}

type service struct {
	Config
	shared shared
	logins logins
}

// named is the model that a short name means, such as haiku; another name stays as it is.
func (c *Config) named(name string) string {
	beside := c.Name
	if c.Model.Codec().Name() == anthropicOrigin && (beside == "" || c.Profiles.Named(beside, vendorModel) != "") {
		beside = vendorModel
	}
	return cmp.Or(c.Profiles.Named(name, beside), name)
}

// vendorModel is how the names of the models begin for which Anthropic has made the Messages API.
const vendorModel = "claude"

// namedAll is named for a list with commas.
func (c *Config) namedAll(names string) string {
	all := strings.Split(names, ",")
	for i, name := range all {
		all[i] = c.named(strings.TrimSpace(name))
	}
	return strings.Join(all, ",")
}

// Withholds reports whether what the agent starts does not get a variable, since it has a key.
// Package fleet/sharedmcp asks it.
func (s *service) Withholds(variable string) bool { return s.withholds(variable) }

// AgentName implements [session.Backend].
func (*service) AgentName() string { return Name }

// Agent implements [backend.Backend].
func (s *service) Agent(in *dialect.Input) (backend.Agent, error) {
	a := backend.Agent{Dialect: dialectOf{claude.New(), s.Dir}, Place: place(s.Model), Stores: true}
	if s.Model == nil {
		return a, problem("Backend", "has no model", "set Config.Model of embedded.New, for example to model.Open(ref, model.Config{}, nil)")
	}
	if s.Name == "" && in.Model == "" {
		return a, problem("Model", "is empty, and Config.Name of the backend is, too", "name the model in one of them")
	}
	if err := s.Check.wrong(); err != nil {
		return a, err
	}
	name := s.named(cmp.Or(in.Model, s.Name))
	others := fallbackOf(s.namedAll(in.FallbackModel)).list
	for _, kind := range slices.Sorted(maps.Keys(in.Agents)) {
		if of := in.Agents[kind].Model; isAlias(of) && s.named(of) == of {
			return a, problem(fmt.Sprintf("Agents[%q].Model", kind), fmt.Sprintf("is %q, which is no name of a model beside %s", of, name), "name a model of the endpoint, or inherit")
		}
	}
	if slices.Contains(others, name) {
		return a, problem("FallbackModel", fmt.Sprintf("%q is the session's own model", name), "name another model")
	}
	for _, name := range append([]string{name}, others...) {
		if !in.MaxBudgetUSD.IsZero() && s.Profiles.Model(name).Price == nil {
			return a, problem("MaxBudgetUSD", fmt.Sprintf("cannot limit the cost of %s, whose price is not known", name),
				"add the price to Config.Profiles of the backend, or limit the turns with MaxTurns")
		}
	}
	confined, err := s.confinement(in)
	if err != nil {
		return a, err
	}
	unset, web, asker := slices.Clone(in.UnsetEnv), allowsWeb(in), in.CanUseTool != nil
	servers, _ := serversOf(in) // mistakes are reported by the dialect's Validate
	_, _, asked, _ := toolPolicies(in)
	timeouts := map[string]time.Duration{}
	for name, c := range in.SDKMCPServerConfigs {
		timeouts[name] = c.Timeout
	}
	var kinds []*kind
	for _, name := range slices.Sorted(maps.Keys(in.Agents)) {
		kinds = append(kinds, definedKind(name, new(in.Agents[name])))
	}
	a.NewProgram = func(seams backend.Seams) agent.Program {
		return &program{
			cfg: &s.Config, shared: &s.shared, seams: seams, unset: unset, web: web, asker: asker,
			servers: servers, mustAsk: asked, timeouts: timeouts, logins: &s.logins, confined: confined, agents: kinds, asksModel: in.ResolveModel != nil,
		}
	}
	return a, nil
}

// allowsWeb reports whether a rule allows that pages are fetched.
func allowsWeb(in *dialect.Input) bool {
	about := func(rule string) bool {
		name, _, _ := strings.Cut(rule, "(")
		return strings.TrimSpace(name) == "WebFetch"
	}
	return slices.ContainsFunc(in.AllowedTools, about) || in.Policy != nil && slices.ContainsFunc(in.Policy.Allow, about)
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

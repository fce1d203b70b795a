package runtime

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/actors"
	"github.com/agent-troupe/troupe/actors/callback"
	"github.com/agent-troupe/troupe/actors/hooks"
	"github.com/agent-troupe/troupe/actors/machine"
	"github.com/agent-troupe/troupe/actors/transport"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/session"
	"github.com/agent-troupe/troupe/supervisor"
)

// config turns the spec into what the actors need. It finds every mistake in
// the options before anything starts.
func (s *Session) config(ctx context.Context, spec *Spec) (actors.Config, error) {
	if err := errors.Join(append(spec.Options.Supervisors.Validate(), session.CheckOptions(&spec.Options)...)...); err != nil {
		return actors.Config{}, err
	}
	if spec.NewProgram != nil {
		spec.Program = spec.NewProgram(s.seams())
	}
	spec.Options.CanUseTool = s.askedOf(spec.Options.CanUseTool)
	spec.Options.Hooks = s.heard(spec.Options.Hooks)
	s.program = spec.Program
	in := &dialect.Input{}
	ofPolicy, err := spec.fill(in, s.told)
	if err != nil {
		return actors.Config{}, err
	}
	s.stored.leases = s.storeLeases(spec)
	if err := s.restore(ctx, spec, in); err != nil {
		return actors.Config{}, err
	}
	launch, err := spec.Dialect.Launch(in)
	if err != nil {
		s.forsake()
		return actors.Config{}, err
	}
	s.warnings = slices.Concat(spec.Warnings, ofPolicy, launch.Warnings)
	in.ParentEnv = s.rt.share(&s.rt.parent, in.ParentEnv)
	command := commandOf(launch, in.ParentEnv, spec.Dialect.Traits())
	command.Env = s.rt.share(&s.rt.environ, command.Env)
	command.Seed = s.rt.sys.Rand().Uint64()
	in.Graces, in.InterruptGrace = spec.graces()
	in.Limits = spec.limits()
	s.starts = &starts{
		of: s.rt.breaks, session: s, program: s.programKey(spec, &command), provider: providerKey(spec, command.Env),
		place: s.rt.admission.placeOf(ctx, spec, s),
	}
	cfg := actors.Config{
		Starts: s.starts,
		Host:   &s.rt.host, ID: s.id, Dialect: spec.Dialect, Input: in,
		Command: &command, Spawner: s.spawnerFor(spec), Leases: s.leases(spec),
		Supervisors: s.rt.supervisors(spec.Options.Supervisors), Emit: s.emit, ChildContext: s.childContext(spec),
		Spent: s.spent,
	}
	if err := s.isolate(spec, in, &command); err != nil {
		s.forsake()
		return actors.Config{}, err
	}
	if s.rt.keeper != nil && (spec.Program == nil || spec.ProgramStores) && spec.Translate == nil && spec.Options.Spawner == nil && spec.Options.PersistSession.Or(true) {
		s.root, s.rootOf = s.configRoot(in), s.vendor(in)
	}
	if s.mirrors(spec, in); s.stored.mirror != nil {
		cfg.Mirror = s.stored.mirror.Report
	}
	s.follow(ctx, in)
	cfg.Trace, command.Env = s.trace, s.traced(command.Env, in)
	cfg.History = s.history(spec)
	cfg.Relaunch = s.relaunch
	return cfg, nil
}

// relaunch is the command of a process that follows another one.
func (s *Session) relaunch(in *dialect.Input, e machine.Launch) (*session.Command, error) {
	next := in
	switch {
	case e.Fresh:
		next = in.Begun(e.Resume)
	case e.Resume != "":
		var err error
		if next, err = s.dialect.Resume(in, e.Resume, false); err != nil {
			return nil, err
		}
		next.ResumeSessionAt = e.At
	}
	launch, err := s.dialect.Launch(next)
	if err != nil {
		return nil, err
	}
	command := commandOf(launch, next.ParentEnv, s.dialect.Traits())
	command.Env = s.traced(command.Env, in)
	command.Seed = s.rt.sys.Rand().Uint64()
	return &command, nil
}

// fill makes in what the dialect reads: the options, with what is known of the callbacks,
// the servers and the environment, and with the policy in force. It returns the warnings
// about the policy.
func (spec *Spec) fill(in *dialect.Input, told callback.Told) ([]session.Warning, error) {
	*in = dialect.Input{Options: spec.Options, Facts: dialect.Facts{
		ParentEnv: spec.ParentEnv, SettingsContent: spec.SettingsContent, LoadedSettings: spec.LoadedSettings,
		HasSessionStore: spec.Options.SessionStore != nil,
	}}
	warnings, err := callback.EnforcePolicy(&in.Options, told)
	in.Registrations = hooks.Registrations(spec.Dialect, in.Hooks)
	if in.ParentEnv == nil {
		in.ParentEnv = os.Environ()
	}
	if err != nil {
		_, more := spec.Dialect.Validate(in) // to report all mistakes at once
		return nil, errors.Join(err, more)
	}
	for i, m := range spec.Options.SDKMCPServers {
		if !m.Usable() {
			return nil, &session.ConfigError{
				Option: fmt.Sprintf("SDKMCPServers[%d]", i), Problem: "is nil or empty", Fix: "give a server with a handler",
			}
		}
		initialize, tools, err := m.Manifest()
		if err != nil {
			return nil, &session.ConfigError{
				Option: "mcpServers." + m.Name(), Backend: spec.Dialect.Name(),
				Problem: err.Error(), Fix: "fix the server's tools",
			}
		}
		config := spec.Options.SDKMCPServerConfigs[m.Name()]
		in.Servers = append(in.Servers, dialect.SDKMCPServer{
			Name: m.Name(), InitializeResult: initialize, ToolsListResult: tools,
			Timeout: config.Timeout, Tools: config.Tools,
		})
	}
	return warnings, nil
}

// graces are the waits on the way down, the dialect's where none are given.
func (spec *Spec) graces() (g session.Graces, interrupt time.Duration) {
	traits := spec.Dialect.Traits()
	return session.Graces{
		Flush:     first(spec.Options.Graces.Flush, traits.FlushGrace),
		EOF:       first(spec.Options.Graces.EOF, traits.EOFGrace, 5*time.Second),
		Terminate: first(spec.Options.Graces.Terminate, traits.TermGrace, 5*time.Second),
		Output:    spec.Options.Graces.Output, Sweep: spec.Options.Graces.Sweep,
	}.WithDefaults(), first(spec.Options.InterruptGrace, traits.InterruptGrace, 5*time.Second)
}

// actorPolicy is what the supervisors of actors do by default: what crashes is ready again
// in no time.
func actorPolicy() supervisor.Policy {
	return supervisor.Policy{Backoff: supervisor.Backoff{Initial: 10 * time.Millisecond, Max: time.Second}}
}

// supervisors are those of the options, complete. Sessions with the defaults share them.
func (rt *Runtime) supervisors(s session.Supervisors) *session.Supervisors {
	if reflect.ValueOf(s).IsZero() && rt.usual != nil {
		return rt.usual
	}
	s.Session = s.Session.Or(actorPolicy())
	s.Callbacks = s.Callbacks.Or(s.Session)
	return &s
}

// limits are those of the options; InitializeTimeout is an older name of one.
func (spec *Spec) limits() session.Limits {
	l := spec.Options.Limits
	l.Initialize = cmp.Or(l.Initialize, spec.Options.InitializeTimeout)
	return l
}

func first(ds ...time.Duration) time.Duration {
	for _, d := range ds {
		if d > 0 {
			return d
		}
	}
	return 0
}

// seams are what the code of a spec has of the runtime.
func (s *Session) seams() backend.Seams {
	return backend.Seams{Clock: s.rt.sys.Clock(), Exec: s.rt.sys.Executor(), Rand: s.rt.sys.Rand(), Emit: s.emit, Spawner: s.rt.spawner}
}

// spawnerFor is what starts the session's agents.
func (s *Session) spawnerFor(spec *Spec) session.Spawner {
	spawner := s.rt.spawnerFor(spec)
	if spec.Translate != nil {
		spawner = spec.Translate(s.seams(), spawner)
	}
	return spawner
}

func (rt *Runtime) spawnerFor(spec *Spec) session.Spawner {
	switch {
	case spec.Options.Spawner != nil:
		return spec.Options.Spawner
	case spec.Program != nil:
		return transport.InMemory{Clock: rt.sys.Clock(), Exec: rt.sys.Executor(), Program: spec.Program}
	}
	return rt.spawner
}

// leases are those of the agent's sessions: on this machine, and of the store. nil if no
// lease is needed.
func (s *Session) leases(spec *Spec) transport.Leases {
	both := bothLeases{local: s.localLeases(spec), store: s.stored.leases}
	var needed transport.Leases
	if both.local != nil || both.store != nil {
		needed = both
	}
	if spec.Options.SessionStore != nil {
		return completedLeases{needed, s}
	}
	return needed
}

func (s *Session) localLeases(spec *Spec) session.Leases {
	cfg := &s.rt.cfg
	if cfg.Leases != nil || spec.Program != nil && !spec.ProgramStores || spec.Options.Spawner != nil || !spec.Options.PersistSession.Or(true) {
		return spec.leases(cfg.Leases)
	}
	return spec.leases(defaultLeases{
		LocalLeases{Now: s.rt.sys.Clock().Now}, func(problem string) { s.emit(&session.WarningIssued{Problem: problem}) },
	})
}

func commandOf(l dialect.Launch, parent []string, traits dialect.Traits) session.Command {
	env := environment(l, parent)
	c := session.Command{
		Path: l.Path, Names: l.Names, Interpreter: l.Interpreter, Args: l.Args, Dir: l.Dir, Env: env,
		TermOnHostDeath: traits.TermOnHostDeath,
	}
	if c.Path == "" && traits.ExecutableEnv != "" {
		c.Path = lookupEnv(env, traits.ExecutableEnv)
	}
	for _, f := range l.Files {
		c.Files = append(c.Files, session.File{Name: f.Name, Content: f.Content})
	}
	return c
}

// environment merges what the launch adds over the parent's environment,
// sorted, so that the same options give the same bytes.
func environment(l dialect.Launch, parent []string) []string {
	env := make([]string, 0, len(parent)+len(l.Env))
	if !l.CleanEnv {
		for _, kv := range parent {
			if name := nameOf(kv); name != "" && !slices.Contains(l.Unset, name) {
				env = append(env, kv) // all sessions share its bytes
			}
		}
	}
	for _, v := range l.Env {
		env = append(env, v.Name+"="+v.Value)
	}
	slices.SortStableFunc(env, func(a, b string) int { return strings.Compare(nameOf(a), nameOf(b)) })
	merged := env[:0]
	for i, kv := range env {
		if i+1 == len(env) || nameOf(kv) != nameOf(env[i+1]) { // the last of a name counts
			merged = append(merged, kv)
		}
	}
	return merged
}

// nameOf is the name in "name=value", or "".
func nameOf(kv string) string {
	name, _, ok := strings.Cut(kv, "=")
	if !ok {
		return ""
	}
	return name
}

func lookupEnv(env []string, name string) string {
	for _, kv := range env {
		if value, ok := strings.CutPrefix(kv, name+"="); ok {
			return value
		}
	}
	return ""
}

package demo

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/session"
)

const (
	// Name is the name of the agent.
	Name = "demo"
	// ModelName is the name of its model in messages and results.
	ModelName = "troupe-demo"
	// Check is the command that checks the project: a verifier for jobs.
	Check = "/bin/sh check.sh"
	// Setup is the command of a workspace that is a copy of the project. It makes the copy a
	// git repository, so that the results of a job have diffs. Without git it does nothing.
	Setup = `if command -v git >/dev/null; then git init -q . && git add . &&
git -c user.name=demo -c user.email=demo@localhost commit -qm "The project of the demonstration"; fi`
)

// Config configures [New].
type Config struct {
	// InCwd has each session work in Options.Cwd, which must be a directory that was made
	// for it, such as a workspace of a job. false: each session works in a new temporary
	// directory with the files of [Project], and Options.Cwd is not used. A session that is
	// resumed works where it did before.
	InCwd bool
}

// New returns the backend. Its calls need the rules of [Rules]. It is safe for concurrent use.
func New(c Config) session.Backend {
	free := &model.Profiles{Models: []model.ModelProfile{{Match: "*", Price: &model.Price{}}}}
	return &service{c, embedded.New(embedded.Config{
		Model: newRules(), Name: ModelName, Profiles: model.DefaultProfiles().Extend(free),
	})}
}

// Options returns the options of a session with the demonstration in a new temporary
// directory: the backend, and the rules that allow its calls.
func Options() *session.Options {
	return &session.Options{Backend: New(Config{}), AllowedTools: Rules()}
}

// Rules are the permission rules for what the demonstration does by itself: it reads and
// edits files of its directory, lists it, and runs the check of its project. Deleting a file
// has no rule, so that call is asked about.
func Rules() []string {
	return []string{"Read(./**)", "Edit(./**)", "Bash(" + Check + ")", "Bash(" + listCommand + ")"}
}

type service struct {
	cfg   Config
	agent session.Backend
}

// AgentName implements [session.Backend].
func (*service) AgentName() string { return Name }

// Agent implements [backend.Backend].
func (s *service) Agent(in *dialect.Input) (backend.Agent, error) {
	a, err := s.agent.(backend.Backend).Agent(in) // of package embedded, which is one
	if err != nil || s.cfg.InCwd {
		return a, err
	}
	inner := a.NewProgram
	a.NewProgram = func(seams backend.Seams) agent.Program { return &program{Program: inner(seams), rand: seams.Rand} }
	return a, nil
}

// program is the agent of one session, which works in a new directory.
type program struct {
	agent.Program
	rand session.Rand
	dir  string // "": not made yet
}

// Serve implements [agent.Program].
func (p *program) Serve(l agent.Launch, port agent.Port) agent.Exit {
	if err := p.move(&l); err != nil {
		return agent.Exit{Code: 1, Err: err}
	}
	return p.Program.Serve(l, port)
}

// Open implements [agent.Opener].
func (p *program) Open(asked agent.Program, l agent.Launch, port agent.Port) agent.Player {
	opener, ok := p.Program.(agent.Opener)
	if asked != agent.Program(p) || !ok || p.move(&l) != nil {
		return nil // Serve says why
	}
	return opener.Open(p.Program, l, port)
}

// move has the agent start in its own directory.
func (p *program) move(l *agent.Launch) error {
	if p.dir == "" {
		p.dir = Home(l.Getenv, resumed(l.Args))
	}
	if p.dir == "" {
		dir := filepath.Join(cmp.Or(l.Getenv("TMPDIR"), os.TempDir()), fmt.Sprintf("%s%016x", prefix, p.rand.Uint64()))
		if err := os.Mkdir(dir, 0o700); err != nil {
			return fmt.Errorf("make the directory of the demonstration: %w", err)
		}
		p.dir = dir
	}
	l.Dir = p.dir
	return Project(p.dir)
}

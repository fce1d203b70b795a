package sdk

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/session"
)

// Backend is an agent to talk to: [Claude], [Qoder], [InMemory], any [agent.Program], or one
// of another package, such as acpclient.Backend and cloud.Backend. To write one, implement
// [backend.Backend]. It is [session.Backend].
type Backend = session.Backend

// ClaudeConfig says which Claude Code to run. With the zero value Troupe searches it.
type ClaudeConfig struct {
	// Path is the path of the program or its script. "": $CLAUDE_CODE_EXECUTABLE, then
	// claude on PATH, both in the agent's environment.
	Path string
}

// Claude returns the backend for Claude Code.
func Claude(c ClaudeConfig) Backend { return &cli{claude.New(), c.Path} }

// QoderConfig says which qodercli to run. With the zero value Troupe searches it.
type QoderConfig struct {
	// Path is the path of the program or its script. "": $QODERCLI_PATH, then qodercli
	// on PATH, both in the agent's environment.
	Path string
}

// Qoder returns the backend for qodercli.
func Qoder(c QoderConfig) Backend { return &cli{qoder.New(), c.Path} }

// InMemory returns a backend for an agent in this process. The agent uses the protocol
// of like, even if p has a method that returns another dialect.
func InMemory(p agent.Program, like agent.Dialect) Backend { return &inMemory{p, like} }

type cli struct {
	dialect dialect.Dialect
	path    string
}

func (c *cli) AgentName() string { return c.dialect.Name() }

type inMemory struct {
	agent.Program
	like agent.Dialect
}

func (m *inMemory) AgentName() string {
	if m.Program == nil {
		return ""
	}
	return m.Program.AgentName()
}

func (m *inMemory) AgentDialect() agent.Dialect { return m.like }

// Agent implements [backend.Backend].
func (c *cli) Agent(in *dialect.Input) (backend.Agent, error) {
	if c.path != "" && in.PathToExecutable != "" && c.path != in.PathToExecutable {
		return backend.Agent{Dialect: c.dialect}, &ConfigError{Option: "PathToExecutable", Backend: c.dialect.Name(),
			Problem: fmt.Sprintf("is %q, but Backend has the path %q", in.PathToExecutable, c.path), Fix: "leave one of them out"}
	}
	if c.path != "" {
		in.PathToExecutable = c.path
	}
	return backend.Agent{Dialect: c.dialect}, nil
}

// choose resolves the backend of the options in.
func choose(in *dialect.Input) (backend.Agent, error) {
	switch b := in.Backend.(type) {
	case nil:
		if in.ExperimentalCloudAgent != nil {
			return backend.Agent{}, &ConfigError{Option: "Backend", Problem: "is nil, and ExperimentalCloudAgent runs in Qoder's cloud",
				Fix: `import "github.com/agent-troupe/troupe/agent/cloud" and set Backend to cloud.Backend(cloud.Config{})`}
		}
		if in.Spawner != nil {
			return backend.Agent{}, &ConfigError{Option: "Backend", Problem: "is nil, and Troupe cannot see which agents are installed where Spawner starts them",
				Fix: "set Backend to sdk.Claude or sdk.Qoder"}
		}
		return installed(in)
	case backend.Backend:
		return b.Agent(in)
	case agent.Program:
		if m, ok := b.(*inMemory); ok && m.Program == nil {
			return backend.Agent{}, &ConfigError{Option: "Backend", Problem: "the program given to InMemory is nil", Fix: "give an agent.Program"}
		}
		if in.Spawner != nil {
			return backend.Agent{}, &ConfigError{Option: "Spawner", Problem: "has nothing to start: the agent is in this process", Fix: "leave it out"}
		}
		return inProcess(b)
	default:
		return backend.Agent{}, &ConfigError{Option: "Backend",
			Problem: fmt.Sprintf("is a %T, which lacks the method Agent(*dialect.Input) (backend.Agent, error)", b),
			Fix:     "use sdk.Claude, sdk.Qoder, sdk.InMemory or another backend, or implement backend.Backend or agent.Program"}
	}
}

func inProcess(p agent.Program) (backend.Agent, error) {
	like := agent.Claude
	var says agent.Dialect
	switch p := p.(type) {
	case interface{ AgentDialect() agent.Dialect }:
		says = p.AgentDialect()
	case interface{ Dialect() agent.Dialect }:
		says = p.Dialect()
	}
	if says != "" {
		like = says
	}
	switch like {
	case agent.Claude:
		return backend.Agent{Dialect: claude.New(), Program: p}, nil
	case agent.Qoder:
		return backend.Agent{Dialect: qoder.New(), Program: p}, nil
	}
	return backend.Agent{}, &ConfigError{Option: "Backend", Problem: fmt.Sprintf("uses the unknown dialect %q", like),
		Fix: fmt.Sprintf("use %q or %q", agent.Claude, agent.Qoder)}
}

// installed is the one CLI that the agent's environment has.
func installed(o *dialect.Input) (backend.Agent, error) {
	if o.PathToExecutable != "" {
		return backend.Agent{}, &ConfigError{Option: "Backend", Problem: fmt.Sprintf("is nil, and PathToExecutable (%s) does not say whose CLI it is", o.PathToExecutable),
			Fix: "set Backend to sdk.Claude or sdk.Qoder"}
	}
	path, _ := o.LookupEnv("PATH")
	var found []backend.Agent
	var names, where []string
	for _, d := range []dialect.Dialect{claude.New(), qoder.New()} {
		names = append(names, d.Traits().ExecutableNames...)
		if at := locate(d.Traits(), o, path); at != "" {
			found = append(found, backend.Agent{Dialect: d})
			where = append(where, fmt.Sprintf("%s (%s)", d.Name(), at))
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		path = cmp.Or(path, "which is empty")
		return backend.Agent{}, &ConfigError{Option: "Backend",
			Problem: fmt.Sprintf("is nil, and neither %s is on the agent's PATH, %s", strings.Join(names, " nor "), path),
			Fix:     "install one of them, or set Backend to sdk.Claude or sdk.Qoder with the Path of the program"}
	}
	return backend.Agent{}, &ConfigError{Option: "Backend",
		Problem: "is nil, and there is more than one agent: " + strings.Join(where, ", "), Fix: "set Backend to sdk.Claude or sdk.Qoder"}
}

// locate finds an agent's program in its environment; "" if it is not there.
func locate(t dialect.Traits, o *dialect.Input, path string) string {
	if named, _ := o.LookupEnv(t.ExecutableEnv); t.ExecutableEnv != "" && named != "" {
		return named
	}
	for _, name := range t.ExecutableNames {
		for _, dir := range filepath.SplitList(path) {
			if !filepath.IsAbs(dir) {
				continue // as at the start itself: not from the working directory
			}
			for _, ext := range extensions() {
				if at := filepath.Join(dir, name+ext); executable(at) {
					return at
				}
			}
		}
	}
	return ""
}

func extensions() []string {
	if runtime.GOOS == "windows" {
		return []string{".exe", ".cmd", ".bat"}
	}
	return []string{""}
}

func executable(path string) bool {
	st, err := os.Stat(path)
	return err == nil && !st.IsDir() && (runtime.GOOS == "windows" || st.Mode()&0o111 != 0)
}

package sdk

import (
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/cloud"
	"github.com/agent-troupe/troupe/dialect"
	acpdialect "github.com/agent-troupe/troupe/dialect/acp"
	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/session"
)

// Backend is an agent to talk to. Make one with [Claude], [Qoder], [QoderCloud],
// [ACP] or [InMemory]. It is [session.Backend].
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

// CloudConfig configures [QoderCloud]. The zero value talks to the vendor's service.
type CloudConfig struct {
	// BaseURL is the address of the service, http or https, with its path. "":
	// $QODER_CLOUD_AGENT_API_BASE of this process, then https://api.qoder.com/api/v1/cloud.
	BaseURL string
	// HTTP makes the requests, for example through a proxy or with other certificates. It
	// must end a request, and the reading of its answer, when the request's context ends. It
	// must not send a request twice. It is used concurrently by the sessions of the backend.
	// nil: a transport of net/http for each session, with the proxy of the environment.
	HTTP http.RoundTripper
}

// QoderCloud returns the backend for Qoder's Cloud Agent, which runs in the cloud:
// Options.ExperimentalCloudAgent says which agent and session. See docs/cloud.md.
func QoderCloud(c CloudConfig) Backend { return &inCloud{c} }

// ACP returns the backend for an agent of the Agent Client Protocol, such as
// ACP("gemini", "--experimental-acp"). command is its program, by its path or by its name on the
// PATH of the agent's environment, and its arguments; Options.Cwd and Options.Env are for the
// process as for other agents. An option that the protocol cannot express is a [ConfigError]
// before anything starts, such as Policy and Hooks: the protocol asks permission only for calls
// that the agent thinks need it. See docs/acp.md.
func ACP(command ...string) Backend { return &overACP{slices.Clone(command)} }

type overACP struct{ command []string }

func (*overACP) AgentName() string { return acpdialect.Name }

type inCloud struct{ CloudConfig }

func (*inCloud) AgentName() string { return qoder.Name }

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

// chosen is a backend in the terms of package runtime.
type chosen struct {
	dialect dialect.Dialect
	program agent.Program // nil: a process
	cloud   *cloud.Config // not nil: the cloud, and program is nil
	acp     string        // names the command of an agent of the Agent Client Protocol; "": it is none
}

// choose resolves the backend. It sets o's path to the executable when the
// backend names one.
func choose(b Backend, o *dialect.Input, spawned bool) (chosen, error) {
	if o.ExperimentalCloudAgent != nil {
		if c, ok := b.(*cli); b == nil || ok && c.path == "" && c.dialect.Name() == qoder.Name {
			b = &inCloud{}
		}
	}
	switch b := b.(type) {
	case *inCloud:
		return b.choose(o)
	case *overACP:
		d := acpdialect.New(b.command...)
		return chosen{dialect: d, acp: d.Place()}, nil
	case nil:
		if spawned {
			return chosen{}, &ConfigError{Option: "Backend", Problem: "is nil, and Troupe cannot see which agents are installed where Spawner starts them",
				Fix: "set Backend to sdk.Claude or sdk.Qoder"}
		}
		return installed(o)
	case *cli:
		if b.path != "" && o.PathToExecutable != "" && b.path != o.PathToExecutable {
			return chosen{}, &ConfigError{Option: "PathToExecutable", Backend: b.dialect.Name(),
				Problem: fmt.Sprintf("is %q, but Backend has the path %q", o.PathToExecutable, b.path), Fix: "leave one of them out"}
		}
		if b.path != "" {
			o.PathToExecutable = b.path
		}
		return chosen{dialect: b.dialect}, nil
	case agent.Program:
		if m, ok := b.(*inMemory); ok && m.Program == nil {
			return chosen{}, &ConfigError{Option: "Backend", Problem: "the program given to InMemory is nil", Fix: "give an agent.Program"}
		}
		if spawned {
			return chosen{}, &ConfigError{Option: "Spawner", Problem: "has nothing to start: the agent is in this process", Fix: "leave it out"}
		}
		return inProcess(b)
	}
	return chosen{}, &ConfigError{Option: "Backend", Problem: fmt.Sprintf("%T is not a backend", b),
		Fix: "use sdk.Claude, sdk.Qoder, sdk.QoderCloud, sdk.ACP, sdk.InMemory, or an agent.Program"}
}

// choose resolves the cloud. What is wrong with the options is for the dialect to say.
func (b *inCloud) choose(o *dialect.Input) (chosen, error) {
	base := b.BaseURL
	if base == "" {
		base, _ = (&dialect.Input{Facts: dialect.Facts{ParentEnv: o.ParentEnv}}).LookupHostEnv(cloud.BaseURLEnv)
	}
	if base == "" {
		base = cloud.BaseURL
	}
	c := chosen{dialect: qoder.NewCloud(), cloud: &cloud.Config{BaseURL: base, HTTP: b.HTTP}}
	if u, err := url.Parse(base); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery+u.Fragment != "" {
		return c, &ConfigError{Option: "Backend", Backend: qoder.Name, Problem: "the address of the cloud is no http or https URL, or has a login or a query",
			Fix: "set CloudConfig.BaseURL, or " + cloud.BaseURLEnv + ", to a URL such as " + cloud.BaseURL}
	}
	if o.ExperimentalCloudAgent != nil {
		c.cloud.Agent = *o.ExperimentalCloudAgent
	}
	c.cloud.Token, _ = qoder.AccessToken(o) // the dialect reports the error
	return c, nil
}

func inProcess(p agent.Program) (chosen, error) {
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
		return chosen{dialect: claude.New(), program: p}, nil
	case agent.Qoder:
		return chosen{dialect: qoder.New(), program: p}, nil
	}
	return chosen{}, &ConfigError{Option: "Backend", Problem: fmt.Sprintf("uses the unknown dialect %q", like),
		Fix: fmt.Sprintf("use %q or %q", agent.Claude, agent.Qoder)}
}

// installed is the one CLI that the agent's environment has.
func installed(o *dialect.Input) (chosen, error) {
	if o.PathToExecutable != "" {
		return chosen{}, &ConfigError{Option: "Backend", Problem: fmt.Sprintf("is nil, and PathToExecutable (%s) does not say whose CLI it is", o.PathToExecutable),
			Fix: "set Backend to sdk.Claude or sdk.Qoder"}
	}
	path, _ := o.LookupEnv("PATH")
	var found []chosen
	var names, where []string
	for _, d := range []dialect.Dialect{claude.New(), qoder.New()} {
		names = append(names, d.Traits().ExecutableNames...)
		if at := locate(d.Traits(), o, path); at != "" {
			found = append(found, chosen{dialect: d})
			where = append(where, fmt.Sprintf("%s (%s)", d.Name(), at))
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		if path == "" {
			path = "which is empty"
		}
		return chosen{}, &ConfigError{Option: "Backend",
			Problem: fmt.Sprintf("is nil, and neither %s is on the agent's PATH, %s", strings.Join(names, " nor "), path),
			Fix:     "install one of them, or set Backend to sdk.Claude or sdk.Qoder with the Path of the program"}
	}
	return chosen{}, &ConfigError{Option: "Backend",
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

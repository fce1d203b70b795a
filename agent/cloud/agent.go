package cloud

import (
	"cmp"
	"net/http"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// BaseURL is the address of the service (observed on the Qoder SDK 1.0.39).
const BaseURL = "https://api.qoder.com/api/v1/cloud"

// BaseURLEnv is the environment variable of the host that replaces [BaseURL] (observed on the
// Qoder SDK 1.0.39).
const BaseURLEnv = "QODER_CLOUD_AGENT_API_BASE"

// Config says what to talk to.
type Config struct {
	// Agent is Options.ExperimentalCloudAgent, which was checked.
	Agent session.CloudAgent
	// Token is the access token, a secret.
	Token string
	// BaseURL is the address of the service; "": [BaseURL].
	BaseURL string
	// HTTP makes the requests. It must end a request, and the reading of its answer, when the
	// request's context ends, and must not repeat a request. nil: a transport of net/http of
	// the agent's own.
	HTTP http.RoundTripper
}

// Host is what an agent has of the runtime that it lives in.
type Host struct {
	Clock session.Clock
	Exec  session.Executor
	Rand  session.Rand
	// Emit reports an event of the session. nil: events are dropped.
	Emit func(session.Event)
}

// Agent is a cloud agent, as an [agent.Program]. It belongs to one session, whose connections to
// the cloud follow one another: Serve is not for concurrent use.
type Agent struct {
	cfg  Config
	host Host

	agentID   string // of the cloud's agent; "": not known
	sessionID string // of the cloud's session; "": not created yet
	lastID    string // of the last event with an id that the host was given
	seen      ids    // of events that the host was given
	book      book
	served    int               // calls of Serve
	unread    map[string][]byte // results by uuid that a connection did not get rid of
}

// New returns an agent.
func New(c Config, h Host) *Agent {
	c.BaseURL = c.address()
	if h.Emit == nil {
		h.Emit = func(session.Event) {}
	}
	a := &Agent{cfg: c, host: h, sessionID: c.Agent.Session.ID, unread: make(map[string][]byte)}
	if c.Agent.Agent != nil {
		a.agentID = c.Agent.Agent.ID
	}
	if c.Agent.Stream != nil {
		a.lastID = c.Agent.Stream.AfterID
	}
	return a
}

func (c *Config) address() string { return strings.TrimRight(cmp.Or(c.BaseURL, BaseURL), "/") }

// AgentName implements [agent.Program].
func (*Agent) AgentName() string { return "qoder cloud" }

// Serve implements [agent.Program]: it is one connection to the cloud. port must be an
// [agent.Signaller].
func (a *Agent) Serve(_ agent.Launch, port agent.Port) agent.Exit {
	a.served++
	c := newConn(a, port)
	defer c.end()
	return c.serve()
}

// transport is what makes the requests of a connection, and what lets go of it.
func (c *Config) transport() (rt http.RoundTripper, done func()) {
	if c.HTTP != nil {
		return c.HTTP, func() {}
	}
	own := http.DefaultTransport
	if t, ok := own.(*http.Transport); ok {
		t = t.Clone()
		return t, t.CloseIdleConnections
	}
	return own, func() {}
}

func (a *Agent) uuid() string { return kernel.NewUUID(a.host.Rand) }

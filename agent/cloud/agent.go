package cloud

import (
	"net/http"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// defaultURL is the address of the service (observed on the Qoder SDK 1.0.39).
const defaultURL = "https://api.qoder.com/api/v1/cloud"

// baseURLEnv is the environment variable of the host that replaces [defaultURL] (observed on the
// Qoder SDK 1.0.39).
const baseURLEnv = "QODER_CLOUD_AGENT_API_BASE"

// target is what an agent talks to.
type target struct {
	Config
	agent session.CloudAgent // Options.ExperimentalCloudAgent, which was checked
	token string             // the access token, a secret
}

// program is a cloud agent, as an [agent.Program]. It belongs to one session, whose connections to
// the cloud follow one another: Serve is not for concurrent use.
type program struct {
	cfg  target
	host backend.Seams

	agentID   string // of the cloud's agent; "": not known
	sessionID string // of the cloud's session; "": not created yet
	lastID    string // of the last event with an id that the host was given
	seen      ids    // of events that the host was given
	book      book
	served    int               // calls of Serve
	unread    map[string][]byte // results by uuid that a connection did not get rid of
}

// newProgram returns an agent.
func newProgram(t target, seams backend.Seams) *program {
	if seams.Emit == nil {
		seams.Emit = func(session.Event) {}
	}
	a := &program{cfg: t, host: seams, sessionID: t.agent.Session.ID, unread: make(map[string][]byte)}
	if t.agent.Agent != nil {
		a.agentID = t.agent.Agent.ID
	}
	if t.agent.Stream != nil {
		a.lastID = t.agent.Stream.AfterID
	}
	return a
}

// AgentName implements [agent.Program].
func (*program) AgentName() string { return "qoder cloud" }

// Serve implements [agent.Program]: it is one connection to the cloud. port must be an
// [agent.Signaller].
func (a *program) Serve(_ agent.Launch, port agent.Port) agent.Exit {
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

func (a *program) uuid() string { return kernel.NewUUID(a.host.Rand) }

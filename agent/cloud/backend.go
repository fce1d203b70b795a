package cloud

import (
	"cmp"
	"net/http"
	"net/url"
	"strings"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/session"
)

// Config configures [Backend]. The zero value talks to the vendor's service.
type Config struct {
	// BaseURL is the address of the service, http or https, with its path. "":
	// $QODER_CLOUD_AGENT_API_BASE of this process, then https://api.qoder.com/api/v1/cloud.
	BaseURL string
	// HTTP makes the requests, for example through a proxy or with other certificates. It
	// must end a request, and the reading of its answer, when the request's context ends. It
	// must not send a request twice. It is used concurrently by the sessions of the backend.
	// nil: a transport of net/http for each session, with the proxy of the environment.
	HTTP http.RoundTripper
}

// Backend returns the backend for Qoder's Cloud Agent, which runs in the cloud:
// Options.ExperimentalCloudAgent says which agent and session. See docs/cloud.md.
func Backend(c Config) session.Backend { return &service{c} }

type service struct{ Config }

func (*service) AgentName() string { return qoder.Name }

// Agent implements [backend.Backend].
func (s *service) Agent(in *dialect.Input) (backend.Agent, error) {
	t, err := s.target(in)
	return backend.Agent{
		Dialect:    qoder.NewCloud(),
		NewProgram: func(seams backend.Seams) agent.Program { return newProgram(t, seams) },
		Place:      t.BaseURL,
	}, err
}

// target returns the endpoint of sessions with these options. The dialect reports other
// mistakes in the options.
func (s *service) target(in *dialect.Input) (target, error) {
	t := target{Config: s.Config}
	if t.BaseURL == "" {
		t.BaseURL, _ = (&dialect.Input{Facts: dialect.Facts{ParentEnv: in.ParentEnv}}).LookupHostEnv(baseURLEnv)
	}
	t.BaseURL = cmp.Or(t.BaseURL, defaultURL)
	t.BaseURL = strings.TrimRight(t.BaseURL, "/")
	if u, err := url.Parse(t.BaseURL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery+u.Fragment != "" {
		return t, &session.ConfigError{Option: "Backend", Backend: qoder.Name, Problem: "the address of the cloud is no http or https URL, or has a login or a query",
			Fix: "set Config.BaseURL of cloud.Backend, or " + baseURLEnv + ", to a URL such as " + defaultURL}
	}
	if in.ExperimentalCloudAgent != nil {
		t.agent = *in.ExperimentalCloudAgent
	}
	t.token, _ = qoder.AccessToken(in) // the dialect reports the error
	return t, nil
}

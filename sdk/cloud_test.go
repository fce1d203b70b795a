package sdk_test

import (
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/cloud"
	"github.com/agent-troupe/troupe/agent/cloud/cloudtest"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

const cloudToken = "pat-secret"

// inCloud runs a test with a service in memory, on virtual time.
func inCloud(t *testing.T, s *cloudtest.Server, o *sdk.Options, test func(t *testing.T, w *cloudWorld)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		rt, err := runtime.New(runtime.Config{Logger: slog.New(slog.DiscardHandler)})
		require.NoError(t, err)
		s.Clock, s.Exec = kernel.NewClock(nil), kernel.GoExecutor{}
		s.Token = cloudToken
		w := &cloudWorld{server: s}
		own := *o
		own.Runtime = rt
		own.Backend = cloud.Backend(cloud.Config{HTTP: s, BaseURL: "https://cloud.test/api/v1/cloud/"})
		if own.Auth == nil {
			own.Auth = sdk.AccessToken(cloudToken)
		}
		own.OnEvent = w.note
		w.options = own
		w.client = sdk.NewClient(&own)
		test(t, w)
		assert.NoError(t, w.client.Close(t.Context()))
		assert.NoError(t, rt.Shutdown(t.Context()))
		synctest.Wait()
		assert.Zero(t, s.Streams(), "open streams")
		for _, e := range w.all() {
			assert.NotContains(t, e, cloudToken)
		}
	})
}

type cloudWorld struct {
	server  *cloudtest.Server
	options sdk.Options
	client  *sdk.Client
	mu      sync.Mutex
	events  []session.Event
}

func (w *cloudWorld) note(r session.EventRecord) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, r.Event)
}

// all are the events so far, as text.
func (w *cloudWorld) all() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []string
	for _, e := range w.events {
		all = append(all, e.String())
	}
	return all
}

// eventsOf returns the events of a type, also those that are on their way.
func eventsOf[E session.Event](w *cloudWorld) []E {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	var some []E
	for _, e := range w.events {
		if e, ok := e.(E); ok {
			some = append(some, e)
		}
	}
	return some
}

// ask sends a message and returns its result.
func (w *cloudWorld) ask(t *testing.T, text string) (*protocol.ResultMessage, error) {
	t.Helper()
	turn, err := w.client.Send(t.Context(), sdk.UserText(text))
	require.NoError(t, err)
	return turn.Result(t.Context())
}

func existing() *sdk.Options {
	return &sdk.Options{ExperimentalCloudAgent: &session.CloudAgent{Session: session.CloudSession{ID: "sess/9 x"}}}
}

func created() *sdk.Options {
	return &sdk.Options{ExperimentalCloudAgent: &session.CloudAgent{
		Agent:   &session.CloudAgentReference{Create: &session.CloudAgentCreate{Name: "n", Model: "auto"}},
		Session: session.CloudSession{Create: &session.CloudSessionCreate{EnvironmentID: "env"}},
	}}
}

func TestACloudSession(t *testing.T) {
	t.Parallel()
	inCloud(t, &cloudtest.Server{}, created(), func(t *testing.T, w *cloudWorld) {
		require.NoError(t, w.client.Connect(t.Context()))
		for i, text := range []string{"one", "two"} {
			r, err := w.ask(t, text)
			require.NoError(t, err)
			assert.Equal(t, fmt.Sprintf("answer to %s in turn_%d", text, i+1), r.Result)
			assert.InDelta(t, 2000, float64(r.DurationMS), 1e-9)
			assert.InDelta(t, 0.25*float64(i+1), r.TotalCostUSD, 1e-9)
		}
		assert.Equal(t, "sess_2", w.client.SessionID())
		assert.Equal(t, []*session.CloudOpened{{SessionID: "sess_2", AgentID: "agent_1", SessionCreated: true, AgentCreated: true}}, eventsOf[*session.CloudOpened](w))
		got, err := w.client.Initialized()
		require.NoError(t, err)
		assert.Equal(t, "cloud-agent", got.OutputStyle)
		var asked []string
		for _, r := range w.server.Requests() {
			asked = append(asked, r.Method+" "+r.Path+" "+r.Body)
			assert.Equal(t, "Bearer "+cloudToken, r.Header.Get("Authorization"))
		}
		assert.Equal(t, []string{
			`POST /agents {"model":"auto","name":"n"}`, `POST /sessions {"agent":"agent_1","environment_id":"env"}`,
			`GET /sessions/sess_2/events/stream `,
			`POST /sessions/sess_2/events {"events":[{"content":"one","type":"user.message"}]}`,
			`POST /sessions/sess_2/events {"events":[{"content":"two","type":"user.message"}]}`,
		}, asked)
	})
}

package sdk_test

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent/cloud"
	"github.com/agent-troupe/troupe/agent/cloud/cloudtest"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// read reads the session's messages to its end: the ids of the cloud's events in order.
func (w *cloudWorld) read(t *testing.T) func() (ids []string, results int) {
	var ids []string
	results := 0
	done := make(chan struct{})
	go func() {
		defer close(done)
		for m, err := range w.client.Messages(t.Context()) {
			if err != nil {
				return
			}
			switch m := m.(type) {
			case *protocol.CloudAgentEventMessage:
				ids = append(ids, m.ID)
			case *protocol.ResultMessage:
				results++
			}
		}
	}()
	synctest.Wait() // otherwise Result reads the messages
	return func() ([]string, int) {
		<-done
		return ids, results
	}
}

// onStream makes a fault happen to the first n streams.
func onStream(n int, f cloudtest.Fault) func(int, *cloudtest.Request) *cloudtest.Fault {
	return func(_ int, r *cloudtest.Request) *cloudtest.Fault {
		if !r.Stream() || n == 0 {
			return nil
		}
		n--
		return &f
	}
}

// onPost makes a fault happen to the first n messages.
func onPost(n int, f cloudtest.Fault) func(int, *cloudtest.Request) *cloudtest.Fault {
	return func(_ int, r *cloudtest.Request) *cloudtest.Fault {
		if !strings.Contains(r.Body, "user.message") || n == 0 {
			return nil
		}
		n--
		return &f
	}
}

// TestCloudStreamBreaksAtEachByte: the connection of the stream breaks, or ends, or is silent, after each of its bytes.
func TestCloudStreamBreaksAtEachByte(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(at int) cloudtest.Fault{
		"reset":  func(at int) cloudtest.Fault { return cloudtest.Fault{ResetAt: at} },
		"end":    func(at int) cloudtest.Fault { return cloudtest.Fault{EndAt: at} },
		"silent": func(at int) cloudtest.Fault { return cloudtest.Fault{SilentAt: at} },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			step := 1
			if testing.Short() {
				step = 23
			}
			broken := 0
			for at := -1; at < 800; at += step {
				if at == 0 {
					continue
				}
				s := &cloudtest.Server{Fault: onStream(1, fault(at))}
				inCloud(t, s, existing(), func(t *testing.T, w *cloudWorld) {
					require.NoError(t, w.client.Connect(t.Context()))
					read := w.read(t)
					begin := time.Now()
					r, err := w.ask(t, "one")
					require.NoError(t, err, "byte %d", at)
					assert.Less(t, time.Since(begin), 2*time.Minute)
					assert.Equal(t, "answer to one in turn_1", r.Result)
					assert.InDelta(t, 0.25, r.TotalCostUSD, 1e-9)
					require.NoError(t, w.client.Close(t.Context()))
					ids, results := read()
					assert.Equal(t, []string{"e1", "e2", "e3", "e4"}, ids, "byte %d", at)
					assert.Equal(t, 1, results)
					assert.Equal(t, []string{"one"}, s.Messages())
					broken += len(eventsOf[*session.CloudReconnecting](w))
				})
			}
			assert.Greater(t, broken, 400/step)
		})
	}
}

// TestCloudFaults: what goes wrong with a message or the stream, and what becomes of the message.
func TestCloudFaults(t *testing.T) {
	t.Parallel()
	const answer = "answer to one in turn_1"
	for name, c := range map[string]struct {
		fault  func(int, *cloudtest.Request) *cloudtest.Fault
		result string // "": an error
		errors string
		taken  int           // how often the message arrived
		least  time.Duration // that it took
	}{
		"no connection":                  {fault: onPost(2, cloudtest.Fault{NoConnection: true}), result: answer, taken: 1},
		"never a connection":             {fault: onPost(-1, cloudtest.Fault{NoConnection: true}), errors: "connection refused"},
		"429":                            {fault: onPost(2, cloudtest.Fault{Status: 429, RetryAfter: "20"}), result: answer, taken: 1, least: 40 * time.Second},
		"always 429":                     {fault: onPost(-1, cloudtest.Fault{Status: 429}), errors: "status 429"},
		"429 until much later":           {fault: onPost(1, cloudtest.Fault{Status: 429, RetryAfter: "86400"}), result: answer, taken: 1, least: time.Minute},
		"400":                            {fault: onPost(1, cloudtest.Fault{Status: 400}), errors: "status 400"},
		"the answer is lost":             {fault: onPost(1, cloudtest.Fault{Lost: true}), result: answer, taken: 1},
		"500 after it arrived":           {fault: onPost(1, cloudtest.Fault{Status: 500}), result: answer, taken: 1},
		"500 before it arrived":          {fault: onPost(1, cloudtest.Fault{Status: 500, NoEffect: true}), errors: "was not posted again"},
		"503 before it arrived":          {fault: onPost(1, cloudtest.Fault{Status: 503, NoEffect: true, RetryAfter: "1"}), errors: "was not posted again"},
		"a late answer":                  {fault: onPost(1, cloudtest.Fault{Delay: 10 * time.Second}), result: answer, taken: 1},
		"no answer":                      {fault: onPost(1, cloudtest.Fault{Delay: time.Hour}), result: answer, taken: 1},
		"a stream that is refused":       {fault: onStream(3, cloudtest.Fault{Status: 503}), result: answer, taken: 1},
		"a stream that is limited":       {fault: onStream(1, cloudtest.Fault{Status: 429, RetryAfter: "30"}), result: answer, taken: 1, least: 0},
		"a stream that drips":            {fault: onStream(1, cloudtest.Fault{Drip: 20 * time.Millisecond}), result: answer, taken: 1},
		"a stream of one byte a minute":  {fault: onStream(1, cloudtest.Fault{Drip: 59 * time.Second}), result: answer, taken: 1, least: time.Hour},
		"events twice":                   {fault: onStream(-1, cloudtest.Fault{Twice: true}), result: answer, taken: 1},
		"events out of order":            {fault: onStream(-1, cloudtest.Fault{Swapped: true}), result: answer, taken: 1},
		"all events again, after breaks": {fault: onStream(6, cloudtest.Fault{ResetAt: 300, FromStart: true}), result: answer, taken: 1},
		"lost, and the stream is broken": {fault: func(_ int, r *cloudtest.Request) *cloudtest.Fault {
			if r.Stream() {
				return &cloudtest.Fault{ResetAt: 250}
			}
			return &cloudtest.Fault{Lost: true}
		}, result: answer, taken: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &cloudtest.Server{Fault: c.fault}
			inCloud(t, s, existing(), func(t *testing.T, w *cloudWorld) {
				require.NoError(t, w.client.Connect(t.Context()))
				read := w.read(t)
				begin := time.Now()
				r, err := w.ask(t, "one")
				require.NoError(t, err)
				if c.result != "" {
					assert.Equal(t, c.result, r.Result, "%v", r.Errors)
					assert.False(t, r.Failed())
				} else {
					assert.True(t, r.Failed())
					require.NotEmpty(t, r.Errors)
					assert.Contains(t, r.Errors[0], c.errors)
				}
				assert.GreaterOrEqual(t, time.Since(begin), c.least)
				assert.Len(t, s.Messages(), c.taken)
				require.NoError(t, w.client.Close(t.Context()))
				ids, results := read()
				assert.Equal(t, 1, results)
				slices.Sort(ids)
				assert.Equal(t, ids, slices.Compact(slices.Clone(ids)), "no event twice")
			})
		})
	}
}

// TestCloudConnectionThatDies: the stream cannot be opened any more while a turn runs. The next connection has the rest of
// the turn, and its result.
func TestCloudConnectionThatDies(t *testing.T) {
	t.Parallel()
	for _, policy := range []session.Recovery{"", session.RecoverContinue} {
		t.Run("recovery "+string(policy), func(t *testing.T) {
			t.Parallel()
			streams := 0
			s := &cloudtest.Server{}
			s.Fault = func(_ int, r *cloudtest.Request) *cloudtest.Fault {
				if !r.Stream() {
					return nil
				}
				switch streams++; {
				case streams == 1:
					return &cloudtest.Fault{ResetAt: 250}
				case streams <= 11:
					return &cloudtest.Fault{Status: 502}
				}
				return nil
			}
			o := existing()
			o.MaxRestarts, o.Recovery = 3, policy
			inCloud(t, s, o, func(t *testing.T, w *cloudWorld) {
				require.NoError(t, w.client.Connect(t.Context()))
				read := w.read(t)
				for i, text := range []string{"one", "two"} {
					r, err := w.ask(t, text)
					require.NoError(t, err)
					assert.Equal(t, fmt.Sprintf("answer to %s in turn_%d", text, i+1), r.Result)
				}
				assert.Equal(t, []string{"one", "two"}, s.Messages())
				assert.Len(t, eventsOf[*session.Recovered](w), 1)
				require.NoError(t, w.client.Close(t.Context()))
				ids, results := read()
				assert.Equal(t, 2, results)
				assert.Equal(t, []string{"e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8"}, ids)
			})
		})
	}
}

// TestCloudStreamThatBreaksOften: attempts are counted since the last event, so a long turn outlives any number of breaks.
func TestCloudStreamThatBreaksOften(t *testing.T) {
	t.Parallel()
	const parts = 60
	s := &cloudtest.Server{Fault: onStream(-1, cloudtest.Fault{ResetAt: 250}), Turn: func(string, string) (steps []cloudtest.Step) {
		for i := range parts {
			steps = append(steps, cloudtest.Step{After: time.Second, Event: cloudtest.Event{Name: "agent.message", Data: map[string]any{"content": fmt.Sprintf("%d,", i)}}})
		}
		return append(steps, cloudtest.Step{Event: cloudtest.Event{Name: "session.status_idle"}})
	}}
	inCloud(t, s, existing(), func(t *testing.T, w *cloudWorld) {
		require.NoError(t, w.client.Connect(t.Context()))
		r, err := w.ask(t, "one")
		require.NoError(t, err)
		assert.Equal(t, parts, strings.Count(r.Result, ","))
		assert.Greater(t, len(eventsOf[*session.CloudReconnecting](w)), 15)
	})
}

// TestCloudMessageOnDeadConnection: the connection is dead, so the answer to a message is lost and the stream is silent. The
// stream is opened again at once, and shows that the message has arrived.
func TestCloudMessageOnDeadConnection(t *testing.T) {
	t.Parallel()
	streams, posts := 0, 0
	s := &cloudtest.Server{Fault: func(_ int, r *cloudtest.Request) *cloudtest.Fault {
		if r.Stream() {
			if streams++; streams == 1 {
				return &cloudtest.Fault{SilentAt: 330}
			}
		} else if posts++; posts == 2 {
			return &cloudtest.Fault{Lost: true}
		}
		return nil
	}, Turn: func(turn, text string) []cloudtest.Step {
		return []cloudtest.Step{
			{Event: cloudtest.Event{Name: "user.message", Data: map[string]any{"content": text}}},
			{Event: cloudtest.Event{Name: "agent.message", Data: map[string]any{"content": turn}}},
			{Event: cloudtest.Event{Name: "session.status_idle"}},
		}
	}}
	inCloud(t, s, existing(), func(t *testing.T, w *cloudWorld) {
		require.NoError(t, w.client.Connect(t.Context()))
		for i := range 2 {
			r, err := w.ask(t, "same text")
			require.NoError(t, err)
			assert.Equal(t, fmt.Sprintf("turn_%d", i+1), r.Result, "%v", r.Errors)
		}
		assert.Equal(t, []string{"same text", "same text"}, s.Messages())
		assert.Equal(t, 2, streams)
		var again *cloudtest.Request
		for _, r := range s.Requests() {
			if r.Stream() {
				again = r
			}
		}
		assert.Equal(t, "e3", again.Query.Get("after_id"), "where the first stream fell silent")
		assert.Equal(t, "e3", again.Header.Get("Last-Event-ID"))
	})
}

// echoing is a service that repeats the token in what it says.
type echoing struct{ err bool }

func (e echoing) RoundTrip(r *http.Request) (*http.Response, error) {
	if e.err {
		return nil, fmt.Errorf("proxy: cannot send %q", r.Header)
	}
	body := fmt.Sprintf(`{"error":{"type":"authentication_error","message":"bad %s"}}`, r.Header.Get("Authorization"))
	return &http.Response{StatusCode: http.StatusBadRequest, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// TestCloudTokenIsInNoError: not even if the service or the transport repeats it.
func TestCloudTokenIsInNoError(t *testing.T) {
	t.Parallel()
	for _, transport := range []echoing{{err: true}, {}} {
		inCloud(t, &cloudtest.Server{}, existing(), func(t *testing.T, w *cloudWorld) {
			o := w.options
			o.Backend = cloud.Backend(cloud.Config{HTTP: transport})
			_, err := sdk.Run(t.Context(), "hi", &o)
			require.ErrorAs(t, err, new(*session.CloudError))
			assert.NotContains(t, err.Error(), cloudToken)
			assert.Contains(t, err.Error(), "[token]")
		})
	}
}

// TestCloudThatIsGone: without MaxRestarts the session ends with what the cloud said.
func TestCloudThatIsGone(t *testing.T) {
	t.Parallel()
	s := &cloudtest.Server{Fault: onStream(1, cloudtest.Fault{ResetAt: 250})}
	first := s.Fault
	s.Fault = func(n int, r *cloudtest.Request) *cloudtest.Fault {
		if f := first(n, r); f != nil || !r.Stream() {
			return f
		}
		return &cloudtest.Fault{Status: 502}
	}
	inCloud(t, s, existing(), func(t *testing.T, w *cloudWorld) {
		require.NoError(t, w.client.Connect(t.Context()))
		_, err := w.ask(t, "one")
		var gone *session.CloudError
		require.ErrorAs(t, err, &gone)
		assert.Equal(t, 502, gone.Status)
		require.ErrorAs(t, err, new(*session.ExitError))
		left := eventsOf[*session.CloudLeft](w)
		if assert.Len(t, left, 1) {
			assert.Len(t, left[0].Messages, 1)
			assert.Equal(t, "e1", left[0].LastEventID)
			assert.False(t, left[0].Interrupted)
		}
	})
}

// TestCloudLogin: a token that is refused is an AuthError, at the start and later.
func TestCloudLogin(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(int, *cloudtest.Request) *cloudtest.Fault{
		"at the start": onStream(1, cloudtest.Fault{Status: 401}),
		"of a message": onPost(1, cloudtest.Fault{Status: 403}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := existing()
			expired := 0
			o.OnAuthExpired = func(string) { expired++ }
			inCloud(t, &cloudtest.Server{Fault: fault}, o, func(t *testing.T, w *cloudWorld) {
				err := w.client.Connect(t.Context())
				if err == nil {
					_, err = w.ask(t, "one")
				}
				require.ErrorAs(t, err, new(*session.AuthError))
				require.ErrorAs(t, err, new(*session.CloudError))
				assert.NotContains(t, err.Error(), cloudToken)
				assert.Empty(t, w.server.Messages())
			})
			assert.Equal(t, 1, expired)
		})
	}
}

// TestCloudCreatesOnce: of what may have been created nothing is created again.
func TestCloudCreatesOnce(t *testing.T) {
	t.Parallel()
	at := func(path string, n int, f cloudtest.Fault) func(int, *cloudtest.Request) *cloudtest.Fault {
		return func(_ int, r *cloudtest.Request) *cloudtest.Fault {
			if r.Path != path || n == 0 {
				return nil
			}
			n--
			return &f
		}
	}
	for name, c := range map[string]struct {
		fault   func(int, *cloudtest.Request) *cloudtest.Fault
		asked   int // requests that create
		problem string
	}{
		"an agent is limited":      {at("/agents", 2, cloudtest.Fault{Status: 429, RetryAfter: "3"}), 4, ""},
		"an agent without network": {at("/agents", 1, cloudtest.Fault{NoConnection: true}), 3, ""},
		"an agent's answer lost":   {at("/agents", 1, cloudtest.Fault{Lost: true}), 1, "create agent failed"},
		"an agent refused":         {at("/agents", 1, cloudtest.Fault{Status: 400}), 1, "create agent failed with status 400"},
		"a session fails":          {at("/sessions", 1, cloudtest.Fault{Status: 500}), 2, "create session failed with status 500"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := created()
			o.MaxRestarts = 3 // it never was ready
			inCloud(t, &cloudtest.Server{Fault: c.fault}, o, func(t *testing.T, w *cloudWorld) {
				err := w.client.Connect(t.Context())
				if c.problem == "" {
					require.NoError(t, err)
				} else {
					require.ErrorContains(t, err, c.problem)
				}
				asked := 0
				for _, r := range w.server.Requests() {
					if r.Path == "/agents" || r.Path == "/sessions" {
						asked++
					}
				}
				assert.Equal(t, c.asked, asked)
				if name == "a session fails" { // the user can find the agent
					assert.Equal(t, []*session.CloudOpened{{AgentID: "agent_1", AgentCreated: true}}, eventsOf[*session.CloudOpened](w))
				}
			})
		})
	}
}

// slow is a turn that takes ten minutes.
func slow(_, text string) []cloudtest.Step {
	return []cloudtest.Step{
		{Event: cloudtest.Event{Name: "user.message", Data: map[string]any{"content": text}}},
		{After: 10 * time.Minute, Event: cloudtest.Event{Name: "session.status_idle"}},
	}
}

// TestCloudInterrupt: an interrupt ends the turn; a close interrupts first, and says so.
func TestCloudInterrupt(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, s *cloudtest.Server, test func(t *testing.T, w *cloudWorld, turn *sdk.Turn)) {
		t.Helper()
		s.Turn = slow
		inCloud(t, s, existing(), func(t *testing.T, w *cloudWorld) {
			require.NoError(t, w.client.Connect(t.Context()))
			turn, err := w.client.Send(t.Context(), sdk.UserText("one"))
			require.NoError(t, err)
			time.Sleep(time.Second)
			test(t, w, turn)
		})
	}
	interrupts := func(w *cloudWorld) (n int) {
		for _, r := range w.server.Requests() {
			if strings.Contains(r.Body, "user.interrupt") {
				n++
			}
		}
		return n
	}
	onInterrupt := func(f cloudtest.Fault) func(int, *cloudtest.Request) *cloudtest.Fault {
		return func(_ int, r *cloudtest.Request) *cloudtest.Fault {
			if strings.Contains(r.Body, "user.interrupt") {
				return &f
			}
			return nil
		}
	}
	t.Run("interrupt", func(t *testing.T) {
		t.Parallel()
		run(t, &cloudtest.Server{}, func(t *testing.T, w *cloudWorld, turn *sdk.Turn) {
			_, err := w.client.Interrupt(t.Context())
			require.NoError(t, err)
			_, err = turn.Result(t.Context())
			require.NoError(t, err)
			require.NoError(t, w.client.Close(t.Context()))
			assert.Equal(t, 1, interrupts(w))
			assert.Equal(t, []*session.CloudInterrupted{{SessionID: "sess/9 x"}}, eventsOf[*session.CloudInterrupted](w))
			assert.Empty(t, eventsOf[*session.CloudLeft](w))
		})
	})
	t.Run("interrupt that fails", func(t *testing.T) {
		t.Parallel()
		run(t, &cloudtest.Server{Fault: onInterrupt(cloudtest.Fault{Status: 500, NoEffect: true})}, func(t *testing.T, w *cloudWorld, _ *sdk.Turn) {
			_, err := w.client.Interrupt(t.Context())
			require.ErrorContains(t, err, "status 500")
		})
	})
	t.Run("close", func(t *testing.T) {
		t.Parallel()
		run(t, &cloudtest.Server{}, func(t *testing.T, w *cloudWorld, turn *sdk.Turn) {
			begin := time.Now()
			require.NoError(t, w.client.Close(t.Context()))
			assert.Less(t, time.Since(begin), 5*time.Second)
			_, err := turn.Result(t.Context())
			require.NoError(t, err, "its turn has ended")
			assert.Equal(t, 1, interrupts(w))
			assert.Equal(t, []*session.CloudInterrupted{{SessionID: "sess/9 x"}}, eventsOf[*session.CloudInterrupted](w))
			assert.Empty(t, eventsOf[*session.CloudLeft](w))
		})
	})
	t.Run("close, and the cloud refuses", func(t *testing.T) {
		t.Parallel()
		run(t, &cloudtest.Server{Fault: onInterrupt(cloudtest.Fault{Status: 500, NoEffect: true})}, func(t *testing.T, w *cloudWorld, turn *sdk.Turn) {
			begin := time.Now()
			_ = w.client.Close(t.Context()) // what it says is the caller's; the turn's error is looked at
			assert.Less(t, time.Since(begin), time.Minute)
			_, err := turn.Result(t.Context())
			require.Error(t, err)
			some := eventsOf[*session.CloudInterrupted](w)
			require.NotEmpty(t, some)
			require.ErrorContains(t, some[0].Err, "status 500")
			left := eventsOf[*session.CloudLeft](w)
			if assert.Len(t, left, 1) {
				assert.False(t, left[0].Interrupted)
				assert.Equal(t, []string{turn.UUID()}, left[0].Messages)
			}
		})
	})
}

// TestCloudPassivation: an idle session keeps no connection, and the next message opens another.
func TestCloudPassivation(t *testing.T) {
	t.Parallel()
	o := existing()
	o.PassivateAfter = time.Minute
	s := &cloudtest.Server{}
	inCloud(t, s, o, func(t *testing.T, w *cloudWorld) {
		require.NoError(t, w.client.Connect(t.Context()))
		read := w.read(t)
		for i := range 3 {
			r, err := w.ask(t, "m")
			require.NoError(t, err)
			assert.Equal(t, fmt.Sprintf("answer to m in turn_%d", i+1), r.Result)
			time.Sleep(10 * time.Minute)
			assert.Zero(t, s.Streams(), "open streams")
		}
		require.NoError(t, w.client.Close(t.Context()))
		ids, results := read()
		assert.Len(t, ids, 12)
		assert.Equal(t, 3, results)
	})
}

// TestCloudInAnyWeather: whatever goes wrong, no message arrives twice, each has one result or one error, no event comes
// twice, and everything ends.
func TestCloudInAnyWeather(t *testing.T) {
	t.Parallel()
	n := 200
	if testing.Short() {
		n = 30
	}
	good := 0
	for seed := range n {
		rng := rand.New(rand.NewPCG(uint64(seed), 7))
		s := &cloudtest.Server{WithoutTurnIDs: rng.IntN(4) == 0}
		s.Fault = func(int, *cloudtest.Request) *cloudtest.Fault {
			if rng.IntN(3) != 0 {
				return nil
			}
			fault := &cloudtest.Fault{Twice: rng.IntN(3) == 0, FromStart: rng.IntN(3) == 0, Swapped: rng.IntN(5) == 0}
			switch rng.IntN(9) {
			case 0:
				fault.NoConnection = true
			case 1:
				fault.Status = []int{408, 429, 500, 502, 503}[rng.IntN(5)]
				fault.NoEffect = rng.IntN(2) == 0
			case 2:
				fault.Lost = true
			case 3:
				fault.ResetAt = 1 + rng.IntN(700)
			case 4:
				fault.EndAt = 1 + rng.IntN(700)
			case 5:
				fault.SilentAt = 1 + rng.IntN(700)
			case 6:
				fault.Drip = time.Duration(rng.IntN(50)) * time.Millisecond
			case 7:
				fault.Delay = time.Duration(rng.IntN(60)) * time.Second
			}
			return fault
		}
		o := existing()
		o.MaxRestarts = 5
		inCloud(t, s, o, func(t *testing.T, w *cloudWorld) {
			if err := w.client.Connect(t.Context()); err != nil {
				require.ErrorAs(t, err, new(*session.CloudError), "seed %d", seed)
				return
			}
			read := w.read(t)
			asked := 0
			for i := range 4 {
				text := fmt.Sprintf("message %d", i)
				turn, err := w.client.Send(t.Context(), sdk.UserText(text))
				if err != nil {
					break
				}
				asked++
				r, err := turn.Result(t.Context())
				switch {
				case err != nil:
					require.ErrorAs(t, err, new(*session.CloudError), "seed %d", seed)
				case !r.Failed():
					good++
					assert.Contains(t, r.Result, "answer to "+text+" in", "seed %d", seed)
					assert.Equal(t, 1, strings.Count(r.Result, "answer"), "seed %d: %s", seed, r.Result)
				}
			}
			_ = w.client.Close(t.Context()) // it may say that the session had failed
			ids, results := read()
			assert.LessOrEqual(t, results, asked, "seed %d", seed)
			slices.Sort(ids)
			assert.Equal(t, slices.Compact(slices.Clone(ids)), ids, "seed %d: an event came twice", seed)
			taken := slices.Clone(s.Messages())
			slices.Sort(taken)
			assert.Equal(t, slices.Compact(slices.Clone(taken)), taken, "seed %d: a message arrived twice", seed)
		})
		if t.Failed() {
			return
		}
	}
	assert.Greater(t, good, n*2)
}

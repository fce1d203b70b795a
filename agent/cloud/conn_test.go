package cloud_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
	"github.com/agent-troupe/troupe/agent/cloud"
	"github.com/agent-troupe/troupe/agent/cloud/cloudtest"
	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/session"
)

// host is the host's end of a connection.
type host struct {
	mu      sync.Mutex
	changed chan struct{}
	lines   []string // for the agent
	eof     bool
	signal  error
	out     []string          // from the agent
	gone    func(string) bool // whether the host is gone before a line
}

func newHost() *host { return &host{changed: make(chan struct{}, 1)} }

func (h *host) wake() {
	select {
	case h.changed <- struct{}{}:
	default:
	}
}

func (h *host) say(line string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.lines = append(h.lines, line)
	h.wake()
}

func (h *host) initialize() {
	h.say(`{"type":"control_request","request_id":"i","request":{"subtype":"initialize"}}`)
}

func (h *host) send(uuid, content string) {
	h.say(fmt.Sprintf(`{"type":"user","uuid":%q,"message":{"role":"user","content":%s}}`, uuid, content))
}

func (h *host) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.eof = true
	h.wake()
}

// Signal implements agent.Signaller.
func (h *host) Signal(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.signal = err
	h.wake()
}

// Next implements agent.Port.
func (h *host) Next(wait time.Duration) ([]byte, error) {
	var over <-chan time.Time
	if wait >= 0 {
		over = time.After(wait)
	}
	for {
		h.mu.Lock()
		err, line := h.signal, ""
		h.signal = nil
		if err == nil && len(h.lines) > 0 {
			line, h.lines = h.lines[0], h.lines[1:]
		} else if err == nil && h.eof {
			h.eof, err = false, io.EOF
		}
		h.mu.Unlock()
		if err != nil || line != "" {
			return []byte(line), err
		}
		select {
		case <-h.changed:
		case <-over:
			return nil, agent.ErrWaited
		}
	}
}

// Write implements agent.Port.
func (h *host) Write(b []byte) error {
	if h.gone != nil && h.gone(string(b)) {
		return errors.New("the host is gone")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.out = append(h.out, strings.TrimSpace(string(b)))
	return nil
}

// Stderr implements agent.Port.
func (h *host) Stderr([]byte) {}

// of returns the lines of a type.
func (h *host) of(kind string) (all []map[string]any) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, line := range h.out {
		var m map[string]any
		if json.Unmarshal([]byte(line), &m) == nil && m["type"] == kind {
			all = append(all, m)
		}
	}
	return all
}

// connections makes an agent, and a function that serves one connection of it.
func connections(s *cloudtest.Server, emit func(session.Event)) func(*host) <-chan agent.Exit {
	in := &dialect.Input{Options: session.Options{ExperimentalCloudAgent: &session.CloudAgent{Session: session.CloudSession{ID: "s"}}}}
	what, err := cloud.Backend(cloud.Config{HTTP: s}).(backend.Backend).Agent(in)
	if err != nil {
		panic(err)
	}
	a := what.NewProgram(backend.Seams{Clock: kernel.NewClock(nil), Exec: kernel.GoExecutor{}, Rand: kernel.NewRand(new(uint64(1))), Emit: emit})
	return func(h *host) <-chan agent.Exit {
		exit := make(chan agent.Exit, 1)
		go func() { exit <- a.Serve(agent.Launch{}, h) }()
		return exit
	}
}

// interrupts counts the interrupts that were posted.
func interrupts(s *cloudtest.Server) (n int) {
	for _, r := range s.Requests() {
		if strings.Contains(r.Body, "user.interrupt") {
			n++
		}
	}
	return n
}

// TestEndOfTheHost: a host that goes without an interrupt leaves no turn running.
func TestEndOfTheHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &cloudtest.Server{Turn: func(string, string) []cloudtest.Step {
			return []cloudtest.Step{{After: time.Hour, Event: cloudtest.Event{Name: "session.status_idle"}}}
		}}
		var events []string
		h := newHost()
		exit := connections(s, func(e session.Event) { events = append(events, e.String()) })(h)
		h.initialize()
		h.send("m1", `"work"`)
		time.Sleep(time.Minute)
		h.end()
		begin := time.Now()
		assert.Equal(t, agent.Exit{}, <-exit)
		assert.Less(t, time.Since(begin), time.Second)
		assert.Equal(t, 1, interrupts(s))
		assert.Len(t, h.of("result"), 1)
		assert.Equal(t, []string{"cloud: session s", "cloud: the turn of session s was asked to stop"}, events)
	})
}

// TestSignals end a connection at once, and say what may still run.
func TestSignals(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]agent.Exit{
		agent.ErrTerminated: {Code: 143}, agent.ErrInterrupted: {Code: 130}, agent.ErrKilled: {Signal: "KILL"},
	} {
		t.Run(err.Error(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &cloudtest.Server{}
				var left []*session.CloudLeft
				h := newHost()
				exit := connections(s, func(e session.Event) {
					if e, ok := e.(*session.CloudLeft); ok {
						left = append(left, e)
					}
				})(h)
				h.initialize()
				h.send("m1", `"work"`)
				synctest.Wait()
				h.Signal(err)
				assert.Equal(t, want, <-exit)
				if assert.Len(t, left, 1) {
					assert.Equal(t, &session.CloudLeft{SessionID: "s", Messages: []string{"m1"}, LastEventID: "e1"}, left[0])
				}
				synctest.Wait()
				assert.Zero(t, s.Streams())
				time.Sleep(time.Minute) // of the server's turn
			})
		})
	}
}

// TestResultThatTheHostDidNotGet: the host is gone before the result; the next connection has it.
func TestResultThatTheHostDidNotGet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &cloudtest.Server{}
		serve := connections(s, nil)
		first := newHost()
		first.gone = func(line string) bool { return strings.Contains(line, `"type":"result"`) }
		exit := serve(first)
		first.initialize()
		first.send("m1", `"work"`)
		assert.Equal(t, 1, (<-exit).Code)
		assert.Len(t, first.of("cloud_agent_event"), 4)
		second := newHost()
		exit = serve(second)
		second.initialize()
		second.send("m1", `"work"`)
		time.Sleep(time.Minute)
		second.send("m2", `"more"`)
		time.Sleep(time.Minute)
		second.send("m1", `"work"`) // given once more, for no reason
		synctest.Wait()
		second.end()
		assert.Equal(t, agent.Exit{}, <-exit)
		assert.Equal(t, []string{"work", "more"}, s.Messages())
		var texts []any
		for _, r := range second.of("result") {
			texts = append(texts, r["result"])
		}
		assert.Equal(t, []any{"answer to work in turn_1", "answer to more in turn_2"}, texts)
		assert.Len(t, second.of("cloud_agent_event"), 4, "only those of the second turn")
	})
}

// TestMessageThatIsGivenAgain is followed, and not posted again.
func TestMessageThatIsGivenAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &cloudtest.Server{}
		serve := connections(s, nil)
		first := newHost()
		exit := serve(first)
		first.initialize()
		first.send("m1", `"work"`)
		synctest.Wait()
		first.Signal(agent.ErrKilled)
		<-exit
		second := newHost()
		exit = serve(second)
		second.initialize()
		second.send("m1", `"work"`)
		synctest.Wait()
		if started := second.of("command_lifecycle"); assert.Len(t, started, 1) {
			assert.Equal(t, "started", started[0]["state"])
			assert.Equal(t, "m1", started[0]["command_uuid"])
		}
		time.Sleep(time.Minute)
		second.end()
		assert.Equal(t, agent.Exit{}, <-exit)
		assert.Equal(t, []string{"work"}, s.Messages())
		assert.Len(t, second.of("result"), 1)
	})
}

// TestMessageThatWasNotPosted belongs to the connection that it was given to: the host decides whether another one gets it.
func TestMessageThatWasNotPosted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		down := true
		s := &cloudtest.Server{Fault: func(_ int, r *cloudtest.Request) *cloudtest.Fault {
			return &cloudtest.Fault{NoConnection: down && !r.Stream()}
		}}
		serve := connections(s, nil)
		first := newHost()
		exit := serve(first)
		first.initialize()
		first.send("m1", `"lost"`)
		synctest.Wait()
		first.Signal(agent.ErrKilled)
		<-exit
		down = false
		second := newHost()
		exit = serve(second)
		second.initialize()
		second.send("m2", `"next"`)
		time.Sleep(time.Minute)
		second.end()
		assert.Equal(t, agent.Exit{}, <-exit)
		assert.Equal(t, []string{"next"}, s.Messages())
	})
}

// TestContentOfMessages: a content is flattened to one text.
func TestContentOfMessages(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		`"plain"`: "plain",
		`[{"type":"text","text":"a"},{"type":"text","text":"b"}]`:    "a\nb",
		`[{"type":"text","text":"a"}, {"type":"image", "source":1}]`: "a\n" + `{"type":"image","source":1}`,
		`[]`:   "",
		`null`: "",
		`7`:    "",
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &cloudtest.Server{}
			h := newHost()
			exit := connections(s, nil)(h)
			h.initialize()
			h.send("m1", content)
			time.Sleep(time.Minute)
			h.end()
			<-exit
			assert.Equal(t, []string{want}, s.Messages())
		})
	}
}

// TestRequestsThatTheCloudDoesNotHave are refused, and an interrupt before the start, too.
func TestRequestsThatTheCloudDoesNotHave(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHost()
		exit := connections(&cloudtest.Server{}, nil)(h)
		h.say(`{"type":"control_request","request_id":"1","request":{"subtype":"interrupt"}}`)
		h.say(`{"type":"control_request","request_id":"2","request":{"subtype":"set_model"}}`)
		h.say(`not json`)
		h.end()
		assert.Equal(t, agent.Exit{}, <-exit)
		answers := h.of("control_response")
		if assert.Len(t, answers, 2) {
			for _, a := range answers {
				assert.Equal(t, "error", a["response"].(map[string]any)["subtype"])
			}
		}
	})
}

// TestSlowHost: while the host does not read, the stream is not read without bound.
func TestSlowHost(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const parts = 2000
		s := &cloudtest.Server{Turn: func(string, string) (steps []cloudtest.Step) {
			for range parts {
				steps = append(steps, cloudtest.Step{After: time.Millisecond, Event: cloudtest.Event{Name: "agent.message", Data: map[string]any{"content": "x"}}})
			}
			return append(steps, cloudtest.Step{Event: cloudtest.Event{Name: "session.status_idle"}})
		}}
		h := newHost()
		h.gone = func(string) bool { time.Sleep(5 * time.Millisecond); return false }
		exit := connections(s, nil)(h)
		h.initialize()
		h.send("m1", `"work"`)
		time.Sleep(time.Minute)
		h.end()
		assert.Equal(t, agent.Exit{}, <-exit)
		if r := h.of("result"); assert.Len(t, r, 1) {
			assert.Equal(t, strings.Repeat("x", parts), r[0]["result"])
		}
		assert.Len(t, h.of("cloud_agent_event"), parts+1)
	})
}

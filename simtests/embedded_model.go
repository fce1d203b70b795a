package simtests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
)

// clientHeader is the header of requests that says which client makes them.
const clientHeader = "Troupe-Simulated-Client"

// answered is an answer of the model's.
type answered struct {
	said   []model.Block // without ids
	usage  model.Usage
	sound  bool      // its bytes are those of a correct answer
	whole  bool      // and the client has read all of them
	framed bool      // the agent has written it
	at     time.Time // when it did that
	aside  bool      // it is a summary, which is not part of the turn
	open   bool      // the client reads it
	begun  bool      // it does or did so
	agent  string
	of     string // the conversation
	model  string // that was asked
	plain  bool   // its blocks and its end are as the script says
	calls  int    // of it, those that the agent has written
	others int    // its other blocks
}

// fault looks at a request, and draws what goes wrong with it.
func (ms *minds) fault(r *modeltest.Request, user func(*modeltest.Request) *modeltest.Fault) *modeltest.Fault {
	w := ms.w
	lane := w.sched.running()
	w.note(Event{Kind: "note", Lane: lane, What: fmt.Sprintf("asks the model: request %d, %d messages", r.N, len(r.Messages))})
	_, of := sessionOf(r.User)
	var m *mind
	if n, err := strconv.Atoi(r.Header.Get(clientHeader)); err == nil {
		w.mu.Lock()
		m = ms.all[n-1]
		w.mu.Unlock()
		m.requests(r)
	}
	f := &modeltest.Fault{}
	if user != nil {
		if some := user(r); some != nil {
			f = some
		}
	}
	if hit := w.strike(lane, "", faultModel); hit != nil {
		drawn := hit.model(hit.rng)
		f = &drawn
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if m != nil {
		delete(m.soonest, r.User)
		if n, err := strconv.Atoi(f.RetryAfter); err == nil && f.Status != 0 {
			m.soonest[r.User] = w.sched.Now().Add(time.Duration(n) * time.Second)
		}
	}
	a := &answered{
		aside: asksSummary(r), sound: !f.Garbage && !f.Error && !f.Swapped && !f.Twice && !f.Duplicate, agent: of,
		of: r.User, model: r.Model, plain: !f.SameID && !f.OldID && !f.Empty && f.Stop == "",
	}
	ms.answers[r.N] = a
	if m != nil {
		m.sends(r, a, f)
	}
	return f
}

// answer keeps what the model has used for an answer.
func (ms *minds) answer(r *modeltest.Request, user func(*modeltest.Request) *modeltest.Answer) *modeltest.Answer {
	a := modeltest.Say(modeltest.Text("ok"))
	if user != nil {
		if some := user(r); some != nil {
			a = some
		}
	}
	if u := a.Usage; u.Input+u.Output+u.CacheRead+u.CacheWrite == 0 { // each differs
		a.Usage = model.Usage{Input: 100 + r.N, Output: 1 + r.N%7, CacheRead: r.N % 5}
	}
	ms.w.mu.Lock()
	defer ms.w.mu.Unlock()
	ms.answers[r.N].usage, ms.answers[r.N].said = a.Usage, a.Blocks
	return a
}

// RoundTrip implements http.RoundTripper: it counts the answers that are open, and sees which
// of them the client reads to the end.
func (m *mind) RoundTrip(in *http.Request) (*http.Response, error) {
	m.alive("asks the model")
	resp, err := m.e.Server.RoundTrip(in)
	if err != nil || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(resp.Header.Get("Request-Id"), "req_")) // the server's
	m.w.mu.Lock()
	m.open++
	a := m.w.loops.answers[n]
	a.open, a.begun = true, true
	m.turn = append(m.turn, n)
	m.w.mu.Unlock()
	resp.Body = &reading{m: m, a: a, ReadCloser: resp.Body}
	return resp, nil
}

// reading is the body of an answer.
type reading struct {
	io.ReadCloser
	m      *mind
	a      *answered
	closed bool
	tail   []byte
}

// Read implements io.Reader.
func (b *reading) Read(p []byte) (int, error) {
	w := b.m.w
	began := w.sched.Now()
	n, err := b.ReadCloser.Read(p)
	w.mu.Lock()
	took := w.sched.Now().Sub(began)
	if w.happened(faultJump) {
		took = 0
	}
	w.mu.Unlock()
	if took > 2*model.DefaultIdle {
		w.Errorf("limits: %s waits %v for more of an answer", b.m.lane, took)
	}
	const most = 64
	b.tail = append(b.tail, p[:n]...)
	over := bytes.Contains(b.tail, []byte(`"message_stop"}`+"\n\n")) || bytes.Contains(b.tail, []byte("[DONE]\n\n"))
	b.tail = slices.Clone(b.tail[max(0, len(b.tail)-most):])
	if over && (err == nil || errors.Is(err, io.EOF)) {
		b.m.w.mu.Lock()
		b.a.whole = b.a.sound
		b.m.w.mu.Unlock()
	}
	return n, err
}

// Close implements io.Closer.
func (b *reading) Close() error {
	b.m.w.mu.Lock()
	if !b.closed {
		b.closed, b.a.open = true, false
		b.m.open--
	}
	b.m.w.mu.Unlock()
	return b.ReadCloser.Close()
}

// header names the client in its requests.
func (m *mind) header() http.Header { return http.Header{clientHeader: {strconv.Itoa(m.n)}} }

// requests holds a request against what the agent has stored and asked before.
func (m *mind) requests(r *modeltest.Request) {
	w := m.w
	if bytes.Contains(r.Body, []byte(theKey)) {
		w.Errorf("secret: the key is in the body of request %d", r.N)
	}
	if len(r.Tools) == 0 { // it is about a page, and no part of the conversation
		m.within(r)
		return
	}
	m.w.mu.Lock()
	again := m.invalid
	m.w.mu.Unlock()
	if !again { // once for all requests with the same messages
		m.valid(r)
	}
	if asksSummary(r) {
		m.sums(r)
	} else {
		m.extends(r)
	}
	m.repeats(r)
	m.within(r)
	if m.keeps() {
		log := m.log(r.User)
		for _, b := range r.Results() {
			if log.results[b.ID] == 0 {
				w.Errorf("recorded: request %d has the result of %s, which is not stored", r.N, b.ID)
			}
		}
		m.leavesOut(r, log)
		for _, msg := range r.Messages {
			for _, b := range msg.Blocks {
				if b.Kind == model.ToolUse && log.uses[b.ID] == 0 {
					w.Errorf("recorded: request %d has the call %s, which is not stored", r.N, b.ID)
				}
			}
		}
	}
}

// valid checks that the conversation is one that an API takes: each call has one result, in
// the messages that follow it, and no result is without its call.
func (m *mind) valid(r *modeltest.Request) {
	wrong := func(format string, args ...any) {
		m.w.mu.Lock()
		m.invalid = true
		m.w.mu.Unlock()
		m.w.Errorf(format, args...)
	}
	open := make(map[string]int) // calls of the last answer, and their results
	closed := func(at int) {
		for _, id := range sortedKeys(open) {
			if n := open[id]; n != 1 {
				wrong("results: request %d, before message %d: the call %s has %d results", r.N, at, id, n)
			}
		}
		clear(open)
	}
	for i, msg := range r.Messages {
		if msg.Role == model.Assistant {
			closed(i)
		}
		for _, b := range msg.Blocks {
			switch b.Kind {
			case model.ToolUse:
				if _, twice := open[b.ID]; twice {
					wrong("results: request %d has two calls %s in message %d", r.N, b.ID, i)
				}
				open[b.ID] = 0
			case model.ToolResult:
				if _, asked := open[b.ID]; !asked {
					wrong("results: request %d has the result of %s in message %d, and no call", r.N, b.ID, i)
				}
				open[b.ID]++
			case model.Text:
				if msg.Role == model.User && slices.Contains(sortedValues(open), 0) {
					wrong("results: request %d has a text of the user's in message %d before the results of all calls", r.N, i)
				}
			case model.Thinking, model.Image, model.Document, model.Opaque:
			}
		}
	}
	closed(len(r.Messages))
	if len(r.Messages) == 0 || r.Last().Role != model.User {
		wrong("results: the last message of request %d is not the user's", r.N)
	}
}

func sortedValues(m map[string]int) (all []int) {
	for _, k := range sortedKeys(m) {
		all = append(all, m[k])
	}
	return all
}

// origin is the conversation that a request continues: its own, or that which the session was
// forked from. mu is held.
func (m *mind) origin(r *modeltest.Request) (from, session, agent string) {
	session, agent = sessionOf(r.User)
	if _, known := m.w.loops.last[r.User]; !known && agent == "" {
		return m.forked, session, agent
	}
	return r.User, session, agent
}

// headOf is what precedes the messages of a request. An answer that is asked for in one piece, since its stream
// broke off, differs in no more.
func headOf(r *modeltest.Request) string {
	head, _, _ := strings.Cut(strings.ReplaceAll(string(r.Body), cacheMark, ""), `"messages":`)
	for _, member := range []string{`,"stream":true`, `,"stream_options":{"include_usage":true}`} {
		head = strings.Replace(head, member, "", 1)
	}
	return head
}

// extends checks that the request begins with the one before of the session, or of the one
// that it was forked from, and that in one process only the messages have changed.
func (m *mind) extends(r *modeltest.Request) {
	var body struct {
		Messages json.RawMessage `json:"messages"`
	}
	_ = json.Unmarshal(r.Body, &body) // the server has read it
	plain := func(b []byte) string { return strings.ReplaceAll(string(b), cacheMark, "") }
	now := strings.TrimSuffix(strings.TrimPrefix(plain(body.Messages), "["), "]")
	head := headOf(r)
	edges := m.edges(r.User)
	w := m.w
	w.mu.Lock()
	ms := w.loops
	from, session, of := m.origin(r)
	before := ms.last[from]
	whole := ""
	if ms.edges[from] != edges { // a compaction was between the two: the prefix begins anew
		before, whole = "", before
	}
	ms.last[r.User], ms.edges[r.User] = now, edges
	m.session = session
	was := m.heads[of+" "+r.Model]
	m.heads[of+" "+r.Model] = head
	wrong := append(m.hooking.asks(r, of, whole != ""), m.paced(r, was != "" && now == before), m.chooses(r, of))
	if whole != "" {
		delete(ms.ended, from)
	}
	wrong = append(wrong, m.remembers(r, from))
	if of == "" {
		m.asksAbout(r)
	} else {
		m.models[of] = r.Model
	}
	w.mu.Unlock()
	for _, text := range wrong {
		if text != "" {
			w.Errorf("%s", text)
		}
	}
	if whole != "" && strings.HasPrefix(now, whole) {
		w.Errorf("compacted: request %d of session %s has all that the one before the compaction had", r.N, r.User)
	}
	before = strings.TrimSuffix(strings.TrimSuffix(before, "]}"), `"}`) // a question that was not answered may have grown
	if rest, ok := strings.CutPrefix(now, before); !ok || rest != "" && before != "" && !strings.ContainsAny(rest[:1], `,]"\\`) {
		at := 0
		for at < min(len(now), len(before)) && now[at] == before[at] {
			at++
		}
		w.Errorf("prefix: request %d of session %s does not begin with the one before; they differ at byte %d: %.200q, and it was %.200q", r.N, r.User, at, now[at:], before[at:])
	}
	if was != "" && was != head {
		w.Errorf("prefix: request %d of session %s has another model, other tools or another system prompt: %.300q, and it was %.300q", r.N, r.User, head, was)
	}
}

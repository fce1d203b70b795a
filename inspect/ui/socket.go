package ui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/inspect"
	"github.com/agent-troupe/troupe/runtime"
)

// Socket is the program that listens on a socket. One that uses [Window.Shared] has events, charts,
// jobs and what can be changed; one that uses [inspect.Listen] has sessions and events.
func Socket(path string) Host { return socketHost(path) }

type socketHost string

const (
	askLimit  = 10 * time.Second // for one answer of a host
	maxAnswer = 64 << 20         // bytes of it
	maxJobs   = 1000             // of a host; each is asked by itself
)

// ID implements [Host].
func (s socketHost) ID() string {
	return strings.TrimSuffix(filepath.Base(string(s)), filepath.Ext(string(s)))
}

// Report implements [Host].
func (s socketHost) Report(ctx context.Context) (*inspect.Report, error) {
	return inspect.Fetch(ctx, string(s))
}

// Events implements [Host].
func (s socketHost) Events(ctx context.Context, each func(inspect.Event) bool) error {
	return inspect.Watch(ctx, string(s), "", each)
}

// History implements [Host].
func (s socketHost) History(ctx context.Context, window time.Duration) (h runtime.History, err error) {
	return h, s.get(ctx, "/window/history?window="+window.String(), &h)
}

// Jobs implements [Host].
func (s socketHost) Jobs(ctx context.Context) (jobs []Job, err error) {
	var ids []string
	if err := s.get(ctx, "/window/jobs", &ids); err != nil {
		return nil, err
	}
	for _, id := range ids[:min(len(ids), maxJobs)] {
		jobs = append(jobs, socketJob{s, id})
	}
	return jobs, nil
}

// Do implements [Host].
func (s socketHost) Do(ctx context.Context, c Command) error { return s.do(ctx, "", c) }

// socketJob is a job of the program that listens on a socket.
type socketJob struct {
	host socketHost
	id   string
}

// ID implements [Job].
func (j socketJob) ID() string { return j.id }

func (j socketJob) path(rest string) string { return "/window/jobs/" + url.PathEscape(j.id) + rest }

// sharedState is a [JobState] between programs.
type sharedState struct {
	Summary   json.RawMessage
	Tasks     []sharedTask
	Approvals []Approval
}

type sharedTask struct {
	JobTask
	Value json.RawMessage
}

// State implements [Job].
func (j socketJob) State(ctx context.Context) (JobState, error) {
	var s sharedState
	if err := j.host.get(ctx, j.path(""), &s); err != nil {
		return JobState{}, err
	}
	state := JobState{Summary: s.Summary, Approvals: s.Approvals}
	for i := range s.Tasks {
		t := s.Tasks[i].JobTask
		t.Value = s.Tasks[i].Value
		state.Tasks = append(state.Tasks, t)
	}
	return state, nil
}

// Transcript implements [Job].
func (j socketJob) Transcript(ctx context.Context, task string, at int64) (io.ReadCloser, error) {
	resp, err := j.host.send(ctx, http.MethodGet, j.path("/transcript?task="+url.QueryEscape(task)+"&at="+strconv.FormatInt(at, 10)), nil) //nolint:bodyclose // the caller closes it
	if errors.Is(err, ErrUnsupported) {
		return nil, fmt.Errorf("%w: %w", fs.ErrNotExist, err)
	}
	if err != nil {
		return nil, err
	}
	return struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxAnswer), resp.Body}, nil // a page reads a part, but a line of it may be long
}

// Do implements [Job].
func (j socketJob) Do(ctx context.Context, c Command) error { return j.host.do(ctx, j.id, c) }

// done is what became of a decision at another program. An empty one has worked.
type done struct {
	Kind    string // of the error: no_task, over, decided, unsupported, refused
	Text    string
	Verdict *Verdict // that counts, of decided
	At      time.Time
}

func (s socketHost) do(ctx context.Context, job string, c Command) error {
	body, err := json.Marshal(c)
	if err != nil {
		return err
	}
	resp, err := s.send(ctx, http.MethodPost, "/window/do?job="+url.QueryEscape(job), body)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	var d done
	if err := s.decode(resp.Body, &d); err != nil {
		return err
	}
	return d.err()
}

// doneOf is an error for the other program.
func doneOf(err error) done {
	var first *DecidedError
	var no *inspect.RefusedError
	switch {
	case err == nil:
		return done{}
	case errors.As(err, &first):
		return done{Kind: "decided", Verdict: &first.Verdict, At: first.At}
	case errors.As(err, &no):
		return done{Kind: "refused", Text: no.Reason}
	}
	for kind, is := range kindsOfErrors() { //troupe:maporder an error is of one kind
		if errors.Is(err, is) {
			return done{Kind: kind, Text: err.Error()}
		}
	}
	return done{Kind: "other", Text: err.Error()}
}

func kindsOfErrors() map[string]error {
	return map[string]error{"no_task": ErrNoTask, "over": ErrOver, "decided": ErrDecided, "unsupported": ErrUnsupported}
}

func (d *done) err() error {
	switch is := kindsOfErrors()[d.Kind]; {
	case d.Kind == "":
		return nil
	case d.Verdict != nil:
		return &DecidedError{*d.Verdict, d.At}
	case d.Kind == "refused":
		return forbidden(d.Text)
	case is == nil:
		return errors.New(d.Text)
	default:
		return fmt.Errorf("%w: %s", is, d.Text)
	}
}

// get reads JSON.
func (s socketHost) get(ctx context.Context, path string, to any) error {
	resp, err := s.send(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	return s.decode(resp.Body, to)
}

// decode reads one value of JSON.
func (s socketHost) decode(from io.Reader, to any) error {
	in := &io.LimitedReader{R: from, N: maxAnswer}
	err := json.NewDecoder(in).Decode(to)
	switch {
	case err == nil:
		return nil
	case in.N == 0:
		return fmt.Errorf("ui: %s: the answer has more than %d MiB", s, maxAnswer>>20)
	default:
		return fmt.Errorf("ui: %s: the answer is not that of a window: %w", s, err)
	}
}

// send makes a request by the socket. A program that does not know the path, such as one without
// a window, gives an error that matches [ErrUnsupported].
func (s socketHost) send(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	return s.open(ctx, askLimit, method, path, body)
}

// open is send with a limit for the whole answer; 0: without a limit.
func (s socketHost) open(ctx context.Context, limit time.Duration, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, bytes.NewReader(body)) //nolint:gosec // a socket of this user: what the URL names is not dialed
	if err != nil {
		return nil, fmt.Errorf("ui: %w", err)
	}
	client := &http.Client{Timeout: limit, Transport: &http.Transport{
		DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", string(s))
		},
	}}
	resp, err := client.Do(req) //nolint:gosec // as above
	if err != nil {
		return nil, fmt.Errorf("ui: %s: %w", s, err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10)) // the status says enough
	reason := strings.TrimSpace(string(text))
	switch resp.StatusCode {
	case http.StatusNotFound:
		return nil, fmt.Errorf("%w: %s", ErrUnsupported, reason)
	case http.StatusForbidden:
		return nil, forbidden(reason)
	}
	return nil, fmt.Errorf("ui: %s answers %d: %s", s, resp.StatusCode, reason)
}

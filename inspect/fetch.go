package inspect

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/agent-troupe/troupe/protocol"
)

// ErrDead is the error of a socket on which no program listens any more.
var ErrDead = errors.New("nobody listens on the socket")

const (
	// fetchLimit limits how long a host may take to answer: it asks its sessions for 5 s
	// at most.
	fetchLimit = 10 * time.Second
	// maxReport is the largest answer that is read, in bytes.
	maxReport = 64 << 20
	// maxEvent is the longest line of the stream of events, in bytes.
	maxEvent = 1 << 20
)

// Fetch asks the host that listens on a socket for its sessions. A host that does not
// answer within 10 s is an error. The error matches [ErrDead] if no program listens.
func Fetch(ctx context.Context, socket string) (*Report, error) {
	raw, err := Request(ctx, socket, http.MethodGet, "/api/tree")
	if err != nil {
		return nil, err
	}
	r := new(Report)
	if err := protocol.Unmarshal(raw, r); err != nil {
		return nil, fmt.Errorf("inspect: %s: the answer is not that of a Troupe host: %w", socket, err)
	}
	r.Host.Socket = socket
	return r, nil
}

// Watch calls each with the events of the host on a socket, as they happen, until ctx
// ends, each returns false, or the runtime is shut down. id selects the events of one
// session; "" means all. Events from before the call are not known.
func Watch(ctx context.Context, socket, id string, each func(Event) bool) error {
	path := "/api/events"
	if id != "" {
		path += "?session=" + url.QueryEscape(id)
	}
	body, done, err := request(ctx, socket, http.MethodGet, path, 0)
	if err != nil {
		return err
	}
	defer done()
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxEvent)
	for lines.Scan() {
		var e Event
		switch err := json.Unmarshal(lines.Bytes(), &e); {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return fmt.Errorf("inspect: %s: %w", socket, err)
		}
		if !each(e) {
			return nil
		}
	}
	if err := lines.Err(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("inspect: %s: %w", socket, err)
	}
	return nil
}

// StatusError is an answer of a host that is not 200.
type StatusError struct {
	Socket string // path of the socket
	Code   int    // as in package net/http
	Reason string // what the host says, in one line
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("inspect: %s: the host answers %d %s: %s", e.Socket, e.Code, http.StatusText(e.Code), e.Reason)
}

// Request makes a request without a body by a socket, and returns the answer, which may
// have at most 64 MiB. The host has 10 s for it. The error matches [ErrDead] if no
// program listens, and is a *[StatusError] if the host refuses.
func Request(ctx context.Context, socket, method, path string) ([]byte, error) {
	body, done, err := request(ctx, socket, method, path, fetchLimit)
	if err != nil {
		return nil, err
	}
	defer done()
	raw, err := io.ReadAll(io.LimitReader(body, maxReport))
	if err != nil {
		return nil, fmt.Errorf("inspect: %s: %w", socket, err)
	}
	return raw, nil
}

// request makes a request by a socket. The caller calls done when it has read the body.
func request(ctx context.Context, socket, method, path string, limit time.Duration) (body io.Reader, done func(), err error) {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, http.NoBody)
	if err != nil {
		return nil, nil, fmt.Errorf("inspect: %w", err)
	}
	resp, err := (&http.Client{Transport: transport, Timeout: limit}).Do(req)
	switch {
	case isDead(err):
		return nil, nil, fmt.Errorf("inspect: %s: %w", socket, ErrDead)
	case err != nil:
		return nil, nil, fmt.Errorf("inspect: %s: %w", socket, err)
	}
	done = func() {
		_ = resp.Body.Close()
		transport.CloseIdleConnections()
	}
	if resp.StatusCode != http.StatusOK {
		reason, _ := io.ReadAll(io.LimitReader(resp.Body, 1<<10))
		done()
		return nil, nil, &StatusError{socket, resp.StatusCode, strings.TrimSpace(string(reason))}
	}
	return resp.Body, done, nil
}

package sharedmcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/actors/mcp"
	"github.com/agent-troupe/troupe/internal/breaker"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// sharedServer is one server of a [Servers], whether its process runs or not.
type sharedServer struct {
	home    *Servers
	key     [sha256.Size]byte
	name    string
	command string
	dir     string
	args    []string
	env     []string
	users   int           // under home.mu
	timer   session.Timer // of Linger; under home.mu

	mu       sync.Mutex
	breaker  *breaker.Breaker
	asked    uint64
	link     *sharedLink                  // nil: not started yet, or being started
	starting *kernel.Promise[*sharedLink] // nil: not being started
	stopped  bool
}

func (s *sharedServer) running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starting != nil || s.link != nil && s.link.cause() == nil
}

// connected returns the connection to the process, which is started if it does not run.
func (s *sharedServer) connected(ctx context.Context) (*sharedLink, error) {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return nil, sdk.ErrMCPServerClosed
	}
	if s.link != nil && s.link.cause() == nil {
		defer s.mu.Unlock()
		return s.link, nil
	}
	if s.starting == nil {
		id, err := s.permit()
		if err != nil {
			s.mu.Unlock()
			return nil, &StartError{Name: s.name, Err: err}
		}
		starting := kernel.NewPromise[*sharedLink]()
		s.starting = starting
		s.home.rt.Executor().Go(func() { s.start(id, starting) })
	}
	starting := s.starting
	s.mu.Unlock()
	return starting.Wait(ctx, s.home.rt.Executor())
}

// forget says that a session is over.
func (s *sharedServer) forget(v *sharedView) {
	s.mu.Lock()
	link := s.link
	s.mu.Unlock()
	if link != nil {
		link.forget(v)
	}
}

// permit asks the breaker for a start; the lock is held.
func (s *sharedServer) permit() (uint64, error) {
	s.asked++
	for _, e := range s.breaker.Step(s.home.rt.Clock().Now(), breaker.Ask{ID: s.asked}, nil) {
		if refused, ok := e.(breaker.Refuse); ok {
			return 0, refused.Err
		}
	}
	return s.asked, nil
}

// start starts the process. All that need it wait for it, so it has no context of theirs.
func (s *sharedServer) start(id uint64, done *kernel.Promise[*sharedLink]) {
	rt := s.home.rt
	ctx, cancel := kernel.WithTimeout(context.Background(), rt.Clock(), &session.TimeoutError{What: "start of the shared MCP server " + s.name, Limit: sharedStart})
	defer cancel()
	link, err := s.spawn(ctx)
	if err == nil {
		if err = link.greet(ctx); err != nil {
			_ = link.end(true)
			err = fmt.Errorf("%w%s", err, link.said())
		}
	}
	outcome := breaker.Done{ID: id, Succeeded: "started"}
	if err != nil {
		outcome = breaker.Done{ID: id, Failure: err.Error()}
	}
	s.mu.Lock()
	s.starting = nil
	s.breaker.Step(rt.Clock().Now(), outcome, nil)
	if err == nil && s.stopped {
		err = sdk.ErrMCPServerClosed
		s.mu.Unlock()
		_ = link.end(true)
		s.mu.Lock()
	}
	if err == nil {
		s.link = link
	}
	s.mu.Unlock()
	if err != nil {
		done.Fail(&StartError{Name: s.name, Err: err})
		return
	}
	done.Resolve(link)
}

// StartError says that a shared server did not start. A later try may succeed.
type StartError struct {
	Name string // of the server in Options.MCPServers
	Err  error  // a *[sdk.StartError], a *[session.BreakerOpenError], what the server answered, or the end of ctx
}

func (e *StartError) Error() string { return fmt.Sprintf("%s did not start: %v", e.Name, e.Err) }
func (e *StartError) Unwrap() error { return e.Err }

func (s *sharedServer) spawn(ctx context.Context) (*sharedLink, error) {
	c := session.Command{Names: []string{s.command}, Args: s.args, Dir: s.dir, Env: s.env}
	if strings.ContainsRune(s.command, filepath.Separator) {
		c.Names, c.Path = nil, s.command
		if !filepath.IsAbs(c.Path) {
			c.Path = filepath.Join(s.dir, c.Path)
		}
	}
	if s.home.opts.Marker != "" {
		c.Env = append(c.Env[:len(c.Env):len(c.Env)], s.home.opts.Marker+"=1")
	}
	p, err := s.home.rt.Spawner().Spawn(ctx, c)
	if err != nil {
		return nil, err
	}
	return newSharedLink(s.home.rt.Executor(), s.home.rt.Clock(), p), nil
}

// stop ends the process, also one that is just being started.
func (s *sharedServer) stop() error {
	s.mu.Lock()
	s.stopped = true
	link, starting := s.link, s.starting
	s.mu.Unlock()
	if starting != nil {
		_, _ = starting.Wait(context.Background(), s.home.rt.Executor())
	}
	if link == nil {
		return nil
	}
	return link.end(false)
}

// sharedView is a shared server as one session sees it.
type sharedView struct {
	server *sharedServer
	opts   *sdk.Options
}

// Name implements [session.MCPHandler].
func (v *sharedView) Name() string { return v.server.name }

// Timeout implements [session.MCPHandler]: SDKMCPServerConfigs has the limit.
func (v *sharedView) Timeout(string) time.Duration { return 0 }

// Manifest implements [session.MCPHandler].
func (v *sharedView) Manifest() (initialize, toolsList json.RawMessage, err error) {
	link, err := v.server.connected(context.Background())
	if err != nil {
		return nil, nil, err
	}
	return link.initialize, link.tools, nil
}

// Handle implements [session.MCPHandler].
func (v *sharedView) Handle(ctx context.Context, method string, params json.RawMessage) (json.RawMessage, error) {
	link, err := v.server.connected(ctx)
	if err != nil {
		return nil, fmt.Errorf("the shared MCP server %w", err)
	}
	notify, _ := mcp.NotifierFromContext(ctx)
	switch method {
	case "initialize": // the process has had its own
		link.listen(v, notify)
		return link.initialize, nil
	case "ping":
		return json.RawMessage("{}"), nil
	}
	result, err := link.call(ctx, v, notify, method, params)
	if died, ok := errors.AsType[*linkEnded](err); ok {
		return nil, fmt.Errorf("the shared MCP server %s %w; it starts again with the next call", v.server.name, died)
	}
	return result, err
}

// linkEnded says that the process of a server, or its output, has ended.
type linkEnded struct{ cause error }

func (e *linkEnded) Error() string {
	if e.cause == nil || errors.Is(e.cause, io.EOF) {
		return "has ended"
	}
	return cmp.Or("has ended: "+e.cause.Error(), "has ended")
}

func (e *linkEnded) Unwrap() error { return e.cause }

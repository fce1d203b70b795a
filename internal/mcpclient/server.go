package mcpclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/agent-troupe/troupe/internal/breaker"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/userproc"
	"github.com/agent-troupe/troupe/session"
)

// Conn is a connection to a server. Its methods may be called concurrently.
type Conn interface {
	// Hello returns the results of initialize and tools/list, as of the start.
	Hello() (initialize, tools json.RawMessage)
	// Tools asks for tools/list again.
	Tools(ctx context.Context) (json.RawMessage, error)
	// Call sends a request and waits for its answer. notify gets the progress of the call, if its
	// params have a token; it may be nil. An error of the server is a *[jsonrpc.Error]; after the
	// end of the connection it is an *[EndedError].
	Call(ctx context.Context, from Caller, notify Notify, method string, params json.RawMessage) (json.RawMessage, error)
	// Listen passes changes of the server's lists on to the caller from now on, and Forget nothing
	// any more.
	Listen(c Caller, notify Notify)
	Forget(c Caller)
	// Ended returns why the connection does not work any more, or nil.
	Ended() error
	// End ends it, and returns when nothing of it is left. now: without giving the server time.
	End(now bool) error
	// Said is what the server has said last outside of the protocol, to follow an error; "": nothing.
	Said() string
}

// Caller is whom a server's questions are for while a call of it is open. Callers are compared
// by identity.
type Caller interface {
	// Asked answers a request of the server, such as roots/list or elicitation/create.
	Asked(ctx context.Context, m *jsonrpc.Request) (json.RawMessage, error)
}

// EndedError says that the process of a server, or its connection, has ended.
type EndedError struct{ Cause error }

func (e *EndedError) Error() string {
	if e.Cause == nil || errors.Is(e.Cause, io.EOF) || e.Cause.Error() == "" {
		return "has ended"
	}
	return "has ended: " + e.Cause.Error()
}

// Unwrap returns the cause.
func (e *EndedError) Unwrap() error { return e.Cause }

// StartError says that a server did not start. A later try may succeed.
type StartError struct{ Err error }

func (e *StartError) Error() string { return e.Err.Error() }

// Unwrap returns the cause: a *[session.BreakerOpenError], what the server answered, or the end
// of the time for the start.
func (e *StartError) Unwrap() error { return e.Err }

// Seams are what a server has of the runtime.
type Seams struct {
	Exec    session.Executor
	Clock   session.Clock
	Rand    breaker.Rand
	Spawner session.Spawner
}

// Config configures a [Server].
type Config struct {
	Name   string        // of the server, for the breaker
	Title  string        // of the server, in errors, such as: MCP server db
	Limit  time.Duration // for the start; required
	Closed error         // why calls fail after Stop
	// Command is the process; nil: Dial connects.
	Command *Command
	// Dial connects to a server that is not a process of this machine. ctx ends with the time for the
	// start.
	Dial func(ctx context.Context) (Conn, error)
	// Owner is whom all questions of the server are for; nil: the one whose call is open.
	Owner Caller
}

// Command is a server that is a process.
type Command struct {
	Name string // of the program
	Args []string
	Dir  string
	Env  []string
}

const (
	failures = 3 // starts in a row
	coolDown = time.Second
	maxCool  = 30 * time.Second
)

// Server is one server, whether it runs or not. It is safe for concurrent use.
type Server struct {
	cfg   Config
	seams Seams

	mu       sync.Mutex
	breaker  *breaker.Breaker
	asked    uint64
	conn     Conn                  // nil: not started yet, or being started
	starting *kernel.Promise[Conn] // nil: not being started
	abort    context.CancelFunc    // ends the start; nil: not being started
	aborted  bool                  // the start was ended
	stopped  bool
}

// New returns a server that does not run yet. Stop it.
func New(seams Seams, cfg Config) *Server {
	return &Server{cfg: cfg, seams: seams, breaker: breaker.New(breaker.Config{
		Kind: session.BreakerMCPServer, Name: cfg.Name, Failures: failures, CoolDown: coolDown, MaxCoolDown: maxCool,
	}, seams.Rand)}
}

// Running reports whether the server runs or starts.
func (s *Server) Running() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.starting != nil || s.conn != nil && s.conn.Ended() == nil
}

// Connected returns the connection to the server, which is started if it does not run. The
// error is a *[StartError], Config.Closed, or the cause of ctx.
func (s *Server) Connected(ctx context.Context) (Conn, error) {
	s.mu.Lock()
	if s.stopped {
		s.mu.Unlock()
		return nil, s.cfg.Closed
	}
	if s.conn != nil && s.conn.Ended() == nil {
		defer s.mu.Unlock()
		return s.conn, nil
	}
	if s.starting == nil {
		id, err := s.permit()
		if err != nil {
			s.mu.Unlock()
			return nil, &StartError{err}
		}
		starting := kernel.NewPromise[Conn]()
		// All that need the server wait for it, so its start has no context of theirs.
		ctx, cancel := kernel.WithTimeout(context.Background(), s.seams.Clock, &session.TimeoutError{What: "start of the " + s.cfg.Title, Limit: s.cfg.Limit})
		s.starting, s.abort, s.aborted = starting, cancel, false
		s.seams.Exec.Go(func() {
			defer cancel()
			s.start(ctx, id, starting)
		})
	}
	starting := s.starting
	s.mu.Unlock()
	return starting.Wait(ctx, s.seams.Exec)
}

// Conn returns the connection if there is one that works, or nil. It starts nothing.
func (s *Server) Conn() Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil || s.conn.Ended() != nil {
		return nil
	}
	return s.conn
}

// permit asks the breaker for a start; the lock is held.
func (s *Server) permit() (uint64, error) {
	s.asked++
	for _, e := range s.breaker.Step(s.seams.Clock.Now(), breaker.Ask{ID: s.asked}, nil) {
		if refused, ok := e.(breaker.Refuse); ok {
			return 0, refused.Err
		}
	}
	return s.asked, nil
}

// start starts the server.
func (s *Server) start(ctx context.Context, id uint64, done *kernel.Promise[Conn]) {
	conn, err := s.dial(ctx)
	s.mu.Lock()
	var outcome breaker.Input = breaker.Done{ID: id, Succeeded: "started"}
	switch {
	case err != nil && (s.aborted || errors.Is(err, ErrNeedsLogin)):
		outcome = breaker.Drop{ID: id} // that is not the server's failure
	case err != nil:
		outcome = breaker.Done{ID: id, Failure: err.Error()}
	}
	s.starting, s.abort = nil, nil
	s.breaker.Step(s.seams.Clock.Now(), outcome, nil)
	if s.aborted {
		s.mu.Unlock()
		if err == nil {
			_ = conn.End(true)
		}
		err = s.cfg.Closed
		s.mu.Lock()
	}
	if err == nil {
		s.conn = conn
	}
	s.mu.Unlock()
	if err != nil {
		done.Fail(&StartError{err})
		return
	}
	done.Resolve(conn)
}

func (s *Server) dial(ctx context.Context) (Conn, error) {
	if ctx.Err() != nil { // it was ended before it began
		return nil, context.Cause(ctx)
	}
	if s.cfg.Command == nil {
		return s.cfg.Dial(ctx)
	}
	link, err := s.spawn(ctx)
	if err != nil {
		return nil, err
	}
	if err := link.greet(ctx); err != nil {
		_ = link.End(true)
		return nil, fmt.Errorf("%w%s", err, link.Said())
	}
	return link, nil
}

func (s *Server) spawn(ctx context.Context) (*Link, error) {
	how := s.cfg.Command
	c := session.Command{Names: []string{how.Name}, Args: how.Args, Dir: how.Dir, Env: how.Env}
	if strings.ContainsRune(how.Name, filepath.Separator) {
		c.Names, c.Path = nil, how.Name
		if !filepath.IsAbs(c.Path) {
			c.Path = filepath.Join(how.Dir, c.Path)
		}
	}
	p, err := userproc.Spawn(ctx, s.seams.Spawner, c, nil)
	if err != nil {
		return nil, err
	}
	return newLink(s.seams.Exec, s.seams.Clock, p, s.cfg.Owner, s.cfg.Closed), nil
}

// Disconnect ends the server, also one that is just being started. The next call of Connected
// starts it again.
func (s *Server) Disconnect() error { return s.end(false) }

// Stop ends the server, also one that is just being started, and nothing starts any more.
func (s *Server) Stop() error { return s.end(true) }

func (s *Server) end(stop bool) error {
	s.mu.Lock()
	s.stopped = s.stopped || stop
	conn, starting := s.conn, s.starting
	s.conn = nil
	if s.abort != nil {
		s.aborted = true
		s.abort()
	}
	s.mu.Unlock()
	if starting != nil {
		_, _ = starting.Wait(context.Background(), s.seams.Exec)
	}
	if conn == nil {
		return nil
	}
	return conn.End(false)
}

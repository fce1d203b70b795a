package acpagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/agent-troupe/troupe/acp"
	sessions "github.com/agent-troupe/troupe/session"
)

// server is the agent that an editor is connected to.
type server struct {
	config Config
	conn   *acp.Conn

	mu       sync.Mutex
	client   acp.ClientCapabilities
	sessions map[acp.SessionID]*session
	closed   bool // no session is opened any more
}

// request begins a request, see [acp.Handler].
func (s *server) request(ctx context.Context, method string, params json.RawMessage) func() (any, error) {
	switch method {
	case acp.MethodInitialize:
		return handle(method, params, s.initialize)
	case acp.MethodAuthenticate:
		return handle(method, params, func(r *acp.AuthenticateRequest) (any, error) {
			return nil, invalid("there is no authentication method %q", r.MethodID)
		})
	case acp.MethodSessionNew:
		return handle(method, params, func(r *acp.NewSessionRequest) (any, error) { return s.newSession(ctx, r) })
	case acp.MethodSessionLoad:
		return handle(method, params, func(r *acp.LoadSessionRequest) (any, error) { return s.load(ctx, r) })
	case acp.MethodSessionResume:
		return handle(method, params, func(r *acp.ResumeSessionRequest) (any, error) { return s.resume(ctx, r) })
	case methodFork:
		return handle(method, params, func(r *forkRequest) (any, error) { return s.fork(ctx, r) })
	case acp.MethodSessionList:
		return handle(method, params, func(r *acp.ListSessionsRequest) (any, error) { return s.list(ctx, r) })
	case acp.MethodSessionDelete:
		return handle(method, params, func(r *acp.DeleteSessionRequest) (any, error) { return s.deleteSession(ctx, r) })
	case acp.MethodSessionClose:
		return handle(method, params, s.closeSession)
	case acp.MethodSessionPrompt:
		return s.prompt(ctx, params)
	case acp.MethodSessionSetMode:
		return handle(method, params, func(r *acp.SetSessionModeRequest) (any, error) { return s.setMode(ctx, r) })
	case acp.MethodSessionSetConfigOption:
		return handle(method, params, func(r *acp.SetSessionConfigOptionRequest) (any, error) { return s.setOption(ctx, r) })
	}
	return nil
}

// notification handles session/cancel; there are no others.
func (s *server) notification(_ context.Context, method string, params json.RawMessage) {
	var n acp.CancelNotification
	if method != acp.MethodSessionCancel || acp.Decode(method, params, &n) != nil {
		return
	}
	if session := s.find(n.SessionID); session != nil {
		session.cancel()
	}
}

// handle decodes the parameters, and calls f with them.
func handle[T any](method string, params json.RawMessage, f func(*T) (any, error)) func() (any, error) {
	return func() (any, error) {
		r := new(T)
		if err := acp.Decode(method, params, r); err != nil {
			return nil, err
		}
		return f(r)
	}
}

func (s *server) initialize(r *acp.InitializeRequest) (any, error) {
	s.mu.Lock()
	if r.ClientCapabilities != nil {
		s.client = *r.ClientCapabilities
	}
	s.mu.Unlock()
	can := sessionCapabilities{SessionCapabilities: acp.SessionCapabilities{
		AdditionalDirectories: &acp.SessionAdditionalDirectoriesCapabilities{},
		Close:                 &acp.SessionCloseCapabilities{},
	}}
	if s.config.Sessions != nil {
		can.List, can.Resume, can.Fork = &acp.SessionListCapabilities{}, &acp.SessionResumeCapabilities{}, &struct{}{}
		if s.config.AllowDelete {
			can.Delete = &acp.SessionDeleteCapabilities{}
		}
	}
	info := &acp.Implementation{Name: s.config.Name, Title: s.config.Title, Version: s.config.Version}
	info.Name = cmp.Or(info.Name, "troupe")
	return initializeResponse{
		InitializeResponse: acp.InitializeResponse{ProtocolVersion: version, AgentInfo: info, AuthMethods: []acp.AuthMethod{}},
		AgentCapabilities: agentCapabilities{
			AgentCapabilities: acp.AgentCapabilities{
				LoadSession:        s.config.Sessions != nil,
				PromptCapabilities: &acp.PromptCapabilities{Image: true, EmbeddedContext: true},
				MCPCapabilities:    &acp.MCPCapabilities{HTTP: true, SSE: true},
			},
			SessionCapabilities: can,
		},
	}, nil
}

// version is the only version of the protocol that is spoken here.
const version = 1

// capabilities are those of the client.
func (s *server) capabilities() acp.ClientCapabilities {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.client
}

// find returns the session, or nil.
func (s *server) find(id acp.SessionID) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[id]
}

// add makes a session known. Only one session has an id.
func (s *server) add(one *session) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return &acp.Error{Code: acp.CodeInternalError, Message: "the agent is ending"}
	case s.sessions[one.id] != nil:
		return invalid("the session %s is open", one.id)
	}
	s.sessions[one.id] = one
	return nil
}

func (s *server) remove(id acp.SessionID) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.sessions[id]
	delete(s.sessions, id)
	return one
}

func (s *server) newSession(ctx context.Context, r *acp.NewSessionRequest) (any, error) {
	one, err := s.make(newID(), r.Cwd, r.AdditionalDirectories, r.MCPServers)
	if err != nil {
		return nil, err
	}
	if err := s.open(ctx, one); err != nil {
		return nil, err
	}
	return acp.After{
		Result: acp.NewSessionResponse{SessionID: one.id, Modes: one.modes(), ConfigOptions: one.configOptions()},
		Then:   one.announce,
	}, nil
}

// make checks what a session needs.
func (s *server) make(id, cwd string, more []string, servers []acp.MCPServer) (*session, error) {
	for _, dir := range append([]string{cwd}, more...) {
		if !filepath.IsAbs(dir) {
			return nil, invalid("the directory %q is not absolute", dir)
		}
		if st, err := os.Stat(dir); err != nil || !st.IsDir() {
			return nil, invalid("there is no directory %s", dir)
		}
	}
	one := newSession(s, acp.SessionID(id), cwd)
	one.options.AdditionalDirectories = slices.Concat(one.options.AdditionalDirectories, more)
	return one, one.addServers(servers)
}

// open starts the agent of a new session.
func (s *server) open(ctx context.Context, one *session) error {
	if err := s.add(one); err != nil {
		return err
	}
	if _, err := one.connected(ctx); err != nil {
		s.remove(one.id)
		return startError(err)
	}
	return nil
}

func (s *server) closeSession(r *acp.CloseSessionRequest) (any, error) {
	if one := s.remove(r.SessionID); one != nil {
		if err := one.close(); err != nil {
			s.config.Logger.Warn("closing a session", "session", one.id, "problem", err)
		}
	}
	return acp.CloseSessionResponse{}, nil
}

// closeAll ends everything, all sessions at once.
func (s *server) closeAll() error {
	s.mu.Lock()
	s.closed = true
	all := slices.SortedFunc(maps.Values(s.sessions), func(a, b *session) int { return compare(a.id, b.id) })
	clear(s.sessions)
	s.mu.Unlock()
	errs := make([]error, len(all))
	var closing sync.WaitGroup
	for i, one := range all {
		closing.Add(1)
		start(func() {
			defer closing.Done()
			err := one.close()
			if is[*sessions.KilledError](err) { // its processes are gone
				s.config.Logger.Warn("closing a session", "session", one.id, "problem", err)
				err = nil
			}
			errs[i] = err
		})
	}
	closing.Wait()
	return errors.Join(errs...)
}

func compare(a, b acp.SessionID) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

func invalid(format string, args ...any) error {
	return &acp.Error{Code: acp.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

func notFound(id acp.SessionID) error {
	return &acp.Error{Code: acp.CodeResourceNotFound, Message: fmt.Sprintf("there is no session %s", id)}
}

package acpagent

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
	sessions "github.com/agent-troupe/troupe/session"
)

// askTool is the tool by which the agent asks the person, which needs a form.
const askTool = "AskUserQuestion"

// session is a conversation with the editor. Its agent may change.
type session struct {
	server  *server
	id      acp.SessionID
	cwd     string
	options sdk.Options // but for mode, model and resume

	opening sync.Mutex // held while an agent starts

	mu       sync.Mutex
	changed  *sync.Cond
	client   *sdk.Interactive // nil: there is no agent
	reading  chan struct{}    // closed when the messages of client are being read
	closed   bool
	known    bool   // the agent has the conversation on disk
	agentID  string // the agent's own id of it
	prompts  []*prompt
	asks     map[*pending]bool // permissions that the editor is asked for
	places   places            // where calls run
	rendered map[string]bool   // uuids of results, of the last prompt
	settings settings

	shown shown
}

func newSession(s *server, id acp.SessionID, cwd string) *session {
	one := &session{server: s, id: id, cwd: cwd, options: s.config.Options, asks: map[*pending]bool{}, rendered: map[string]bool{}, agentID: string(id)}
	one.changed = sync.NewCond(&one.mu)
	o := &one.options
	o.Cwd, o.IncludePartialMessages = cwd, true
	if o.MaxRestarts == 0 && !s.config.NoRecovery && o.PersistSession.Or(true) {
		o.MaxRestarts = restarts
	}
	if can := s.capabilities().Elicitation; (can == nil || can.Form == nil) && o.CanUseTool == nil {
		o.DisallowedTools = append(slices.Clone(o.DisallowedTools), askTool) // the editor cannot answer
	}
	if observable(o.Backend) {
		o.Hooks = append(slices.Clone(o.Hooks), one.places.hook())
	}
	theirs := o.OnEvent
	o.OnEvent = func(r sdk.EventRecord) {
		one.event(r)
		if theirs != nil {
			theirs(r)
		}
	}
	one.settings = settings{mode: o.PermissionMode, model: o.Model}
	one.settings.mode = cmp.Or(one.settings.mode, sdk.ModeDefault)
	return one
}

// addServers adds the MCP servers of the editor to those of the options.
func (s *session) addServers(servers []acp.MCPServer) error {
	if len(servers) == 0 {
		return nil
	}
	all := map[string]sdk.MCPServerConfig{}
	maps.Copy(all, s.options.MCPServers)
	for _, one := range servers {
		c := sdk.MCPServerConfig{Type: one.Type, Command: one.Command, Args: one.Args, URL: one.URL}
		switch {
		case one.Name == "":
			return invalid("an MCP server has no name")
		case one.Type == "" || one.Type == "stdio":
			c.Type = ""
			if one.Command == "" {
				return invalid("the MCP server %s has no command", one.Name)
			}
		case one.Type != "http" && one.Type != "sse":
			return invalid("the MCP server %s has the unknown type %q", one.Name, one.Type)
		}
		for _, v := range one.Env {
			if c.Env == nil {
				c.Env = map[string]string{}
			}
			c.Env[v.Name] = v.Value
		}
		for _, h := range one.Headers {
			if c.Headers == nil {
				c.Headers = map[string]string{}
			}
			c.Headers[h.Name] = h.Value
		}
		all[one.Name] = c
	}
	s.options.MCPServers = all
	return nil
}

// connected returns the agent, and starts it if necessary.
func (s *session) connected(ctx context.Context) (*sdk.Interactive, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	s.mu.Lock()
	if s.client != nil || s.closed {
		defer s.mu.Unlock()
		if s.closed {
			return nil, notFound(s.id)
		}
		return s.client, nil
	}
	o := s.options
	o.PermissionMode, o.Model = s.settings.mode, s.settings.model
	if s.known {
		o.Resume = s.agentID
	} else {
		o.SessionID = s.agentID
	}
	s.mu.Unlock()

	c := sdk.NewInteractive(&o)
	if err := c.Connect(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		_ = c.Close(context.WithoutCancel(ctx))
		return nil, notFound(s.id)
	}
	s.client, s.reading = c, make(chan struct{})
	s.settings.learn(c.Client, o.AllowDangerouslySkipPermissions)
	reading := s.reading
	s.mu.Unlock()
	start(func() { s.show(c, reading) })
	return c, nil
}

// show shows what an agent says, in prompts and between them, until it has ended.
func (s *session) show(c *sdk.Interactive, reading chan struct{}) {
	begin := sync.OnceFunc(func() { close(reading) })
	defer begin()
	for u, err := range c.Updates(context.Background()) {
		begin()
		switch {
		case err != nil:
			s.server.config.Logger.Warn("the agent has ended", "session", s.id, "problem", err)
		case u.Permission != nil:
			s.ask(u.Permission)
		case u.Elicitation != nil:
			s.elicit(u.Elicitation)
		case u.Dialog != nil:
			u.Dialog.Answer(protocol.UserDialogResult{})
		default:
			s.message(u.Message)
		}
	}
	s.shown.mu.Lock()
	s.failTools(true, "The agent has ended.")
	s.shown.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == c {
		s.client = nil
	}
	s.changed.Broadcast()
}

// event takes an event of the session: a recovery closes what the dead agent had open.
func (s *session) event(r sdk.EventRecord) {
	if _, ok := r.Event.(*sessions.Recovering); ok && s.live() {
		s.shown.mu.Lock()
		defer s.shown.mu.Unlock()
		s.failTools(true, "The agent's process died while the tool ran. Its effects may exist.")
		s.notice(acp.NoticeSeverityWarning, "The agent's process died and is started again. The conversation goes on.")
	}
}

// live: the editor knows the session.
func (s *session) live() bool { return s.server.find(s.id) == s }

// close ends the session and its agent's process tree.
func (s *session) close() error {
	s.mu.Lock()
	s.closed = true
	c := s.client
	s.mu.Unlock()
	s.cancel()
	if c == nil {
		return nil
	}
	return c.Close(context.Background())
}

// send sends an update to the editor. It waits while the editor does not read, and so
// does the agent then.
func (s *session) send(u acp.SessionUpdate) {
	_ = s.server.conn.Notify(acp.MethodSessionUpdate, acp.SessionNotification{SessionID: s.id, Update: u})
}

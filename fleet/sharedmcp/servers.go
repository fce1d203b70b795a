package sharedmcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agent-troupe/troupe/dialect/claude"
	"github.com/agent-troupe/troupe/dialect/qoder"
	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/internal/mcpclient"
	"github.com/agent-troupe/troupe/runtime"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// Servers start each stdio MCP server that is marked Shared in Options.MCPServers once
// for all sessions whose configuration of it is the same, in place of once for each
// session. Sessions reach it over the in-process bridge, so that permission rules, hooks and
// callbacks see each call as mcp__server__tool, as usual.
//
// A server has the environment that the agent of the session would have given it: Options.Env,
// UnsetEnv and CleanEnv count. It runs on this machine, so it cannot be shared by sessions with
// a Spawner.
//
// Two sessions share a server if its name, command, arguments and environment are equal,
// because credentials may be there; and, without [Options.Dir], Cwd and
// AdditionalDirectories of the session, too. A server starts with the first session that
// needs it. If it dies, the calls under way fail and the next call starts it again, unless
// the last starts have failed: then a *[session.BreakerOpenError] is the error for a while.
//
// A request of a server (roots/list, elicitation/create) goes to the session whose call is
// open: its directories, its OnElicitation. If no session has an open call, or several have
// one, the request is refused. A call that was given up counts as open until the server answers
// it, at most for a minute: another session never decides about it. A server that asks after its
// answer, which the protocol forbids, is answered by the session whose call is open then. Progress goes to its call, a change of the
// server's lists to all sessions. Other notifications, such as log messages, belong to no call:
// they are dropped. MCPServerConfig.AlwaysLoad has no effect.
//
// They are safe for concurrent use.
type Servers struct {
	opts Options
	rt   *runtime.Runtime

	mu     sync.Mutex
	all    map[[sha256.Size]byte]*sharedServer
	ending []*kernel.Promise[struct{}] // servers that are stopped; they end in any order
	closed bool
}

// Options configure [Servers]. The zero value works.
type Options struct {
	// Dir is the working directory of all servers. Sessions with different directories then
	// share them. Default: "", the Cwd of the sessions.
	Dir string
	// Linger is how long a server keeps running when no session needs it any more. Default: 0,
	// which is 30 s; negative: it ends at once.
	Linger time.Duration
	// Marker is a variable that all servers get in their environment, by which a later process
	// finds those that outlived this one; see [runtime.Runtime.NewMarker]. "": none.
	Marker string
}

const (
	sharedLinger = 30 * time.Second
	sharedStart  = 60 * time.Second // for initialize and tools/list
)

// New returns Servers of which none runs yet. rt starts their processes. Close them.
func New(rt *runtime.Runtime, opts Options) *Servers {
	opts.Linger = cmp.Or(opts.Linger, sharedLinger)
	return &Servers{opts: opts, rt: rt, all: make(map[[sha256.Size]byte]*sharedServer)}
}

// Share moves the servers of o that are marked Shared from MCPServers to SDKMCPServers, and
// starts those that do not run. Call release when the session has ended. Several errors are
// joined: a *[sdk.ConfigError] for a server that cannot be shared, a *[StartError] for one that
// does not start.
func (s *Servers) Share(ctx context.Context, o *sdk.Options) (release func(), err error) {
	var used []*sharedView
	release = func() {
		for _, v := range used {
			s.leave(v)
		}
		used = nil
	}
	external, configs := maps.Clone(o.MCPServers), maps.Clone(o.SDKMCPServerConfigs)
	own := slices.Clone(o.SDKMCPServers)
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(o.MCPServers)) {
		c := o.MCPServers[name]
		if !c.Shared {
			continue
		}
		server, err := s.enter(name, &c, o)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		view := &sharedView{server: server, opts: o}
		used = append(used, view)
		if _, err := server.connected(ctx); err != nil {
			errs = append(errs, fmt.Errorf("shared MCP server %w", err))
			continue
		}
		delete(external, name)
		own = append(own, &sdk.MCPServer{MCPHandler: view})
		if _, ok := configs[name]; !ok {
			if configs == nil {
				configs = make(map[string]session.SDKMCPServerConfig)
			}
			configs[name] = session.SDKMCPServerConfig{Timeout: c.Timeout, Tools: c.Tools}
		}
	}
	if err := errors.Join(errs...); err != nil {
		release()
		return func() {}, err
	}
	if len(used) > 0 {
		o.MCPServers, o.SDKMCPServers, o.SDKMCPServerConfigs = external, own, configs
	}
	return release, nil
}

// enter returns the server of the configuration, which is one session's more.
func (s *Servers) enter(name string, c *sdk.MCPServerConfig, o *sdk.Options) (*sharedServer, error) {
	if err := sharedProblem(name, c, o); err != nil {
		return nil, err
	}
	f := fingerprint{Name: name, Command: c.Command, Args: c.Args, Env: sharedEnv(os.Environ(), o, c.Env), Dir: s.opts.Dir}
	if f.Dir == "" {
		f.Dir, f.Roots = o.Cwd, o.AdditionalDirectories
	}
	var err error
	if f.Dir, err = filepath.Abs(f.Dir); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(f)
	if err != nil {
		return nil, err
	}
	key := sha256.Sum256(encoded)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, sdk.ErrMCPServerClosed
	}
	server := s.all[key]
	if server == nil {
		if s.opts.Marker != "" {
			f.Env = append(f.Env[:len(f.Env):len(f.Env)], s.opts.Marker+"=1")
		}
		server = &sharedServer{key: key, name: name, Server: mcpclient.New(
			mcpclient.Seams{Exec: s.rt.Executor(), Clock: s.rt.Clock(), Rand: s.rt.Rand(), Spawner: s.rt.Spawner()},
			mcpclient.Config{
				Name: name, Title: "shared MCP server " + name, Limit: sharedStart, Closed: sdk.ErrMCPServerClosed,
				Command: &mcpclient.Command{Name: c.Command, Args: c.Args, Dir: f.Dir, Env: f.Env},
			},
		)}
		s.all[key] = server
	}
	server.users++
	if server.timer != nil {
		server.timer.Stop()
		server.timer = nil
	}
	return server, nil
}

// fingerprint is everything in which two servers may differ. It holds secrets: only its hash is kept.
type fingerprint struct {
	Name, Command string
	Args, Env     []string
	Dir           string
	Roots         []string
}

// sharedProblem says why a server cannot be shared.
func sharedProblem(name string, c *sdk.MCPServerConfig, o *sdk.Options) error {
	option := fmt.Sprintf("MCPServers[%q].Shared", name)
	switch {
	case c.Type != "" && c.Type != "stdio":
		return &sdk.ConfigError{Option: option, Problem: "is for servers on stdio, and this one has a URL", Fix: "leave Shared out: one server with a URL serves all sessions already"}
	case o.Spawner != nil:
		return &sdk.ConfigError{Option: option, Problem: "starts the server on this machine, and Spawner starts the agents elsewhere, such as in containers", Fix: "leave Shared out: each agent then starts the server where it runs"}
	}
	return nil
}

// Check returns a *[sdk.ConfigError] for each server that is marked Shared and cannot be
// shared: one with a URL, or of sessions with a Spawner. It starts nothing.
func Check(o *sdk.Options) (wrong []error) {
	for _, name := range slices.Sorted(maps.Keys(o.MCPServers)) {
		if c := o.MCPServers[name]; c.Shared {
			if err := sharedProblem(name, &c, o); err != nil {
				wrong = append(wrong, err)
			}
		}
	}
	return wrong
}

// sharedEnv is the environment of a server, sorted: what the agent of the options would inherit
// of the host's, the session's variables, and the server's own.
func sharedEnv(host []string, o *sdk.Options, own map[string]string) []string {
	all := make(map[string]string)
	if !o.CleanEnv {
		for _, v := range host {
			if name, value, ok := strings.Cut(v, "="); ok && name != "" {
				all[name] = value
			}
		}
	}
	for _, name := range slices.Concat(o.UnsetEnv, notInherited(o)) {
		delete(all, name)
	}
	maps.Copy(all, o.Env)
	if agent, ok := o.Backend.(interface{ Withholds(variable string) bool }); ok {
		maps.DeleteFunc(all, func(name, _ string) bool { return agent.Withholds(name) })
	}
	maps.Copy(all, own)
	env := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		env = append(env, name+"="+all[name])
	}
	return env
}

// notInherited names the variables that the launch of an agent removes. A backend that is not
// chosen yet counts as all of them.
func notInherited(o *sdk.Options) []string {
	name := ""
	if o.Backend != nil {
		name = o.Backend.AgentName()
	}
	switch name {
	case "acp": // acp/acpclient
		return nil
	case qoder.Name:
		return qoder.NotInherited(o.Auth)
	case claude.Name:
		return claude.NotInherited()
	}
	return append(qoder.NotInherited(o.Auth), claude.NotInherited()...)
}

// leave says that a session does not need the server any more.
func (s *Servers) leave(v *sharedView) {
	server := v.server
	if conn := server.Conn(); conn != nil {
		conn.Forget(v)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if server.users--; server.users > 0 || s.all[server.key] != server {
		return
	}
	if s.opts.Linger < 0 || s.closed {
		s.drop(server)
		return
	}
	server.timer = s.rt.Clock().AfterFunc(s.opts.Linger, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if server.users == 0 && s.all[server.key] == server {
			s.drop(server)
		}
	})
}

// drop ends a server; the lock is held.
func (s *Servers) drop(server *sharedServer) {
	delete(s.all, server.key)
	if server.timer != nil {
		server.timer.Stop()
	}
	over := kernel.NewPromise[struct{}]()
	s.ending = slices.DeleteFunc(s.ending, func(p *kernel.Promise[struct{}]) bool {
		select {
		case <-p.Done():
			return true
		default:
			return false
		}
	})
	s.ending = append(s.ending, over)
	s.rt.Executor().Go(func() {
		if err := server.Stop(); err != nil {
			over.Fail(err)
		}
		over.Resolve(struct{}{})
	})
}

// Running returns how many servers run or start.
func (s *Servers) Running() int {
	s.mu.Lock()
	all := slices.Collect(maps.Values(s.all)) //troupe:maporder they are counted
	s.mu.Unlock()
	n := 0
	for _, server := range all {
		if server.Running() {
			n++
		}
	}
	return n
}

// Close ends all servers and returns when their processes are gone, or with the cause of
// ctx. Calls under way fail. It may be called more than once.
func (s *Servers) Close(ctx context.Context) error {
	s.mu.Lock()
	s.closed = true
	for _, server := range s.all { //troupe:maporder each of them ends by itself
		s.drop(server)
	}
	ending := s.ending
	s.mu.Unlock()
	var errs []error
	for _, p := range ending {
		_, err := p.Wait(ctx, s.rt.Executor())
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

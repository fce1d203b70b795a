package sdk

import (
	"context"
	"errors"
	"iter"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/runtime"
)

// link is a session with what this package adds to it.
type link struct {
	session *runtime.Session
	dialect dialect.Dialect
	servers []*MCPServer // those that have something to close
}

// ownServers gives each wrapped MCP server of the spec a connection of the
// session's own.
func ownServers(spec *runtime.Spec) []*MCPServer {
	var own []*MCPServer
	for i, s := range spec.MCPServers {
		if m, ok := s.(*MCPServer); ok {
			m = m.forSession()
			spec.MCPServers[i] = m
			if _, wrapped := m.served.(*wrappedServer); wrapped {
				own = append(own, m)
			}
		}
	}
	return own
}

func (l *link) closeServers(ctx context.Context) error {
	var errs []error
	for _, s := range l.servers {
		errs = append(errs, s.Close(ctx))
	}
	return errors.Join(errs...)
}

// closeServersAtEnd is for sessions that end without a Close.
func (l *link) closeServersAtEnd(home *runtime.Runtime) {
	if len(l.servers) == 0 {
		return
	}
	servers := *l
	home.Executor().Go(func() {
		_ = home.Executor().Await(context.Background(), servers.session.Done())
		_ = servers.closeServers(context.Background()) // whoever waits is told by Client.Close
	})
}

// relay yields messages, with errors in this package's terms.
func relay(ctx context.Context, messages iter.Seq2[Message, error], yield func(Message, error) bool) {
	for m, err := range messages {
		if !yield(m, ended(ctx, err)) || err != nil {
			return
		}
	}
}

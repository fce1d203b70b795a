package sdk

import (
	"context"
	"iter"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/runtime"
)

// link is a session with what this package adds to it.
type link struct {
	session *runtime.Session
	dialect dialect.Dialect
	servers *servers
	gated   bool // hooks, a policy or CanUseTool decide about calls
	skips   bool // Options.AllowDangerouslySkipPermissions
}

// closeServersAtEnd is for sessions that end without a Close.
func (l *link) closeServersAtEnd(home *runtime.Runtime) {
	session, servers := l.session, l.servers
	if !servers.unwatched() {
		return
	}
	home.Executor().Go(func() {
		_ = home.Executor().Await(context.Background(), session.Done())
		_ = servers.close(context.Background()) // whoever waits is told by Client.Close
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

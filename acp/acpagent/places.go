package acpagent

import (
	"cmp"
	"context"
	"sync"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/sdk"
	sessions "github.com/agent-troupe/troupe/session"
)

// places are the directories of the latest calls. The agent's shell moves by cd, and its
// permission requests do not name the directory; those of hooks do. The zero value is
// empty.
type places struct {
	mu    sync.Mutex
	calls [32]struct{ id, dir string }
	next  int
}

// hook notes the directory of each call. It decides nothing.
func (p *places) hook() sdk.Hook {
	return sdk.OnPreToolUse(func(_ context.Context, in *sdk.PreToolUseInput) (sdk.PreToolUseOutput, error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		if in.ToolUseID != "" {
			p.calls[p.next].id, p.calls[p.next].dir = in.ToolUseID, in.Cwd
			p.next = (p.next + 1) % len(p.calls)
		}
		return sdk.PreToolUseOutput{}, nil
	}, sdk.OnFailure(sessions.ContinueOnFailure))
}

// observable reports whether the agent can have a hook that only observes. Qoder denies a call
// if any hook fails, and the Agent Client Protocol has no hooks.
func observable(b sdk.Backend) bool {
	if speaks, ok := b.(interface{ AgentDialect() agent.Dialect }); ok {
		return speaks.AgentDialect() == agent.Claude
	}
	return b == nil || b.AgentName() == "claude"
}

func (p *places) of(id string) (dir string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.calls { // the latest of equal ids counts
		if c := p.calls[(p.next+i)%len(p.calls)]; c.id == id && id != "" {
			dir = c.dir
		}
	}
	return dir
}

// directory is where a call runs; the session's directory where the agent does not say.
func (s *session) directory(r *sdk.ToolPermissionRequest) string {
	return cmp.Or(r.Cwd, s.places.of(r.ToolUseID), s.cwd)
}

package acpagent

import (
	"context"
	"time"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/transcript"
)

// retitle sends the editor the title under which session/list has the session, if it has
// changed: a title of the user or the model, else the last prompt.
func (s *session) retitle(ctx context.Context) {
	if s.server.config.Sessions == nil {
		return
	}
	s.mu.Lock()
	id := s.agentID
	s.mu.Unlock()
	info, err := s.server.config.Sessions(s.cwd).Info(ctx, id)
	if err != nil {
		if !is[*transcript.NotFoundError](err) { // the agent may store it later
			s.server.config.Logger.Warn("the title cannot be read", "session", s.id, "problem", err)
		}
		return
	}
	s.shown.mu.Lock()
	defer s.shown.mu.Unlock()
	s.titled(info.Summary, info.LastModified)
}

// titled sends a title that the editor does not have. A zero time is not sent.
func (s *session) titled(title string, updated time.Time) {
	if title == "" || title == s.shown.title {
		return
	}
	s.shown.title = title
	u := &acp.SessionInfoUpdate{Title: title}
	if !updated.IsZero() {
		u.UpdatedAt = updated.UTC().Format(time.RFC3339)
	}
	s.send(acp.SessionUpdate{SessionInfoUpdate: u})
}

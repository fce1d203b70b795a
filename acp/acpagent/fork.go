package acpagent

import (
	"context"
	"errors"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/transcript"
)

// methodFork is not in the stable protocol. Request, answer and capability are as in the
// unstable schema of the npm package 2.4.0.
const methodFork = "session/fork"

type forkRequest struct {
	SessionID             acp.SessionID   `json:"sessionId"`
	Cwd                   string          `json:"cwd"`
	AdditionalDirectories []string        `json:"additionalDirectories"`
	MCPServers            []acp.MCPServer `json:"mcpServers"`
}

// initializeResponse is an answer to initialize with the capability fork.
type initializeResponse struct {
	acp.InitializeResponse
	AgentCapabilities agentCapabilities `json:"agentCapabilities"`
}

type agentCapabilities struct {
	acp.AgentCapabilities
	SessionCapabilities sessionCapabilities `json:"sessionCapabilities"`
}

type sessionCapabilities struct {
	acp.SessionCapabilities
	Fork *struct{} `json:"fork,omitempty"` // nil: there are no sessions to copy
}

// fork copies a session, as far as its agent has stored it, and opens the copy without showing
// its history.
func (s *server) fork(ctx context.Context, r *forkRequest) (any, error) {
	if s.config.Sessions == nil {
		return nil, &acp.Error{Code: acp.CodeMethodNotFound, Message: "this agent has no sessions on disk"}
	}
	if _, err := s.make("", r.Cwd, r.AdditionalDirectories, r.MCPServers); err != nil {
		return nil, err // before anything is copied
	}
	id, err := s.config.Sessions(r.Cwd).Fork(ctx, string(r.SessionID), transcript.ForkOptions{})
	if errors.Is(err, transcript.ErrNothingToFork) {
		return nil, notFound(r.SessionID)
	}
	if err := storedError(r.SessionID, err); err != nil {
		return nil, err
	}
	one, err := s.reopen(ctx, acp.SessionID(id), r.Cwd, r.AdditionalDirectories, r.MCPServers, false)
	if err != nil {
		// The editor never got the id of the copy.
		if err := s.config.Sessions(r.Cwd).Delete(context.WithoutCancel(ctx), id); err != nil {
			s.config.Logger.Warn("a copy of a session is left", "session", id, "problem", err)
		}
		return nil, err
	}
	return acp.After{
		Result: acp.NewSessionResponse{SessionID: one.id, Modes: one.modes(), ConfigOptions: one.configOptions()},
		Then:   one.announce,
	}, nil
}

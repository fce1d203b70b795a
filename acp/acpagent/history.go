package acpagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strconv"
	"time"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/transcript"
)

// pageSize is how many sessions session/list returns at most.
const pageSize = 100

// stored opens a session on disk.
func (s *server) stored(ctx context.Context, id acp.SessionID, cwd string) (*transcript.File, error) {
	if s.config.Sessions == nil {
		return nil, &acp.Error{Code: acp.CodeMethodNotFound, Message: "this agent has no sessions on disk"}
	}
	file, err := s.config.Sessions(cwd).Open(ctx, string(id))
	return file, storedError(id, err)
}

func storedError(id acp.SessionID, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fs.ErrNotExist), is[*transcript.IDError](err), errors.Is(err, transcript.ErrNoConversation):
		return notFound(id)
	}
	return internal("the session cannot be read: "+err.Error(), nil)
}

// load resumes a session and shows its history before the answer.
func (s *server) load(ctx context.Context, r *acp.LoadSessionRequest) (any, error) {
	one, err := s.reopen(ctx, r.SessionID, r.Cwd, r.AdditionalDirectories, r.MCPServers, true)
	if err != nil {
		return nil, err
	}
	return acp.After{Result: acp.LoadSessionResponse{Modes: one.modes(), ConfigOptions: one.configOptions()}, Then: one.announce}, nil
}

// resume resumes a session without its history.
func (s *server) resume(ctx context.Context, r *acp.ResumeSessionRequest) (any, error) {
	one, err := s.reopen(ctx, r.SessionID, r.Cwd, r.AdditionalDirectories, r.MCPServers, false)
	if err != nil {
		return nil, err
	}
	return acp.After{Result: acp.ResumeSessionResponse{Modes: one.modes(), ConfigOptions: one.configOptions()}, Then: one.announce}, nil
}

func (s *server) reopen(ctx context.Context, id acp.SessionID, cwd string, more []string, servers []acp.MCPServer, show bool) (*session, error) {
	one, err := s.make(string(id), cwd, more, servers)
	if err != nil {
		return nil, err
	}
	file, err := s.stored(ctx, id, cwd)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	conversation, err := file.Resumed()
	if err != nil {
		return nil, storedError(id, err)
	}
	// An editor that was reloaded may load a session that is still open.
	if old := s.remove(id); old != nil {
		if err := old.close(); err != nil {
			s.config.Logger.Warn("closing a session", "session", id, "problem", err)
		}
	}
	one.known = true
	if show {
		one.replay(conversation)
	}
	return one, s.open(ctx, one)
}

// replay shows the conversation that the agent will resume.
func (s *session) replay(conversation *transcript.Resumption) {
	s.shown.mu.Lock()
	defer s.shown.mu.Unlock()
	for m, err := range conversation.Messages() {
		if err != nil { // the agent reads the file itself
			s.server.config.Logger.Warn("the history is not shown whole", "session", s.id, "problem", err)
			break
		}
		content, err := m.Content()
		if err != nil || m.Type == "system" {
			continue
		}
		id := apiID(m)
		for _, b := range content {
			switch b := b.(type) {
			case *protocol.ToolUseBlock:
				s.toolCalled(b.ID, b.Name, "", b.Input)
			case *protocol.ToolResultBlock:
				s.toolResult(b, m.ToolUseResult)
			case *protocol.ThinkingBlock:
				s.chunk(id, ofThought, b.Thinking)
			case *protocol.TextBlock:
				switch {
				case m.Type == "assistant":
					s.chunk(id, ofText, b.Text)
				case !m.Meta && b.Text != "":
					s.userChunk(m.UUID, b.Text)
				}
			}
		}
	}
	s.failTools(true, "The session ended without the tool's result.")
}

func (s *session) userChunk(id, text string) {
	s.send(acp.SessionUpdate{UserMessageChunk: &acp.ContentChunk{Content: textBlock(text), MessageID: acp.MessageID(id)}})
}

// apiID is the id that the model's API gave to a message, which chunks of new messages
// have, too.
func apiID(m *transcript.Message) string {
	var body struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(m.Message, &body) != nil || body.ID == "" {
		return m.UUID
	}
	return body.ID
}

// list lists sessions on disk, the last modified first.
func (s *server) list(ctx context.Context, r *acp.ListSessionsRequest) (any, error) {
	if s.config.Sessions == nil {
		return nil, &acp.Error{Code: acp.CodeMethodNotFound, Message: "this agent has no sessions on disk"}
	}
	from := 0
	if r.Cursor != "" {
		var err error
		if from, err = strconv.Atoi(r.Cursor); err != nil || from < 0 {
			return nil, invalid("the cursor is not one of this agent's")
		}
	}
	sessions := s.config.Sessions(r.Cwd)
	sessions.SkipWorktrees = true
	found, err := sessions.List(ctx, transcript.ListOptions{Offset: from, Limit: pageSize + 1})
	if err != nil {
		return nil, internal("the sessions cannot be listed: "+err.Error(), nil)
	}
	out := acp.ListSessionsResponse{}
	for i, one := range found {
		if i == pageSize {
			out.NextCursor = strconv.Itoa(from + pageSize)
			break
		}
		out.Sessions = append(out.Sessions, acp.SessionInfo{
			SessionID: acp.SessionID(one.SessionID), Cwd: cmp.Or(one.Cwd, r.Cwd), Title: one.Summary, UpdatedAt: one.LastModified.UTC().Format(time.RFC3339),
		})
	}
	return out, nil
}

// deleteSession removes a session from disk, if the host allows it.
func (s *server) deleteSession(ctx context.Context, r *acp.DeleteSessionRequest) (any, error) {
	if s.config.Sessions == nil || !s.config.AllowDelete {
		return nil, &acp.Error{Code: acp.CodeMethodNotFound, Message: "this agent does not allow sessions to be deleted"}
	}
	if one := s.remove(r.SessionID); one != nil { // an agent that runs would write it anew
		if err := one.close(); err != nil {
			return nil, internal("the session cannot be closed: "+err.Error(), nil)
		}
	}
	err := s.config.Sessions("").Delete(ctx, string(r.SessionID))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !is[*transcript.IDError](err) {
		return nil, internal("the session cannot be deleted: "+err.Error(), nil)
	}
	return acp.DeleteSessionResponse{}, nil
}

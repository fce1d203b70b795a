package transcript

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"path"
	"strings"
)

// Subagent describes a subagent of a session. Nested subagents are in the same list.
type Subagent struct {
	ID            string `json:"agentId"`
	Type          string `json:"agentType"`               // such as general-purpose
	Description   string `json:"description"`             // of the task, from the model
	ToolUseID     string `json:"toolUseId"`               // the call that started it
	ParentAgentID string `json:"parentAgentId,omitempty"` // the subagent that started it; "": the main conversation
	Depth         int    `json:"spawnDepth"`              // 1: started by the main conversation
	Model         string `json:"model,omitempty"`
	// Finished is false while it runs, and if it was killed.
	Finished bool `json:"finished"`
	// Metadata is the whole description as the agent wrote it, or nil.
	Metadata json.RawMessage `json:"-"`
}

// Subagents returns the subagents of a session in the order of their ids. The error is a
// *NotFoundError, an *IDError, or the file's.
//
// With a Store they are in its order, only their ids are set, and an unknown session has
// no subagents.
func (s *Sessions) Subagents(ctx context.Context, id string) ([]Subagent, error) {
	if s.Store != nil {
		return s.subagentsStored(ctx, id)
	}
	all, err := s.find(ctx, id, true)
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(s.fsys(), all[0].side("subagents"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("transcript: the subagents of %s cannot be listed: %w", id, err)
	}
	var out []Subagent
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), ".jsonl")
		agent, is := strings.CutPrefix(name, "agent-")
		if !ok || !is || e.IsDir() {
			continue
		}
		out = append(out, s.subagent(&all[0], agent))
	}
	return out, nil
}

// subagent reads a subagent's description, as far as there is one.
func (s *Sessions) subagent(f *found, agentID string) Subagent {
	a := Subagent{ID: agentID}
	raw, err := fs.ReadFile(s.fsys(), f.side("subagents", "agent-"+agentID+".meta.json"))
	if err != nil || json.Unmarshal(raw, &a) != nil {
		return Subagent{ID: agentID}
	}
	a.ID, a.Metadata = agentID, raw
	return a
}

// Messages returns the messages of a session as the vendor's SDK shows them; see
// [Transcript.Shown]. The file is open while the loop runs. An error ends the loop: a
// *NotFoundError, an *IDError, or the file's.
func (s *Sessions) Messages(ctx context.Context, id string, o ShownOptions) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		f, err := s.Open(ctx, id)
		shownIn(ctx, f, err, o, yield)
	}
}

// SubagentMessages returns the messages of a subagent, with ParentToolUseID and
// ParentAgentID set from its description. A *NotFoundError also says that the session has
// no such subagent.
func (s *Sessions) SubagentMessages(ctx context.Context, id, agentID string, o ShownOptions) iter.Seq2[*Message, error] {
	return func(yield func(*Message, error) bool) {
		f, a, err := s.openSubagent(ctx, id, agentID)
		o.agent = &agentOf{optional(a.ToolUseID), optional(a.ParentAgentID)}
		shownIn(ctx, f, err, o, yield)
	}
}

// shownIn yields the messages of a file that was opened, and closes the file.
func shownIn(ctx context.Context, f *File, err error, o ShownOptions, yield func(*Message, error) bool) {
	if err != nil {
		yield(nil, err)
		return
	}
	defer closeQuietly(f)
	for m, err := range f.Shown(o) {
		if err == nil {
			err = ctx.Err()
		}
		if !yield(m, err) || err != nil {
			return
		}
	}
}

// OpenSubagent opens the transcript of a subagent, as [Sessions.Open] does.
func (s *Sessions) OpenSubagent(ctx context.Context, id, agentID string) (*File, error) {
	f, _, err := s.openSubagent(ctx, id, agentID)
	return f, err
}

func (s *Sessions) openSubagent(ctx context.Context, id, agentID string) (*File, Subagent, error) {
	if s.Store != nil {
		return s.openSubagentStored(ctx, id, agentID)
	}
	all, err := s.find(ctx, id, true)
	if err != nil {
		return nil, Subagent{}, err
	}
	unknown := &NotFoundError{ID: path.Join(id, "subagents", agentID), Dir: s.Dir}
	if !isFileName(agentID) {
		return nil, Subagent{}, unknown
	}
	f, err := s.open(all[0].side("subagents", "agent-"+agentID+".jsonl"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, Subagent{}, unknown
	}
	return f, s.subagent(&all[0], agentID), err
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

package embedded

import (
	"cmp"
	"encoding/json"
	"strings"
	"unicode/utf16"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
)

// own is where a block's frame has what the Messages API has no member for, if the block is
// of another API.
const own = "troupe"

type ownMembers struct {
	Origin string          `json:"origin"`
	Raw    json.RawMessage `json:"raw,omitempty"`
}

// blocksOf reads the content of a message: a text, or blocks in the form of the Messages API.
func blocksOf(content json.RawMessage) []model.Block {
	var whole string
	if protocol.Unmarshal(content, &whole) == nil {
		return []model.Block{text(whole)}
	}
	var list []json.RawMessage
	if protocol.Unmarshal(content, &list) != nil {
		return nil
	}
	blocks := make([]model.Block, 0, len(list))
	for _, raw := range list {
		blocks = append(blocks, blockOf(raw))
	}
	return blocks
}

// Kinds of attachments, beside Claude Code's.
const (
	surroundings = "troupe_surroundings" // what the system prompt says of them
	newDate      = "troupe_date"         // another day has begun
	newDir       = "troupe_directory"    // the shell is in another directory
	newMode      = "troupe_mode"         // plan mode has begun, or has ended
	knownFiles   = "troupe_files"        // what the model knows of files
	leftOut      = "troupe_left_out"     // old results are left out, to save room
	shellDir     = "troupe_shell"        // where the shell is while the model is asked
	serverTools  = "troupe_mcp_tools"    // the tools of the agent's MCP servers
)

// attached adds what an attachment says to the conversation: what hooks say, what the user
// says while the agent works, and what the agent has noted. Others say nothing.
func (l *log) attached(raw json.RawMessage, uuid string) {
	var a struct {
		Type    string          `json:"type"`
		Content []string        `json:"content"`
		Prompt  json.RawMessage `json:"prompt"`
		Mode    string          `json:"commandMode"`
		Text    string          `json:"text"`
		Date    string          `json:"date"`
		Dir     string          `json:"dir"`
		Plan    *bool           `json:"plan"`
		File    string          `json:"planFile"`
		Files   []noted         `json:"files"`
		Results []bulk          `json:"results"`

		Servers map[string][]json.RawMessage `json:"servers"`
	}
	if protocol.Unmarshal(raw, &a) != nil {
		return
	}
	said := func(blocks []model.Block) {
		l.said(blocks)
		l.grew(blocks, uuid)
	}
	switch a.Type {
	case leftOut:
		l.leaveOut(a.Results, a.Text)
	case surroundings:
		l.surroundings, l.date = a.Text, a.Date
	case shellDir:
		l.shell = a.Dir
	case serverTools:
		l.servers = a.Servers
	case knownFiles:
		for _, f := range a.Files {
			if l.knows != nil {
				l.knows(f.Path, known{f.Hash, f.First, f.Last, f.Own})
			}
		}
	case "hook_additional_context", newDate, newDir, newMode:
		if a.Plan != nil {
			l.plan, l.planFile = *a.Plan, a.File
		}
		l.date, l.cwd = cmp.Or(a.Date, l.date), cmp.Or(a.Dir, l.cwd)
		said([]model.Block{text("<system-reminder>\n" + strings.Join(a.Content, "\n\n") + "\n</system-reminder>")})
	case "queued_command":
		blocks := blocksOf(a.Prompt)
		if a.Mode == "prompt" {
			l.heard(blocks)
		}
		if len(blocks) == 1 && blocks[0].Kind == model.Text && a.Mode == "prompt" {
			blocks[0].Text = "The user sent a new message while you were working:\n" + blocks[0].Text
		}
		said(blocks)
	}
}

func blockOf(raw json.RawMessage) model.Block {
	var in struct {
		Type      string          `json:"type"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Signature string          `json:"signature"`
		ID        string          `json:"id"`
		Name      string          `json:"name"`
		Input     json.RawMessage `json:"input"`
		ToolUseID string          `json:"tool_use_id"`
		Content   json.RawMessage `json:"content"`
		IsError   bool            `json:"is_error"`
		Source    json.RawMessage `json:"source"`
		Own       *ownMembers     `json:"troupe"`
	}
	if protocol.Unmarshal(raw, &in) != nil {
		return model.Block{}
	}
	b := model.Block{Kind: model.BlockKind(in.Type), Text: in.Text, ID: in.ID, Name: in.Name, Input: in.Input, IsError: in.IsError, Origin: anthropicOrigin}
	if in.Own != nil {
		b.Origin, b.Raw = in.Own.Origin, in.Own.Raw
	}
	switch b.Kind {
	case model.Text:
	case model.ToolUse:
		if b.Name == "KillShell" { // the model reads the name of today, as observed
			b.Name = "TaskStop"
		}
	case model.Thinking:
		b.Text, b.Signature = in.Thinking, in.Signature
	case model.ToolResult:
		b.ID = in.ToolUseID
		if protocol.Unmarshal(in.Content, &b.Text) != nil {
			b.Content = in.Content
		}
	case model.Image:
		b.Content = in.Source
	case model.Document:
		b.Content, b.Raw = in.Source, raw // which has its title, too
	case model.Opaque:
		fallthrough
	default:
		b.Kind, b.Raw = model.Opaque, raw
	}
	return b
}

// anthropicOrigin is the origin of blocks that are in the form of the Messages API.
const anthropicOrigin = "anthropic"

// frameOf is a block as assistant frames and the transcript have it.
func frameOf(b *model.Block) map[string]any {
	var o map[string]any
	switch b.Kind {
	case model.Thinking:
		o = map[string]any{"type": "thinking", "thinking": b.Text, "signature": b.Signature}
	case model.ToolUse:
		o = map[string]any{"type": "tool_use", "id": b.ID, "name": b.Name, "input": b.Input}
		if b.BadInput != "" { // as observed
			if _, wrong, _ := unparsed(b.Name, b.BadInput); wrong != "" {
				o["input"] = agent.Object{"__unparsedToolInput": agent.Object{"raw": b.BadInput, "len": len(utf16.Encode([]rune(b.BadInput)))}}
			}
		}
	case model.Opaque:
		if protocol.Unmarshal(b.Raw, &o) == nil && b.Origin == anthropicOrigin {
			return o
		}
		o = map[string]any{"type": "text", "text": ""}
	case model.Text, model.ToolResult, model.Image, model.Document:
		o = map[string]any{"type": "text", "text": b.Text}
	}
	switch {
	case b.Origin == anthropicOrigin && b.Raw != nil:
		var whole map[string]any
		if protocol.Unmarshal(b.Raw, &whole) == nil {
			return whole // with its citations, and what is new
		}
	case b.Origin != anthropicOrigin && (b.Raw != nil || b.Kind == model.Thinking):
		o[own] = ownMembers{b.Origin, b.Raw}
	}
	return o
}

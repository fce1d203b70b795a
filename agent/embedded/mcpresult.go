package embedded

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"mime"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/protocol"
)

const maxMCP = 50_000 // characters of a result that the model reads; of longer ones a file

// callMCP makes a call of an MCP tool.
func (t *talk) callMCP(s *agent.Strand, l *agent.Lane, server, tool, name, id string, in agent.Object) (agent.ToolResult, error) {
	if !l.OwnMCP(server) {
		r, err := s.CallMCP(server, tool, id, in, t.timeouts[server])
		content, whole := r.Content.(json.RawMessage)
		if err != nil || !whole || r.IsError {
			return r, err
		}
		return t.shownMCP(s, server, name, &mcpResult{Content: content})
	}
	raw, err := s.RequestMCP(server, "tools/call", agent.Object{
		"name": tool, "arguments": in, "_meta": agent.Object{"claudecode/toolUseId": id},
	})
	if s.Err() != nil {
		return agent.ToolResult{}, s.Err()
	}
	if err != nil {
		return failure("%s", err), nil
	}
	var r mcpResult
	if protocol.Unmarshal(raw, &r) != nil {
		return failure("MCP server %s: the result is not one of a tool", server), nil //nolint:nilerr // the model reads it
	}
	return t.shownMCP(s, server, name, &r)
}

// mcpResult is the result of tools/call.
type mcpResult struct {
	Content    json.RawMessage `json:"content"`
	Structured json.RawMessage `json:"structuredContent"`
	IsError    bool            `json:"isError"`
}

// mcpBlock is a block of its content.
type mcpBlock struct {
	Type        string `json:"type"`
	Text        string `json:"text"`
	Data        string `json:"data"`
	MIMEType    string `json:"mimeType"`
	URI         string `json:"uri"`
	Name        string `json:"name"`
	Description string `json:"description"`
	Resource    *struct {
		URI      string `json:"uri"`
		MIMEType string `json:"mimeType"`
		Text     string `json:"text"`
		Blob     string `json:"blob"`
	} `json:"resource"`
}

// shownMCP is what the model reads of a result (observed on Claude Code 2.1.329, but for audio and
// resources).
func (t *talk) shownMCP(s *agent.Strand, server, name string, r *mcpResult) (agent.ToolResult, error) {
	var blocks []mcpBlock
	if len(r.Content) > 0 && protocol.Unmarshal(r.Content, &blocks) != nil {
		return failure("MCP server %s: the content of the result is no list of blocks", server), nil //nolint:nilerr // the model reads it
	}
	if r.IsError {
		var texts []string
		for _, b := range blocks {
			texts = append(texts, b.Text)
		}
		return failure("%s", strings.Join(texts, "\n")), nil
	}
	var done agent.ToolResult
	err := s.Do(func(ctx context.Context) (err error) {
		switch {
		case len(r.Structured) > 0 && string(r.Structured) != "null":
			var text bytes.Buffer
			_ = json.Compact(&text, r.Structured) // it is JSON
			done.Content, err = t.hands.briefMCP(ctx, text.String())
			done.Structured = agent.Object{"content": done.Content, "structuredContent": r.Structured}
		case len(blocks) == 0:
			done = agent.ToolResult{Content: "(" + name + " completed with no output)", Structured: []any{}}
		default:
			done, err = t.hands.blocksMCP(ctx, server, blocks)
		}
		return err
	})
	if s.Err() != nil {
		return agent.ToolResult{}, s.Err()
	}
	if err != nil {
		return failure("%s", err), nil
	}
	return done, nil
}

// blocksMCP makes blocks for the model. Data that the API does not take is saved to a file, whose
// path the model reads.
func (h *hands) blocksMCP(ctx context.Context, server string, blocks []mcpBlock) (agent.ToolResult, error) {
	var out []any
	var texts []string
	say := func(format string, args ...any) {
		text := fmt.Sprintf(format, args...)
		out, texts = append(out, agent.Object{"type": "text", "text": text}), append(texts, text)
	}
	// save saves data and says where.
	save := func(what, encoded, kind string) error {
		path, err := h.saveMCP(server, encoded, kind)
		if err != nil {
			return err
		}
		say("[%s: source: %s]", what, path)
		return nil
	}
	for _, b := range blocks {
		var err error
		switch {
		case b.Type == "text":
			say("%s", b.Text)
		case b.Type == "image" && slices.Contains(imageKinds(), b.MIMEType):
			if shown := (inlined{Media: b.MIMEType, Data: b.Data}).block(); shown["type"] == "text" {
				say("%s", shown["text"])
			} else {
				out = append(out, shown)
			}
			err = save("Image", b.Data, b.MIMEType)
		case b.Type == "image":
			err = save("Image", b.Data, b.MIMEType)
		case b.Type == "audio":
			err = save("Audio", b.Data, b.MIMEType)
		case b.Type == "resource_link":
			say("[Resource link: %s] %s %s", b.Name, b.URI, b.Description)
		case b.Type == "resource" && b.Resource != nil && b.Resource.Blob != "":
			err = save("Resource "+b.Resource.URI, b.Resource.Blob, b.Resource.MIMEType)
		case b.Type == "resource" && b.Resource != nil:
			say("[Resource from %s at %s] %s", server, b.Resource.URI, b.Resource.Text)
		default:
			say("[A block of the type %q, which this agent does not show]", b.Type)
		}
		if err != nil {
			return agent.ToolResult{}, err
		}
	}
	whole := strings.Join(texts, "\n")
	if utf8.RuneCountInString(whole) <= maxMCP {
		return agent.ToolResult{Content: out, Structured: out}, nil
	}
	brief, err := h.briefMCP(ctx, whole)
	if err != nil || len(texts) == len(out) {
		return agent.ToolResult{Content: brief, Structured: brief}, err
	}
	short := []any{agent.Object{"type": "text", "text": brief}} // the images stay
	for _, b := range out {
		if b.(agent.Object)["type"] != "text" {
			short = append(short, b)
		}
	}
	return agent.ToolResult{Content: short, Structured: short}, nil
}

// briefMCP is a text, or what the model reads of one that is too long: where it is saved.
func (h *hands) briefMCP(ctx context.Context, text string) (string, error) {
	size := utf8.RuneCountInString(text)
	if size <= maxMCP {
		return text, nil
	}
	path, err := h.persist([]byte(text))
	if err != nil {
		return "", fmt.Errorf("the result of %s could not be saved: %w", sizeOf(len(text)), err)
	}
	n := h.tokens(ctx, text)
	if n == 0 {
		n = size / 4 // the endpoint does not count
	}
	if n <= maxTokens {
		return persisted(path, len(text), text), nil
	}
	return fmt.Sprintf("Error: result (%s characters across %s lines) exceeds maximum allowed tokens. Output has been saved to %s. Read it in portions with offset and limit, or call Grep for what you look for.",
		thousands(size), thousands(strings.Count(strings.TrimSuffix(text, "\n"), "\n")+1), path), nil
}

// thousands writes a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

var unfitName = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// saveMCP saves data that a server has sent to a file.
func (h *hands) saveMCP(server, encoded, kind string) (string, error) {
	data, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return "", fmt.Errorf("MCP server %s: data that is not in base64", server)
	}
	dir, err := h.keep("tool-results")
	if err != nil {
		return "", err
	}
	end := ".bin"
	if media, _, err := mime.ParseMediaType(kind); err == nil {
		if kind, ok := mcpFiles()[media]; ok {
			end = kind
		}
	}
	path := filepath.Join(dir, fmt.Sprintf("mcp-%s-blob-%d-%06x%s", unfitName.ReplaceAllString(server, "_"),
		h.seams.Clock.Now().UnixMilli(), h.seams.Rand.Uint64()&0xffffff, end))
	if err := h.disk.ask(diskWrite, path); err != nil {
		return "", err
	}
	return path, os.WriteFile(path, data, 0o600)
}

// mcpFiles are the ends of names of files.
func mcpFiles() map[string]string {
	return map[string]string{
		"image/png": ".png", "image/jpeg": ".jpg", "image/gif": ".gif", "image/webp": ".webp", "image/svg+xml": ".svg",
		"audio/mpeg": ".mp3", "audio/wav": ".wav", "audio/ogg": ".ogg", "application/pdf": ".pdf", "application/json": ".json",
		"text/plain": ".txt", "text/html": ".html", "text/csv": ".csv",
	}
}

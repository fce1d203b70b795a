package model

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/agent-troupe/troupe/protocol"
)

// OpenAIURL is the vendor's own endpoint.
const OpenAIURL = "https://api.openai.com/v1"

// OpenAIConfig is an endpoint of chat completions, of any vendor or server.
type OpenAIConfig struct {
	Config
	Quirks
}

// Quirks are how a server or a model differs from the vendor's own. The zero value is
// that vendor's. [Profiles] have those of known servers.
type Quirks struct {
	// MaxTokens is the name of the limit of an answer; "": max_completion_tokens; "-": the
	// server does not have it.
	MaxTokens string `json:"maxTokens,omitempty"`
	// Effort is the name of the member for Request.Effort; "": reasoning_effort; "-": the
	// server does not have it. "reasoning.effort" is the member effort of an object reasoning.
	Effort string `json:"effort,omitempty"`
	// NoStreamOptions: the server refuses stream_options, and says nothing of tokens
	// without them, or says it anyway.
	NoStreamOptions bool `json:"noStreamOptions,omitempty"`
	// NoCacheKey: the server refuses prompt_cache_key.
	NoCacheKey bool `json:"noCacheKey,omitempty"`
	// Developer: the system prompt has the role developer.
	Developer bool `json:"developer,omitempty"`
	// Reasoning is the member in which the thinking of a message with calls is given back,
	// such as reasoning_content; "": it is not. DeepSeek refuses requests without it.
	Reasoning string `json:"reasoning,omitempty"`
	// Merge: the server refuses two messages of the user's in a row; they become one.
	Merge bool `json:"merge,omitempty"`
	// CacheMarks: the server takes the marks of the Messages API (OpenRouter, for models of
	// Anthropic).
	CacheMarks bool `json:"cacheMarks,omitempty"`
	// NoImages: the server refuses images, such as that of DeepSeek.
	NoImages bool `json:"noImages,omitempty"`
	// Files: the server takes PDF files, as parts of the type file. That of the vendor does, and
	// OpenRouter; few others.
	Files bool `json:"files,omitempty"`
	// APIKeyHeader sends the key in this header, as it is, in place of "Authorization:
	// Bearer". Azure's is api-key.
	APIKeyHeader string `json:"apiKeyHeader,omitempty"`
}

// NewOpenAI returns a client for an endpoint of chat completions. It is safe for concurrent
// use and needs no Close.
func NewOpenAI(c OpenAIConfig) *Client {
	c.URL = cmp.Or(c.URL, OpenAIURL)
	origin := openai
	c.Files = c.Files || c.URL == OpenAIURL
	if u, err := url.Parse(c.URL); err == nil && c.URL != OpenAIURL {
		origin += ":" + u.Host
	}
	return newClient(c.Config, "/chat/completions", chat{Quirks: c.Quirks, origin: origin})
}

// chat is the API of chat completions. Its documentation is at
// platform.openai.com/docs/api-reference/chat.
type chat struct {
	Quirks
	origin string // of what only this endpoint understands
}

const openai = "openai"

func (chat) Name() string { return openai }

func (c chat) header(h http.Header, key string) {
	switch {
	case key == "":
	case c.APIKeyHeader != "":
		h.Set(c.APIKeyHeader, key)
	default:
		h.Set("Authorization", "Bearer "+key)
	}
}

// Takes reports whether the server takes blocks of a kind.
func (c chat) Takes(kind BlockKind) bool {
	switch kind {
	case Image:
		return !c.NoImages
	case Document:
		return c.Files
	case Text, Thinking, ToolUse, ToolResult, Opaque:
	}
	return true
}

func (chat) Tools(list []Tool) []byte {
	return toolList(list, `{"type":"function","function":{"name":`, `,"parameters":`, "}}")
}

// Message makes one message, and one before it for each result of a tool, joined by commas:
// results answer the message before, and so come first.
func (c chat) Message(m *Message) []byte {
	var results [][]byte
	var said spoken
	for i := range m.Blocks {
		if k := &m.Blocks[i]; k.Kind == ToolResult {
			results = append(results, c.result(k, &said))
		} else {
			said.add(c, k)
		}
	}
	if !said.empty() || len(results) == 0 {
		results = append(results, said.message(c, m.Role))
	}
	return bytes.Join(results, []byte{','})
}

// result is the message of a tool's result. It has text alone: images and
// documents go to the user's message behind it.
func (c chat) result(k *Block, said *spoken) []byte {
	text := k.Text
	if len(k.Content) > 0 {
		text = plainText(k.Content)
		var blocks []struct {
			Type   string          `json:"type"`
			Source json.RawMessage `json:"source"`
		}
		if protocol.Unmarshal(k.Content, &blocks) == nil {
			for _, b := range blocks {
				switch b.Type {
				case string(Image):
					said.image(c, b.Source)
				case string(Document):
					said.document(c, b.Source, "")
				}
			}
		}
	}
	if k.IsError && text == "" {
		text = "error" // there is no member for it
	}
	b := []byte(`{"role":"tool"`)
	b = appendMember(b, "tool_call_id", k.ID)
	return append(appendMember(b, "content", text), '}')
}

func (c chat) body(r *Request) [][]byte {
	head := []byte(`{"model":`)
	head = appendString(head, r.Model)
	if !r.Whole {
		head = append(head, `,"stream":true`...)
	}
	if !r.Whole && !c.NoStreamOptions {
		head = append(head, `,"stream_options":{"include_usage":true}`...)
	}
	if name := cmp.Or(c.MaxTokens, "max_completion_tokens"); name != "-" && r.MaxTokens > 0 {
		head = append(appendString(append(head, ','), name), ':')
		head = strconv.AppendInt(head, int64(r.MaxTokens), 10)
	}
	if name := cmp.Or(c.Effort, "reasoning_effort"); name != "-" && r.Effort != "" {
		if name == "reasoning.effort" {
			head = append(head, `,"reasoning":{"effort":`...)
			head = append(appendString(head, r.Effort), '}')
		} else {
			head = appendMember(head, name, r.Effort)
		}
	}
	if r.User != "" && r.Cache && !c.NoCacheKey {
		head = appendMember(head, "prompt_cache_key", r.User)
	}
	if r.ToolChoice != "" {
		head = append(head, `,"tool_choice":{"type":"function","function":{"name":`...)
		head = append(appendString(head, r.ToolChoice), "}}"...)
	}
	parts := [][]byte{head}
	if len(r.Tools) > len("[]") { // an empty list is refused
		parts = append(parts, []byte(`,"tools":`), r.Tools)
	}
	system := []byte(`,"messages":[`)
	role := "system"
	if c.Developer {
		role = "developer"
	}
	for i, s := range r.System {
		if i > 0 {
			system = append(system, ',')
		}
		system = append(system, `{"role":"`+role+`","content":`...)
		if r.Cache && c.CacheMarks && i == len(r.System)-1 {
			system = append(system, `[{"type":"text"`...)
			system = appendMark(appendMember(system, "text", s))
			system = append(system, "}]}"...)
		} else {
			system = append(appendString(system, s), '}')
		}
	}
	parts = append(parts, system)
	for i, m := range r.Messages {
		if i > 0 && c.Merge && bytes.HasPrefix(m, []byte(userText)) && isUserText(parts[len(parts)-1]) {
			last := parts[len(parts)-1]
			parts[len(parts)-1] = last[:len(last)-len(`"}`)]
			parts = append(parts, []byte(`\n\n`), m[len(userText):])
			continue
		}
		if i > 0 || len(r.System) > 0 {
			parts = append(parts, []byte{','})
		}
		parts = append(parts, m)
	}
	return append(parts, []byte("]}"))
}

// userText begins a message of the user's that is text alone.
const userText = `{"role":"user","content":"`

// isUserText reports whether the encoded message, or its rest, ends as one that is text alone.
func isUserText(m []byte) bool {
	return bytes.HasSuffix(m, []byte(`"}`)) && !bytes.HasSuffix(m, []byte(`"}}`)) &&
		(bytes.HasPrefix(m, []byte(userText)) || !bytes.HasPrefix(m, []byte(`{"role":`)))
}

func (c chat) decoder(raw bool, emit func(*Event) bool) decoder {
	return &chatDecoder{raw: raw, emit: emit, origin: c.origin}
}

package model

import (
	"bytes"
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// AnthropicURL is the vendor's own endpoint.
const AnthropicURL = "https://api.anthropic.com/v1"

// AnthropicConfig is an endpoint of the Messages API.
type AnthropicConfig struct {
	Config
	Version string   // of the API; "": 2023-06-01
	Betas   []string // of the header anthropic-beta
	// Bearer sends the key as "Authorization: Bearer", as gateways want it, in place of
	// "X-Api-Key".
	Bearer bool
	// LongCache keeps marked prefixes for an hour in place of five minutes
	// (docs.claude.com/en/docs/build-with-claude/prompt-caching): for sessions that rest longer.
	// To write them costs more.
	LongCache bool
}

// NewAnthropic returns a client for an endpoint of the Messages API. It is safe for
// concurrent use and needs no Close.
func NewAnthropic(c AnthropicConfig) *Client {
	c.URL = cmp.Or(c.URL, AnthropicURL)
	c.Version = cmp.Or(c.Version, "2023-06-01")
	return newClient(c.Config, "/messages", messages{version: c.Version, betas: slices.Clone(c.Betas), bearer: c.Bearer, long: c.LongCache})
}

// messages is the Messages API. Its documentation is at docs.claude.com/en/api/messages.
type messages struct {
	version string
	betas   []string
	bearer  bool
	long    bool // marks last for an hour
}

const anthropic = "anthropic" // Codec.Name, and Block.Origin: any endpoint of the API takes its blocks

func (messages) Name() string { return anthropic }

func (m messages) header(h http.Header, key string) {
	h.Set("Anthropic-Version", m.version)
	if len(m.betas) > 0 {
		h.Set("Anthropic-Beta", strings.Join(m.betas, ","))
	}
	switch {
	case key == "":
	case m.bearer:
		h.Set("Authorization", "Bearer "+key)
	default:
		h.Set("X-Api-Key", key)
	}
}

// Takes reports whether the API has blocks of a kind.
func (messages) Takes(BlockKind) bool { return true }

func (messages) Tools(list []Tool) []byte {
	return toolList(list, `{"name":`, `,"input_schema":`, "}")
}

// toolList is a list of tools: a tool begins with before and the name, has the schema after the word for it,
// and ends with after.
func toolList(list []Tool, before, schema, after string) []byte {
	b := []byte{'['}
	for i, t := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendString(append(b, before...), t.Name)
		if t.Description != "" {
			b = appendMember(b, "description", t.Description)
		}
		b = append(append(b, schema...), orElse(t.Schema, emptySchema)...)
		b = append(b, after...)
	}
	return append(b, ']')
}

const emptySchema = `{"type":"object","properties":{}}`

func (messages) Message(m *Message) []byte {
	b := []byte(`{"role":"`)
	b = append(b, m.Role...)
	b = append(b, `","content":[`...)
	empty := len(b)
	for i := range m.Blocks {
		k := &m.Blocks[i]
		foreign := k.Origin != anthropic
		if k.Kind == Opaque && (foreign || k.Raw == nil) || k.Text == "" && (k.Kind == Text || k.Kind == Thinking && foreign) {
			continue // nothing that the API takes: it refuses an empty text
		}
		if len(b) > empty {
			b = append(b, ',')
		}
		b = appendBlock(b, k)
	}
	if len(b) == empty { // and a message without a block
		b = appendBlock(b, &Block{Kind: Text, Text: "(no content)"})
	}
	return exact(append(b, "]}"...))
}

func appendBlock(b []byte, k *Block) []byte {
	if k.Raw != nil && k.Origin == anthropic {
		return append(b, k.Raw...)
	}
	switch k.Kind {
	case Thinking:
		if k.Signature == "" || k.Origin != anthropic { // the API refuses what it did not sign
			b = append(b, `{"type":"text"`...)
			return append(appendMember(b, "text", "<thinking>"+k.Text+"</thinking>"), '}')
		}
		b = append(b, `{"type":"thinking"`...)
		b = appendMember(b, "thinking", k.Text)
		return append(appendMember(b, "signature", k.Signature), '}')
	case ToolUse:
		b = append(b, `{"type":"tool_use"`...)
		b = appendMember(b, "id", k.ID)
		b = appendMember(b, "name", k.Name)
		b = append(b, `,"input":`...)
		return append(append(b, orElse(k.Input, "{}")...), '}')
	case ToolResult:
		b = append(b, `{"type":"tool_result"`...)
		b = appendMember(b, "tool_use_id", k.ID)
		if len(k.Content) > 0 {
			b = append(append(b, `,"content":`...), k.Content...)
		} else {
			b = appendMember(b, "content", k.Text)
		}
		if k.IsError {
			b = append(b, `,"is_error":true`...)
		}
		return append(b, '}')
	case Image, Document:
		b = append(b, `{"type":`...)
		b = append(appendString(b, string(k.Kind)), `,"source":`...)
		return append(append(b, orElse(k.Content, "null")...), '}')
	case Text, Opaque:
	}
	b = append(b, `{"type":"text"`...)
	return append(appendMember(b, "text", k.Text), '}')
}

// appendMark appends the mark of the provider's cache of prompts, as a member.
func appendMark(b []byte) []byte { return append(b, `,"cache_control":{"type":"ephemeral"}`...) }

func (m messages) mark(b []byte) []byte {
	if m.long {
		return append(b, `,"cache_control":{"type":"ephemeral","ttl":"1h"}`...)
	}
	return appendMark(b)
}

func (m messages) body(r *Request) [][]byte {
	size := 256 // about as much as it takes: a request that streams keeps its body
	for _, s := range r.System {
		size += len(s) + len(s)/16
	}
	head := append(make([]byte, 0, size), `{"model":`...)
	head = appendString(head, r.Model)
	limit := cmp.Or(r.MaxTokens, 4096)
	head = append(head, `,"max_tokens":`...)
	head = strconv.AppendInt(head, int64(limit), 10)
	if !r.Whole {
		head = append(head, `,"stream":true`...)
	}
	switch {
	case r.ThinkingTokens > 0:
		head = append(head, `,"thinking":{"type":"enabled","budget_tokens":`...)
		head = append(strconv.AppendInt(head, int64(r.ThinkingTokens), 10), '}')
	case r.ThinkingTokens < 0:
		head = append(head, `,"thinking":{"type":"disabled"}`...)
	}
	if r.Effort != "" {
		head = append(head, `,"output_config":{"effort":`...)
		head = append(appendString(head, r.Effort), '}')
	}
	if r.ToolChoice != "" {
		head = append(head, `,"tool_choice":{"type":"tool"`...)
		head = append(appendMember(head, "name", r.ToolChoice), '}')
	}
	if r.User != "" {
		head = append(head, `,"metadata":{"user_id":`...)
		head = append(appendString(head, r.User), '}')
	}
	for i, s := range r.System {
		if i == 0 {
			head = append(head, `,"system":[`...)
		} else {
			head = append(head, ',')
		}
		head = append(head, `{"type":"text"`...)
		head = appendMember(head, "text", s)
		if r.Cache && i == len(r.System)-1 {
			head = m.mark(head)
		}
		head = append(head, '}')
	}
	if len(r.System) > 0 {
		head = append(head, ']')
	}
	parts := append(make([][]byte, 0, 2*len(r.Messages)+10), head)
	if len(r.Tools) > len("[]") {
		parts = append(parts, []byte(`,"tools":`), r.Tools)
	}
	parts = append(parts, []byte(`,"messages":[`))
	for i, said := range r.Messages {
		if i > 0 {
			parts = append(parts, []byte{','})
		}
		// The next request has the last message as its last but one: a mark on both finds
		// the cache of the one before and writes that of the next.
		if r.Cache && i >= len(r.Messages)-2 && markable(said) {
			parts = append(parts, said[:len(said)-len("}]}")], m.mark(nil), []byte("}]}"))
		} else {
			parts = append(parts, said)
		}
	}
	return append(parts, []byte("]}"))
}

// markable reports whether the last block of an encoded message can be marked: the API
// refuses a mark on thinking.
func markable(m []byte) bool {
	if !bytes.HasSuffix(m, []byte("}]}")) {
		return false
	}
	// The block is of another kind if something follows the last thinking.
	at := max(bytes.LastIndex(m, []byte(`{"type":"thinking"`)), bytes.LastIndex(m, []byte(`{"type":"redacted_thinking"`)))
	return at < 0 || bytes.Contains(m[at:], []byte(`},{"type":"`))
}

func (messages) decoder(raw bool, emit func(*Event) bool) decoder {
	return &messagesDecoder{raw: raw, emit: emit}
}

package model

import (
	"cmp"
	"encoding/json"

	"github.com/agent-troupe/troupe/protocol"
)

// spoken is what a message says besides the results of tools.
type spoken struct {
	text    []byte
	texts   int
	parts   []byte // of content, if there is more than text
	media   bool
	thought []byte
	more    fields // members of this endpoint's own
	calls   []byte
}

func (s *spoken) empty() bool { return s.texts == 0 && !s.media && s.calls == nil }

func (s *spoken) part() {
	if s.parts != nil {
		s.parts = append(s.parts, ',')
	}
}

// leftOut says to the model that there was something it cannot read.
func (s *spoken) leftOut(what string) {
	s.say("[" + what + " was left out: this endpoint does not take it.]")
}

// say adds a text.
func (s *spoken) say(text string) {
	if s.texts++; s.texts > 1 {
		s.text = append(s.text, '\n')
	}
	s.text = append(s.text, text...)
	s.part()
	s.parts = append(s.parts, `{"type":"text"`...)
	s.parts = append(appendMember(s.parts, "text", text), '}')
}

// source is where an image or a document of the Messages API comes from.
type source struct {
	Type  string `json:"type"`
	Media string `json:"media_type"`
	Data  string `json:"data"`
	URL   string `json:"url"`
}

// image adds a picture, given as the source of an image of the Messages API.
func (s *spoken) image(c chat, from json.RawMessage) {
	var in source
	if protocol.Unmarshal(from, &in) != nil || c.NoImages || in.Type != "base64" && in.URL == "" {
		s.leftOut("An image")
		return
	}
	at := in.URL
	if in.Type == "base64" {
		at = "data:" + in.Media + ";base64," + in.Data
	}
	s.part()
	s.media = true
	s.parts = append(s.parts, `{"type":"image_url","image_url":{"url":`...)
	s.parts = append(appendString(s.parts, at), "}}"...)
}

// document adds a document, given as its source in the Messages API. One of text is text here,
// too.
func (s *spoken) document(c chat, from json.RawMessage, title string) {
	var in source
	switch err := protocol.Unmarshal(from, &in); {
	case err == nil && in.Type == "text":
		if title != "" {
			title = "Document: " + title + "\n\n"
		}
		s.say(title + in.Data)
	case err == nil && in.Type == "base64" && c.Files:
		s.part()
		s.media = true
		s.parts = append(s.parts, `{"type":"file","file":{"filename":`...)
		s.parts = appendString(s.parts, cmp.Or(title, "document.pdf"))
		s.parts = append(appendMember(s.parts, "file_data", "data:"+in.Media+";base64,"+in.Data), "}}"...)
	default:
		s.leftOut("A document")
	}
}

func (s *spoken) add(c chat, k *Block) {
	switch k.Kind {
	case Text:
		if k.Text != "" {
			s.say(k.Text)
		}
	case Image:
		s.image(c, k.Content)
	case Document:
		var own struct {
			Title string `json:"title"`
		}
		_ = protocol.Unmarshal(k.Raw, &own) // "" without a title
		s.document(c, k.Content, own.Title)
	case Thinking:
		if k.Origin == c.origin {
			s.thought = append(s.thought, k.Text...)
			var own fields
			own.keep(k.Raw)
			for _, m := range own {
				s.more.add(m.name, m.value)
			}
		}
	case ToolUse:
		if s.calls != nil {
			s.calls = append(s.calls, ',')
		}
		s.calls = append(s.calls, `{"type":"function"`...)
		s.calls = appendMember(s.calls, "id", k.ID)
		s.calls = append(s.calls, `,"function":{"name":`...)
		s.calls = appendString(s.calls, k.Name)
		arguments := k.BadInput
		if arguments == "" {
			arguments = string(orElse(k.Input, "{}"))
		}
		s.calls = append(appendMember(s.calls, "arguments", arguments), '}')
		if k.Origin == c.origin && k.Raw != nil {
			s.calls = append(append(s.calls, ','), k.Raw[1:len(k.Raw)-1]...)
		}
		s.calls = append(s.calls, '}')
	case Opaque, ToolResult:
	}
}

func (s *spoken) message(c chat, role Role) []byte {
	b := []byte(`{"role":"`)
	b = append(b, role...)
	switch {
	case s.media:
		b = append(b, `","content":[`...)
		b = append(append(b, s.parts...), ']')
	case s.texts == 0 && s.calls != nil:
		b = append(b, `","content":null`...)
	default:
		b = append(b, `","content":`...)
		b = appendString(b, string(s.text))
	}
	if role != Assistant {
		return append(b, '}')
	}
	// Thinking belongs to the calls: what was thought before a plain answer is not wanted back.
	if s.calls != nil {
		if len(s.thought) > 0 && c.Reasoning != "" {
			b = appendMember(b, c.Reasoning, string(s.thought))
		}
		for _, m := range s.more {
			b = append(b, ',')
			b = append(appendString(b, m.name), ':')
			b = append(b, m.value...)
		}
		b = append(append(append(b, `,"tool_calls":[`...), s.calls...), ']')
	}
	return append(b, '}')
}

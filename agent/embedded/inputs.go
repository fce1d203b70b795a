package embedded

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/protocol"
)

// Blocks other than text. A request with an image that the model does not take is refused, and so
// would be each later one, since the conversation has the image. So blocks that the model does not
// take do not become part of the conversation.

// Limits of the Messages API for what one block has. A larger one has the request refused.
const (
	maxImage     = 5 << 20 / 4 * 3 // bytes, so that it has 5 MB as base64
	maxImageSide = 8000            // pixels
	maxPDF       = 20 << 20        // bytes; a request has 32 MB at most
)

// takes reports whether the model reads blocks of a kind: its endpoint takes them, and it is not
// known as one that reads text alone.
func (h *hands) takes(kind model.BlockKind) bool {
	if h.model == nil {
		return true
	}
	if own, says := h.model.Codec().(interface {
		Takes(kind model.BlockKind) bool
	}); says && !own.Takes(kind) {
		return false
	}
	h.mu.Lock()
	name := h.name
	h.mu.Unlock()
	return h.textOnly == nil || !h.textOnly(name)
}

// notTaken is what the model reads of a file that it cannot be shown; "": it can.
func (h *hands) notTaken(kind model.BlockKind, path string, size int) string {
	what, limit, advice := "images", mostOf(kind), "Make it smaller with a command."
	if kind == model.Document {
		what, advice = "PDF files", "Split it, or take its text out, with a command such as pdftotext."
	}
	switch {
	case !h.takes(kind) && kind == model.Document:
		return fmt.Sprintf("This model does not take PDF files, so %s cannot be shown. A command such as pdftotext can take its text out.", path)
	case !h.takes(kind):
		return fmt.Sprintf("This model does not take images, so %s cannot be shown.", path)
	case size > limit:
		return fmt.Sprintf("%s has %s, and %s of at most %s can be shown. %s", path, sizeOf(size), what, sizeOf(limit), advice)
	}
	return ""
}

// picture is a block of an image or a PDF file; nil if it is neither, or the model does not take it.
func (h *hands) picture(media string, content []byte) *model.Block {
	kind := model.Image
	switch {
	case media == "application/pdf":
		kind = model.Document
	case !slices.Contains(imageKinds(), media):
		return nil
	}
	if h.notTaken(kind, "", len(content)) != "" {
		return nil
	}
	e := inlined{Type: "base64", Media: media, Data: base64.StdEncoding.EncodeToString(content)}
	if e.refused(kind) != "" {
		return nil
	}
	source, _ := json.Marshal(e) // texts
	return &model.Block{Kind: kind, Content: source}
}

// fit is a block as the model takes it: a text stands in place of what it does not take, and of what
// the API would refuse with each later request. It runs once for each block that joins the conversation.
func (l *log) fit(b model.Block) model.Block {
	if b.Kind != model.ToolResult {
		if b.Kind != model.Image && b.Kind != model.Document {
			return b
		}
		var e inlined
		_ = protocol.Unmarshal(b.Content, &e) // else it has no source
		switch why, mended := l.misfit(b.Kind, &e); {
		case why != "":
			return text(leftOutFor(b.Kind, why))
		case mended:
			b.Content, _ = json.Marshal(e) // texts
			if b.Raw != nil {
				b.Raw = withSource(b.Raw, &e)
			}
		}
		return b
	}
	var list []json.RawMessage
	if len(b.Content) == 0 || protocol.Unmarshal(b.Content, &list) != nil {
		return b
	}
	changed := false
	for i, raw := range list {
		var one struct {
			Type   model.BlockKind `json:"type"`
			Source inlined         `json:"source"`
		}
		_ = protocol.Unmarshal(raw, &one) // else it has no source
		if one.Type != model.Image && one.Type != model.Document {
			continue
		}
		switch why, mended := l.misfit(one.Type, &one.Source); {
		case why != "":
			list[i], _ = json.Marshal(agent.Object{"type": "text", "text": leftOutFor(one.Type, why)}) // texts
			changed = true
		case mended:
			list[i], changed = withSource(raw, &one.Source), true
		}
	}
	if changed {
		b.Content, _ = json.Marshal(list) // each is JSON
	}
	return b
}

// misfit says why an image or a document cannot be in the conversation; "": it can, and mended says
// whether the source had to be put right.
func (l *log) misfit(kind model.BlockKind, e *inlined) (why string, mended bool) {
	if e.Type == "text" { // of a document, which every model reads
		return "", false
	}
	if l.takes != nil && !l.takes(kind) {
		return "this model does not take it", false
	}
	before := *e
	why = e.refused(kind)
	return why, before != *e
}

// isText reports whether the source of a document is text, which every model reads.
func isText(source json.RawMessage) bool {
	var s struct {
		Type string `json:"type"`
	}
	return protocol.Unmarshal(source, &s) == nil && s.Type == "text"
}

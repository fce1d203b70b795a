package acpagent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// userMessage makes the message for the agent of the blocks of a prompt. Only what
// initialize has promised is taken.
func userMessage(prompt []acp.ContentBlock) (sdk.UserMessage, error) {
	var blocks, context []protocol.ContentBlock
	text := func(t string) *sdk.TextBlock { return &sdk.TextBlock{Text: t} }
	for i, b := range prompt {
		switch {
		case b.Text != nil:
			blocks = append(blocks, text(b.Text.Text))
		case b.Image != nil && b.Image.Data != "":
			blocks = append(blocks, &protocol.ImageBlock{Source: protocol.Source{Type: "base64", MediaType: b.Image.MimeType, Data: b.Image.Data}})
		case b.Image != nil && strings.HasPrefix(b.Image.URI, "http"):
			blocks = append(blocks, &protocol.ImageBlock{Source: protocol.Source{Type: "url", URL: b.Image.URI}})
		case b.ResourceLink != nil:
			blocks = append(blocks, text(link(b.ResourceLink.Name, b.ResourceLink.URI)))
		case b.Resource != nil && b.Resource.Resource.Blob != "":
			r := b.Resource.Resource
			if !strings.HasPrefix(r.MimeType, "image/") {
				return sdk.UserMessage{}, invalid("the embedded resource %s is neither a text nor an image", r.URI)
			}
			blocks = append(blocks, &protocol.ImageBlock{Source: protocol.Source{Type: "base64", MediaType: r.MimeType, Data: r.Blob}})
		case b.Resource != nil:
			r := b.Resource.Resource
			blocks = append(blocks, text(link("", r.URI)))
			context = append(context, text(fmt.Sprintf("<context ref=%q>\n%s\n</context>", r.URI, r.Text)))
		default:
			return sdk.UserMessage{}, invalid("block %d of the prompt, %s, is not one that the agent takes: it takes text, images, resources and links to them", i+1, kindOfBlock(&b))
		}
	}
	blocks = append(blocks, context...)
	if len(blocks) == 0 {
		return sdk.UserMessage{}, invalid("the prompt is empty")
	}
	return sdk.UserBlocks(blocks...), nil
}

// kindOfBlock names a block that is not taken.
func kindOfBlock(b *acp.ContentBlock) string {
	var other struct {
		Type json.RawMessage `json:"type"`
	}
	switch {
	case b.Audio != nil:
		return "audio"
	case b.Image != nil:
		return "an image without data or an http address"
	case json.Unmarshal(b.Other, &other) != nil || len(other.Type) == 0:
		return "without a type"
	}
	return "of the type " + oneLine(string(other.Type))
}

// link names a resource in the form that the agent knows for files.
func link(name, uri string) string {
	if path, ok := strings.CutPrefix(uri, "file://"); ok && name == "" {
		name = path[strings.LastIndexByte(path, '/')+1:]
	}
	name = cmp.Or(name, uri)
	return fmt.Sprintf("[@%s](%s)", name, uri)
}

// contentBlocks are the blocks of a message as the editor takes them; what it has no
// block for is left out.
func contentBlocks(content protocol.Content) (out []acp.ContentBlock) {
	for _, b := range content {
		switch b := b.(type) {
		case *protocol.TextBlock:
			if b.Text != "" {
				out = append(out, textBlock(b.Text))
			}
		case *protocol.ImageBlock:
			out = append(out, acp.ContentBlock{Image: &acp.ImageContent{Data: b.Source.Data, MimeType: b.Source.MediaType, URI: b.Source.URL}})
		}
	}
	return out
}

func textBlock(text string) acp.ContentBlock {
	return acp.ContentBlock{Text: &acp.TextContent{Text: text}}
}

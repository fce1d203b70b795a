package model_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/model"
)

// Images and documents reach the endpoints that take them. Of others the model reads what was left
// out.
func TestImagesAndDocuments(t *testing.T) {
	t.Parallel()
	image := model.Block{Kind: model.Image, Content: json.RawMessage(`{"type":"base64","media_type":"image/png","data":"AA=="}`)}
	linked := model.Block{Kind: model.Image, Content: json.RawMessage(`{"type":"url","url":"https://a.test/x.png"}`)}
	stored := model.Block{Kind: model.Image, Content: json.RawMessage(`{"type":"file","file_id":"f1"}`)}
	pdf := model.Block{Kind: model.Document, Content: json.RawMessage(`{"type":"base64","media_type":"application/pdf","data":"JVBERg=="}`), Raw: json.RawMessage(`{"title":"a.pdf"}`)}
	plain := model.Block{Kind: model.Document, Content: json.RawMessage(`{"type":"text","media_type":"text/plain","data":"all of it"}`), Raw: json.RawMessage(`{"title":"T"}`)}
	result := model.Block{Kind: model.ToolResult, ID: "c", Content: json.RawMessage(`[{"type":"text","text":"a"},{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERg=="}}]`)}
	for name, c := range map[string]struct {
		quirks model.Quirks
		blocks []model.Block
		want   string
	}{
		"image":                   {model.Quirks{}, []model.Block{image}, `{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}`},
		"image of the web":        {model.Quirks{}, []model.Block{linked}, `{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://a.test/x.png"}}]}`},
		"image of another API":    {model.Quirks{}, []model.Block{stored}, `{"role":"user","content":"[An image was left out: this endpoint does not take it.]"}`},
		"no images":               {model.Quirks{NoImages: true}, []model.Block{{Kind: model.Text, Text: "see"}, image}, `{"role":"user","content":"see\n[An image was left out: this endpoint does not take it.]"}`},
		"PDF":                     {model.Quirks{Files: true}, []model.Block{pdf}, `{"role":"user","content":[{"type":"file","file":{"filename":"a.pdf","file_data":"data:application/pdf;base64,JVBERg=="}}]}`},
		"no files":                {model.Quirks{}, []model.Block{pdf}, `{"role":"user","content":"[A document was left out: this endpoint does not take it.]"}`},
		"text":                    {model.Quirks{}, []model.Block{plain}, `{"role":"user","content":"Document: T\n\nall of it"}`},
		"PDF of a tool":           {model.Quirks{Files: true}, []model.Block{result}, `{"role":"tool","tool_call_id":"c","content":"a\n[document]"},{"role":"user","content":[{"type":"file","file":{"filename":"document.pdf","file_data":"data:application/pdf;base64,JVBERg=="}}]}`},
		"PDF of a tool, no files": {model.Quirks{}, []model.Block{result}, `{"role":"tool","tool_call_id":"c","content":"a\n[document]"},{"role":"user","content":"[A document was left out: this endpoint does not take it.]"}`},
	} {
		codec := model.NewOpenAI(model.OpenAIConfig{Config: model.Config{URL: "http://a.test/v1"}, Quirks: c.quirks}).Codec()
		got := codec.Message(&model.Message{Role: model.User, Blocks: c.blocks})
		assert.JSONEq(t, "["+c.want+"]", "["+string(got)+"]", name)
	}
	own := model.NewAnthropic(model.AnthropicConfig{}).Codec()
	assert.JSONEq(t, `{"role":"user","content":[{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERg=="}}]}`,
		string(own.Message(&model.Message{Role: model.User, Blocks: []model.Block{pdf}})), "what another API has said of it is not sent")
}

func TestWhatEndpointsTake(t *testing.T) {
	t.Parallel()
	takes := func(c model.Codec, kind model.BlockKind) bool {
		return c.(interface {
			Takes(kind model.BlockKind) bool
		}).Takes(kind)
	}
	for name, want := range map[string][2]bool{ // images, documents
		"anthropic/claude-sonnet-4-5": {true, true}, "openai/gpt-5": {true, true}, "https://openrouter.ai/api/v1#x": {true, true},
		"http://localhost:11434/v1#qwen3:8b": {true, false}, "https://api.deepseek.com/v1#deepseek-chat": {false, false},
	} {
		ref, err := model.ParseRef(name)
		assert.NoError(t, err)
		c := model.Open(ref, model.Config{}, nil).Codec()
		assert.Equal(t, want, [2]bool{takes(c, model.Image), takes(c, model.Document)}, name)
		assert.True(t, takes(c, model.Text))
	}
	p := model.DefaultProfiles()
	assert.True(t, p.Model("qwen3:8b").TextOnly)
	assert.False(t, p.Model("qwen3-vl:8b").TextOnly)
	assert.False(t, p.Model("gpt-5").TextOnly)
}

package embedded

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
)

func pngOf(t *testing.T, width, height int) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, image.NewGray(image.Rect(0, 0, width, height))))
	return b.String()
}

// Read shows a file that the model takes. Of another one the call fails, and says why: in the
// conversation it would have each request refused.
func TestFilesThatAModelTakes(t *testing.T) {
	t.Parallel()
	local := model.NewOpenAI(model.OpenAIConfig{Config: model.Config{URL: "http://a.test/v1"}})
	blind := model.NewOpenAI(model.OpenAIConfig{Config: model.Config{URL: "http://a.test/v1"}, Quirks: model.Quirks{NoImages: true}})
	files := model.NewOpenAI(model.OpenAIConfig{Config: model.Config{URL: "http://a.test/v1"}, Quirks: model.Quirks{Files: true}})
	for _, c := range []struct {
		m          model.Model
		name, file string
		want       string // of the error; "": it is shown
	}{
		{model.NewAnthropic(model.AnthropicConfig{}), "claude-sonnet-4-5", "a.png", ""},
		{model.NewAnthropic(model.AnthropicConfig{}), "claude-sonnet-4-5", "a.pdf", ""},
		{model.NewAnthropic(model.AnthropicConfig{}), "claude-sonnet-4-5", "wide.png", "8001 × 1 pixels"},
		{model.NewAnthropic(model.AnthropicConfig{}), "claude-sonnet-4-5", "large.png", "images of at most 3840KB can be shown"},
		{local, "m", "a.png", ""},
		{local, "m", "a.pdf", "This model does not take PDF files"},
		{local, "words-only", "a.png", "This model does not take images"},
		{blind, "m", "a.png", "This model does not take images"},
		{files, "m", "a.pdf", ""},
		{files, "words-only", "a.pdf", "This model does not take PDF files"},
	} {
		h := handsIn(t, "a.png", pngOf(t, 1, 1), "wide.png", pngOf(t, 8001, 1), "a.pdf", "%PDF-1.4\n", "large.png", pngOf(t, 1, 1)+strings.Repeat("x", 4<<20))
		h.model, h.name = c.m, c.name
		h.textOnly = func(name string) bool { return name == "words-only" }
		r := h.readFile(t.Context(), nil, agent.Object{"file_path": c.file})
		if c.want == "" {
			assert.False(t, r.IsError, "%s: %v", c.file, r.Content)
			continue
		}
		assert.True(t, r.IsError, "%s for %s", c.file, c.name)
		assert.Contains(t, r.Content, c.want)
		assert.False(t, h.hasRead(filepath.Join(h.root, c.file)), "the model does not know it")
	}
	h := handsIn(t)
	require.NoError(t, os.WriteFile(filepath.Join(h.root, "a.pdf"), append([]byte("%PDF-1.4\n"), make([]byte, maxPDF)...), 0o600))
	assert.Contains(t, h.readFile(t.Context(), nil, agent.Object{"file_path": "a.pdf"}).Content, "PDF files of at most 20480KB can be shown")
}

// If a model reads text alone, a text stands in place of images and documents of the user and of
// tools. The text of a document stays.
func TestWhatDoesNotFit(t *testing.T) {
	t.Parallel()
	l := &log{codec: model.NewAnthropic(model.AnthropicConfig{}).Codec(), takes: func(model.BlockKind) bool { return false }}
	png := `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + base64.StdEncoding.EncodeToString([]byte(pngOf(t, 1, 1))) + `"}}`
	const (
		note = `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"x"},"title":"T"}`
		pdf  = `{"type":"document","source":{"type":"base64","media_type":"application/pdf","data":"JVBERi0xLjQK"}}`
	)
	l.said(blocksOf(json.RawMessage(`[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"a"},` + png + `,` + note + `]},` + png + `,` + pdf + `,` + note + `,{"type":"text","text":"see"}]`)))
	assert.JSONEq(t, `{"role":"user","content":[
		{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"a"},{"type":"text","text":"[An image was left out: this model does not take it.]"},`+note+`]},
		{"type":"text","text":"[An image was left out: this model does not take it.]"},{"type":"text","text":"[A document was left out: this model does not take it.]"},`+note+`,{"type":"text","text":"see"}]}`, string(l.question()))
	all := &log{codec: l.codec}
	all.said(blocksOf(json.RawMessage(`[` + png + `,` + pdf + `]`)))
	assert.JSONEq(t, `{"role":"user","content":[`+png+`,`+pdf+`]}`, string(all.question()))
}

// The tokens of a document are not those of its base64.
func TestWhatADocumentWeighs(t *testing.T) {
	t.Parallel()
	data := strings.Repeat("A", 1<<20)
	pdf := model.Block{Kind: model.Document, Content: json.RawMessage(`{"type":"base64","media_type":"application/pdf","data":"` + data + `"}`)}
	plain := model.Block{Kind: model.Document, Content: json.RawMessage(`{"type":"text","media_type":"text/plain","data":"` + data + `"}`)}
	assert.Equal(t, imageSize, weight([]model.Block{pdf}))
	assert.Greater(t, weight([]model.Block{plain}), 1<<20)
}

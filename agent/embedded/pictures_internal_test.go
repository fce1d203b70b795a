package embedded

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
)

// A block that the API refuses has each later request refused, so a text stands in its place: in the
// user's message and in a tool's result, when it comes and when the session is resumed.
func TestImagesThatTheAPIRefuses(t *testing.T) {
	t.Parallel()
	encode := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	var b bytes.Buffer
	require.NoError(t, jpeg.Encode(&b, image.NewGray(image.Rect(0, 0, 1, 1)), nil))
	photo := b.String()
	b.Reset()
	require.NoError(t, gif.Encode(&b, image.NewPaletted(image.Rect(0, 0, 1, 1), color.Palette{color.Black}), nil))
	moving := b.String()
	dot := pngOf(t, 1, 2)
	of := func(media, data string) string {
		return `{"type":"base64","media_type":"` + media + `","data":"` + data + `"}`
	}
	png := func(data string) string { return of("image/png", data) }
	pdf := func(data string) string { return of("application/pdf", data) }
	for name, c := range map[string]struct {
		kind, source string
		want         string // of the text; a source in place of this one; "": the block stays
	}{
		"png":            {"image", png(encode(dot)), ""},
		"jpeg":           {"image", of("image/jpeg", encode(photo)), ""},
		"gif":            {"image", of("image/gif", encode(moving)), ""},
		"webp":           {"image", of("image/webp", encode("RIFF\x20\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x00\x00\x00\x00\x09\x00\x00\x09\x00\x00")), ""},
		"address":        {"image", `{"type":"url","url":"https://a.test/a.png"}`, ""},
		"pdf":            {"document", pdf(encode("%PDF-1.4\n")), ""},
		"text":           {"document", `{"type":"text","media_type":"text/plain","data":"x"}`, ""},
		"other kind":     {"image", png(encode(photo)), of("image/jpeg", encode(photo))},
		"spaces":         {"image", png(encode(dot)[:8] + `\n ` + encode(dot)[8:] + `\n`), png(encode(dot))},
		"no image":       {"image", png("AAAA"), "[An image was left out: it is no PNG, JPEG, GIF or WebP.]"},
		"bmp":            {"image", of("image/bmp", encode("BM"+strings.Repeat("\x00", 60))), "it is no PNG"},
		"header cut off": {"image", png(encode(dot[:20])), "its header says no size"},
		"webp of 0":      {"image", of("image/webp", encode("RIFF\x20\x00\x00\x00WEBPVP8 \x0a\x00\x00\x00\x00\x00\x00\x9d\x01\x2a\x00\x00\x00\x00")), "its header says no size"},
		"padding only":   {"image", png("=A="), "its data is not in base64"},
		"padding within": {"image", png("iVA=" + encode(dot)), "its data is not in base64"},
		"damaged":        {"image", png(encode(dot)[:len(encode(dot))-8] + "!" + encode(dot)[len(encode(dot))-7:]), "its data is not in base64"},
		"cut off":        {"image", png(encode(dot)[:len(encode(dot))-3]), "its data is not in base64"},
		"empty":          {"image", png(""), "it is empty"},
		"wide":           {"image", png(encode(pngOf(t, 8001, 1))), "it has 8001 × 1 pixels, and at most 8000 on a side can be shown"},
		"no source":      {"image", `null`, "it has no source"},
		"bad source":     {"image", `"x"`, "it has no source"},
		"no pdf":         {"document", pdf(encode("no")), "[A document was left out: it is no PDF file.]"},
	} {
		block := `{"type":"` + c.kind + `","source":` + c.source + `}`
		l := &log{codec: model.NewAnthropic(model.AnthropicConfig{}).Codec()}
		l.fold([]byte(`{"type":"user","uuid":"u","message":{"role":"user","content":[` + block + `,{"type":"tool_result","tool_use_id":"c","content":[` + block + `,{"type":"text","text":"a"}]}]}}`))
		var got struct {
			Content []struct {
				Type, Text string
				Source     json.RawMessage
				Content    []struct {
					Type, Text string
					Source     json.RawMessage
				}
			}
		}
		require.NoError(t, json.Unmarshal(l.question(), &got), name)
		require.Len(t, got.Content, 2, name)
		require.Len(t, got.Content[1].Content, 2, name)
		its, result := got.Content[0], got.Content[1].Content[0]
		if strings.HasPrefix(c.want, "{") || c.want == "" {
			want := c.want
			if want == "" {
				want = c.source
			}
			assert.Equal(t, c.kind, its.Type, "%s: %s", name, its.Text)
			assert.Equal(t, c.kind, result.Type, "%s: %s", name, result.Text)
			assert.JSONEq(t, want, string(its.Source), name)
			assert.JSONEq(t, want, string(result.Source), name)
			continue
		}
		assert.Equal(t, "text", its.Type, name)
		assert.Contains(t, its.Text, c.want, name)
		assert.Equal(t, its.Text, result.Text, name)
	}
	for kind, most := range map[model.BlockKind]int{model.Image: maxImage, model.Document: maxPDF} {
		e := inlined{Type: "base64", Data: encode(strings.Repeat("x", most+1))}
		assert.Contains(t, e.refused(kind), "KB can be shown")
		e.Data = encode(dot + strings.Repeat("x", most-len(dot)))
		assert.NotContains(t, e.refused(kind), "KB can be shown")
	}
}

// Tools do not write such blocks in the first place: other agents resume a session, too.
func TestToolsDoNotMakeImagesThatTheAPIRefuses(t *testing.T) {
	t.Parallel()
	h := handsIn(t)
	large := base64.StdEncoding.EncodeToString([]byte(pngOf(t, 1, 1) + strings.Repeat("x", maxImage)))
	for _, data := range []string{"AAAA", large} {
		r, err := h.blocksMCP(t.Context(), "srv", []mcpBlock{{Type: "image", MIMEType: "image/png", Data: data}})
		require.NoError(t, err)
		blocks := r.Content.([]any)
		require.Len(t, blocks, 2)
		assert.Contains(t, blocks[0].(agent.Object)["text"], "[An image was left out: it ")
		path := strings.TrimSuffix(strings.TrimPrefix(blocks[1].(agent.Object)["text"].(string), "[Image: source: "), "]")
		assert.FileExists(t, path, "the model can still read it with a command")
	}
	r := notebookResult("n.ipynb", []byte(`{"cells":[{"cell_type":"code","source":"x","outputs":[{"output_type":"display_data","data":{"image/png":"AAAA"}}]}]}`))
	blocks := r.Content.([]any)
	require.Len(t, blocks, 2)
	assert.Equal(t, agent.Object{"type": "text", "text": "[An image was left out: it is no PNG, JPEG, GIF or WebP.]"}, blocks[1])
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "page-1.jpg"), []byte(pngOf(t, 8001, 1)), 0o600))
	pages, problem, err := h.pageImages(dir, "a.pdf")
	require.NoError(t, err)
	assert.Empty(t, problem)
	assert.Contains(t, pages[0].(agent.Object)["text"], "8001 × 1 pixels")
	assert.Nil(t, h.picture("image/png", []byte("no image")))
}

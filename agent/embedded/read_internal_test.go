package embedded

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/agent"
)

func TestPages(t *testing.T) {
	t.Parallel()
	for pages, want := range map[string]string{
		"": "", "3": "", " 1 - 2 ": "", "1-20": "",
		"3-": `Page range "3-" exceeds maximum of 20 pages`, "1-21": `Page range "1-21" exceeds maximum of 20 pages`,
		"5-2": `Invalid pages parameter: "5-2".`, "0": `Invalid pages parameter: "0".`, "1,2": `Invalid pages parameter: "1,2".`, "-3": `Invalid pages parameter: "-3".`, "x": `Invalid pages parameter: "x".`,
	} {
		got := pagesProblem(pages)
		if want == "" {
			assert.Empty(t, got, pages)
			continue
		}
		assert.Contains(t, got, want)
	}
}

func TestBinaryNames(t *testing.T) {
	t.Parallel()
	for name, ending := range map[string]string{"a.exe": ".exe", "b.Zip": ".zip", "a.tar.gz": ".gz", ".zip": "", "d/a.sqlite3": ".sqlite3", "a.dat": ".dat"} {
		assert.Contains(t, binaryProblem(name), "a binary "+ending+" file", name)
	}
	for _, name := range []string{"data", "a.svg", "a.png", "a.pdf", "a.txt", "zip", "a.zip/b", "a.lock"} {
		assert.Empty(t, binaryProblem(name), name)
	}
}

// A notebook as Claude Code 2.1.329 shows it (observed).
func TestNotebook(t *testing.T) {
	t.Parallel()
	const png = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
	r := notebookResult("n.ipynb", []byte(`{"cells":[
		{"cell_type":"code","id":"c1","source":["print(1)\n","x"],"execution_count":1,"outputs":[
			{"output_type":"stream","name":"stdout","text":["1\n"]},
			{"output_type":"execute_result","data":{"text/plain":["'r'"],"image/png":"`+png+`\n"}},
			{"output_type":"error","ename":"E","evalue":"bad","traceback":["l1","l2"]}]},
		{"cell_type":"markdown","source":"# T"},{"cell_type":"raw","source":[]},
		{"cell_type":"code","source":[],"outputs":[],"execution_count":null}],
		"metadata":{"language_info":{"name":"R"}}}`))
	assert.Equal(t, []any{
		agent.Object{"type": "text", "text": "<cell id=\"c1\"><language>R</language>print(1)\nx</cell id=\"c1\">\n\n1\n\n\n'r'"},
		agent.Object{"type": "image", "source": agent.Object{"type": "base64", "data": png, "media_type": "image/png"}},
		agent.Object{"type": "text", "text": "\nE: bad\nl1\nl2\n<cell id=\"cell-1\"><cell_type>markdown</cell_type># T</cell id=\"cell-1\">\n<cell id=\"cell-2\"><cell_type>raw</cell_type></cell id=\"cell-2\">\n<cell id=\"cell-3\"><language>R</language></cell id=\"cell-3\">"},
	}, r.Content)
	cells := r.Structured.(agent.Object)["file"].(agent.Object)["cells"].([]any)
	assert.Equal(t, agent.Object{"cellType": "code", "source": "", "cell_id": "cell-3", "language": "R"}, cells[3])
	assert.Equal(t, []any{
		agent.Object{"output_type": "stream", "text": "1\n"},
		agent.Object{"output_type": "execute_result", "text": "'r'", "image": agent.Object{"image_data": png, "media_type": "image/png"}},
		agent.Object{"output_type": "error", "text": "E: bad\nl1\nl2"},
	}, cells[0].(agent.Object)["outputs"])
	for text, want := range map[string]string{
		`{}`: "not a valid Jupyter notebook", `[]`: "not a valid Jupyter notebook", `{"cells":[{"cell_type":"code"}]}`: "not a valid Jupyter notebook", `{"cells":[{"source":5}]}`: "not a valid Jupyter notebook",
		``: "JSON Parse error: Unexpected EOF", `{"cells": [1`: "JSON Parse error: Expected ']'", `{not json`: "JSON Parse error: Expected '}'",
	} {
		r := notebookResult("n.ipynb", []byte(text))
		assert.True(t, r.IsError, text)
		assert.Contains(t, r.Content, want, text)
	}
	assert.Equal(t, "(Read completed with no output)", notebookResult("n.ipynb", []byte(`{"cells":[]}`)).Content)
}

func TestPDF(t *testing.T) {
	t.Parallel()
	h := handsIn(t, "a.PDF", "%PDF-1.4\n", "e.pdf", "", "x.pdf", "no")
	r := h.readFile(t.Context(), nil, agent.Object{"file_path": "a.PDF"})
	blocks := r.Content.([]any)
	assert.Equal(t, "PDF file read: "+h.root+"/a.PDF (9 bytes)", blocks[0].(agent.Object)["text"])
	assert.Equal(t, "document", blocks[1].(agent.Object)["type"])
	assert.Contains(t, h.readFile(t.Context(), nil, agent.Object{"file_path": "e.pdf"}).Content, "PDF file is empty")
	assert.Contains(t, h.readFile(t.Context(), nil, agent.Object{"file_path": "x.pdf"}).Content, "missing %PDF- header")
	assert.Contains(t, h.readFile(t.Context(), nil, agent.Object{"file_path": "a.PDF", "pages": "1"}).Content, "pdftoppm is not installed")
}

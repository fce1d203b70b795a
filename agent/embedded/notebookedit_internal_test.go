package embedded

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
)

// Notebooks after edits that the recordings do not have: what an edit is not about stays as
// it is, but for white space.
func TestNotebookEdits(t *testing.T) {
	t.Parallel()
	const old = `{"cells":[{"cell_type":"markdown","source":"# T"},{"cell_type":"code","execution_count":3,"outputs":[{"x":1}],"source":["a"]}],"metadata":{"n":12345678901234567890,"z":"\u00e9<>"},"nbformat":4,"nbformat_minor":4}`
	cellAt := func(book string, i int) string {
		_, cells, err := notebookParts(book)
		require.NoError(t, err)
		b, err := cells[i].object()
		require.NoError(t, err)
		return string(b)
	}
	for name, c := range map[string]struct {
		text string
		in   agent.Object
		cell int
		want string
	}{
		"markdown becomes code": {old, agent.Object{"cell_id": "cell-0", "cell_type": "code", "new_source": "x"}, 0, `{"cell_type":"code","source":"x","execution_count":null,"outputs":[]}`},
		"no ids before 4.5":     {old, agent.Object{"cell_id": "cell-1", "cell_type": "markdown", "edit_mode": "insert", "new_source": "<b>"}, 2, `{"cell_type":"markdown","source":"<b>","metadata":{}}`},
		"an old format":         {strings.Replace(old, `,"nbformat":4,"nbformat_minor":4`, "", 1), agent.Object{"cell_type": "code", "edit_mode": "insert", "new_source": ""}, 0, `{"cell_type":"code","source":"","metadata":{},"execution_count":null,"outputs":[]}`},
		"an id like an index":   {strings.Replace(old, `{"cell_type":"code"`, `{"id":"cell-0","cell_type":"code"`, 1), agent.Object{"cell_id": "cell-0", "new_source": "x"}, 1, `{"id":"cell-0","cell_type":"code","execution_count":null,"outputs":[],"source":"x"}`},
	} {
		h := handsIn(t, "n.ipynb", c.text+"\n")
		c.in["notebook_path"] = "n.ipynb"
		require.False(t, h.readFile(t.Context(), nil, agent.Object{"file_path": "n.ipynb"}).IsError)
		require.Empty(t, notebookEdit().check(h, c.in), name)
		r := h.editCell(nil, c.in)
		require.False(t, r.IsError, "%s: %v", name, r.Content)
		got, err := os.ReadFile(filepath.Join(h.root, "n.ipynb"))
		require.NoError(t, err)
		assert.Equal(t, c.want, cellAt(string(got), c.cell), name)
		assert.Contains(t, string(got), `"n": 12345678901234567890,`, "%s: a number that is no float", name)
		assert.Contains(t, string(got), `"z": "\u00e9<>"`, name)
		assert.True(t, strings.HasSuffix(string(got), "\n}\n"), name)
		assert.Empty(t, notebookEdit().check(h, agent.Object{"notebook_path": "n.ipynb", "cell_id": "cell-0", "new_source": "y"}), "%s: the model knows what it wrote", name)
	}
}

// The form of the file stays: its line ends, its mark, and whether it ends with a line end.
func TestNotebookEditKeepsTheForm(t *testing.T) {
	t.Parallel()
	const book = "{\n \"cells\": [\n  {\n   \"cell_type\": \"raw\",\n   \"source\": \"%\"\n  }\n ],\n \"nbformat\": 4\n}"
	for _, form := range []string{"", "\n", bom, bom + "\n"} {
		for _, crlf := range []bool{false, true} {
			write := func(source string) string {
				text := strings.Replace(book, "%", source, 1)
				mark, end := "", strings.TrimPrefix(form, bom)
				if end != form {
					mark = bom
				}
				text = mark + text + end
				if crlf {
					text = strings.ReplaceAll(text, "\n", "\r\n")
				}
				return text
			}
			h := handsIn(t, "n.ipynb", write("a"))
			in := agent.Object{"notebook_path": "n.ipynb", "cell_id": "cell-0", "new_source": "b"}
			h.saw(filepath.Join(h.root, "n.ipynb"), []byte(write("a")))
			require.Empty(t, notebookEdit().check(h, in))
			require.False(t, h.editCell(nil, in).IsError)
			got, err := os.ReadFile(filepath.Join(h.root, "n.ipynb"))
			require.NoError(t, err)
			assert.Equal(t, write("b"), string(got), "%q, CRLF: %v", form, crlf)
		}
	}
}

func TestNotebooksThatAreNotEdited(t *testing.T) {
	t.Parallel()
	const book = `{"cells":[{"cell_type":"code","source":""}]}`
	for name, c := range map[string]struct{ text, id, want string }{
		"no cell named":     {book, "", "Cell ID must be specified"},
		"an index too high": {book, "cell-99999999999999999999", "Cell with index 99999999999999999999 does not exist"},
		"no cells":          {`{"cells":{}}`, "cell-0", "not a valid Jupyter notebook"},
		"a cell is a text":  {`{"cells":["x"]}`, "cell-0", "not a valid Jupyter notebook"},
		"a list":            {`[]`, "cell-0", "not a valid Jupyter notebook"},
		"half of it":        {`{"cells":[`, "cell-0", "not valid JSON"},
		"another encoding":  {"\xff" + book, "cell-0", "not valid UTF-8"},
	} {
		h := handsIn(t, "n.ipynb", c.text)
		path := filepath.Join(h.root, "n.ipynb")
		h.saw(path, []byte(c.text))
		in := agent.Object{"notebook_path": "n.ipynb", "cell_id": c.id, "new_source": "x"}
		assert.Contains(t, notebookEdit().check(h, in), c.want, name)
		assert.True(t, h.editCell(nil, in).IsError, name)
		got, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, c.text, string(got), name)
	}
	h := handsIn(t, "n.ipynb", book)
	path := filepath.Join(h.root, "n.ipynb")
	h.saw(path, []byte(book))
	require.NoError(t, os.Symlink(path, filepath.Join(h.root, "link.ipynb")))
	r := h.editCell(nil, agent.Object{"notebook_path": "link.ipynb", "cell_id": "cell-0", "new_source": "x"})
	assert.Contains(t, r.Content, "it is a symbolic link")
	require.NoError(t, os.Remove(path))
	assert.Contains(t, notebookEdit().check(h, agent.Object{"notebook_path": "n.ipynb", "cell_id": "cell-0", "new_source": "x"}), "File does not exist")
}

package embedded

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/model"
)

// counting is a model that says how many tokens there are.
type counting struct {
	model.Model
	tokens int
	err    error
	asked  []int // the lengths of the texts
}

func (c *counting) CountTokens(_ context.Context, name, text string) (int, error) {
	if name != "m" {
		return 0, errors.New("another model")
	}
	c.asked = append(c.asked, len(text))
	return c.tokens, c.err
}

func TestReadByTokens(t *testing.T) {
	t.Parallel()
	lines := strings.Repeat("0123456789\n", 4000)
	for name, c := range map[string]struct {
		text   string
		in     agent.Object
		tokens int
		err    error
		asked  int
		head   string // of the result
		lines  int
		note   string
	}{
		"a small file":     {strings.Repeat("x", 25000), nil, 1 << 20, nil, 0, "1\tx", 1, ""},
		"few tokens":       {lines, nil, 25000, nil, 1, "1\t0123456789\n", 4001, ""},
		"too many":         {lines, nil, 50000, nil, 1, "1\t0123456789\n", 1700, "showing lines 1-1700 of 4001 total (50000 tokens, cap 25000). Call Read with offset=1701 limit=1700 for the next page"},
		"the next page":    {lines, agent.Object{"offset": 1001.0}, 42500, nil, 1, "1001\t0123456789\n", 1500, "showing lines 1001-2500 of 4001 total (42500 tokens, cap 25000). Call Read with offset=2501 limit=1500"},
		"from line 0":      {lines, agent.Object{"offset": 0.0}, 50000, nil, 1, "0\t0123456789\n", 1700, "showing lines 1-1700 of 4001 total (50000 tokens, cap 25000). Call Read with offset=1701"},
		"one line":         {strings.Repeat("é", 30000), nil, 50000, nil, 1, "1\té", 1, "showing the first 12750 of 30000 characters of line 1 (50000 tokens, cap 25000)"},
		"a long line":      {strings.Repeat("é", 30000) + "\nx\n", nil, 1 << 20, nil, 1, "1\té", 1, "characters of line 1 (1048576 tokens"},
		"a wanted part":    {lines, agent.Object{"limit": 3000.0}, 25001, nil, 1, "File content (25001 tokens) exceeds maximum allowed tokens (25000). Use offset and limit", 0, ""},
		"all the same":     {lines, agent.Object{"allow_large": true}, 1 << 20, nil, 0, "1\t0123456789\n", 4001, ""},
		"it is not known":  {lines, nil, 0, errors.New("404"), 1, "1\t0123456789\n", 4001, ""},
		"the part is less": {lines, agent.Object{"limit": 10.0}, 1 << 20, nil, 0, "1\t0123456789\n", 10, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := handsIn(t, "a.txt", c.text)
			m := &counting{tokens: c.tokens, err: c.err}
			h.model = m
			h.serve("m")
			in := agent.Object{"file_path": "a.txt"}
			maps.Copy(in, c.in)
			r := h.readFile(t.Context(), nil, in)
			assert.Len(t, m.asked, c.asked)
			assert.True(t, strings.HasPrefix(r.Content.(string), c.head), "%.100s", r.Content)
			assert.Equal(t, c.lines == 0, r.IsError)
			if c.lines == 0 {
				return
			}
			assert.Contains(t, r.Note, c.note)
			file := r.Structured.(agent.Object)["file"].(agent.Object)
			assert.Equal(t, c.lines, file["numLines"])
			_, truncated := file["truncatedByTokenCap"]
			assert.Equal(t, c.note != "", truncated)
			assert.Equal(t, c.note != "", r.Note != "")
		})
	}
}

// An endpoint that does not count, or says nothing, is asked once; one that is busy again.
func TestAnEndpointThatDoesNotCount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err   error
		asked int
	}{
		"no such API":      {errors.ErrUnsupported, 1},
		"no such endpoint": {&model.Error{Class: model.Invalid, Status: 404}, 1},
		"silence":          {&model.Error{Class: model.Network, Err: model.ErrSilent}, 1},
		"busy":             {&model.Error{Class: model.Overload, Status: 529}, 3},
		"an interrupt":     {context.Canceled, 3},
	} {
		h := handsIn(t, "a.txt", strings.Repeat("x", 30000))
		m := &counting{err: c.err}
		h.model = m
		h.serve("m")
		for range 3 {
			assert.False(t, h.readFile(t.Context(), nil, agent.Object{"file_path": "a.txt"}).IsError)
		}
		assert.Len(t, m.asked, c.asked, name)
	}
}

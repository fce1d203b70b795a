package sse_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/base/sse"
)

// decode feeds a stream in chunks of that size.
func decode(text string, chunk int) []sse.Event {
	var d sse.Decoder
	var all []sse.Event
	for b := []byte(text); len(b) > 0; {
		n := min(chunk, len(b))
		d.Feed(bytes.Clone(b[:n]), func(e *sse.Event) bool {
			e.Data = bytes.Clone(e.Data)
			all = append(all, *e)
			return true
		})
		b = b[n:]
	}
	return all
}

func TestServerSentEvents(t *testing.T) {
	t.Parallel()
	event := func(id, name, data string) sse.Event { return sse.Event{ID: id, Name: name, Data: []byte(data)} }
	for name, c := range map[string]struct {
		stream string
		want   []sse.Event
	}{
		"plain":                {"id: 1\nevent: a\ndata: x\n\n", []sse.Event{event("1", "a", "x")}},
		"CRLF":                 {"id: 1\r\nevent: a\r\ndata: x\r\n\r\n", []sse.Event{event("1", "a", "x")}},
		"CR":                   {"event: a\rdata: x\r\rdata: y\r\r", []sse.Event{event("", "a", "x"), event("", "", "y")}},
		"data lines":           {"data: a\ndata: b\ndata\n\n", []sse.Event{event("", "", "a\nb\n")}},
		"no space":             {"data:x\n\n", []sse.Event{event("", "", "x")}},
		"two spaces":           {"data:  x\n\n", []sse.Event{event("", "", " x")}},
		"comment":              {": hi\n\n: ho\ndata: x\n\n", []sse.Event{event("", "", "x")}},
		"unknown field":        {"other: 1\ndata: x\n\n", []sse.Event{event("", "", "x")}},
		"id only":              {"id: 1\n\nretry: 3\n\ndata: x\n\n", []sse.Event{event("", "", "x")}},
		"an id with a NUL":     {"id: a\x00\ndata: x\n\n", []sse.Event{event("", "", "x")}},
		"name only":            {"event: a\n\n", []sse.Event{{Name: "a"}}},
		"not complete":         {"data: x\n\ndata: y\n", []sse.Event{event("", "", "x")}},
		"byte order mark":      {"\xef\xbb\xbfdata: x\n\n", []sse.Event{event("", "", "x")}},
		"a character in parts": {"data: é日\n\n", []sse.Event{event("", "", "é日")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for chunk := 1; chunk <= len(c.stream); chunk++ {
				got := decode(c.stream, chunk)
				if assert.Len(t, got, len(c.want), "chunks of %d", chunk) {
					for i := range got {
						assert.Equal(t, fmt.Sprintf("%+v", c.want[i]), fmt.Sprintf("%+v", got[i]), "chunks of %d", chunk)
					}
				}
			}
		})
	}
}

func TestLongLinesAndEvents(t *testing.T) {
	t.Parallel()
	line := "data: " + strings.Repeat("a", sse.DefaultMaxLine-10) + "\n"
	for name, c := range map[string]struct {
		stream  string
		skipped []bool
	}{
		"a long line":               {"data: x\ndata: " + strings.Repeat("a", sse.DefaultMaxLine) + "\n\ndata: y\n\n", []bool{true, false}},
		"a line that just fits":     {line + "\ndata: y\n\n", []bool{false, false}},
		"a long event":              {strings.Repeat(line, 5) + "\ndata: y\n\n", []bool{true, false}},
		"a long event of one field": {"event: " + strings.Repeat("a", sse.DefaultMaxLine) + "\ndata: x\n\n", []bool{true}},
		"a long comment":            {":" + strings.Repeat("a", sse.DefaultMaxLine+1) + "\n\ndata: y\n\n", []bool{true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, chunk := range []int{1 << 10, 32 << 10, 8 << 20} {
				var got []bool
				for _, e := range decode(c.stream, chunk) {
					got = append(got, e.Skipped > 0)
					assert.True(t, e.Skipped == 0 || e.Skipped > sse.DefaultMaxLine && e.Data == nil, "what is skipped is not kept")
				}
				assert.Equal(t, c.skipped, got)
			}
		})
	}
}

// FuzzServerSentEvents: whatever comes, and in whatever chunks, gives the same events, within the limits.
func FuzzServerSentEvents(f *testing.F) {
	for _, s := range []string{"", "id: 1\nevent: a\ndata: x\n\n", "data\r\r\ndata: é\n\n", "\xef\xbb\xbf: c\n\n", "id:\x00\nretry: 1\n\n\n"} {
		f.Add(s, 1)
		f.Add(s, 3)
	}
	f.Fuzz(func(t *testing.T, stream string, chunk int) {
		whole := decode(stream, len(stream))
		parts := decode(stream, 1+max(chunk, -chunk-1)%64)
		assert.Equal(t, fmt.Sprintf("%+v", whole), fmt.Sprintf("%+v", parts))
		for _, e := range whole {
			assert.LessOrEqual(t, len(e.Data), sse.DefaultMaxEvent)
			assert.NotContains(t, e.Name+e.ID, "\n")
		}
	})
}

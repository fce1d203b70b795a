package transcript_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/kernel/sim"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/transcript"
)

// lines reads all lines of a text.
func lines(t testing.TB, r io.Reader, maxLine int) []*transcript.Line {
	t.Helper()
	d := transcript.NewDecoder(r)
	d.MaxLine = maxLine
	var out []*transcript.Line
	for l, err := range d.Lines() {
		require.NoError(t, err)
		out = append(out, l.Clone())
	}
	return out
}

func TestDecoderReportsDamage(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, content string
		damage        []transcript.Damage
	}{
		{"empty", "", nil},
		{"whole", "{}\n{}\n", []transcript.Damage{"", ""}},
		{"no newline at the end", "{}\n{}", []transcript.Damage{"", ""}},
		{"torn", `{}` + "\n" + `{"type":"us`, []transcript.Damage{"", transcript.DamageTorn}},
		{"garbage in the middle", "{}\nnot json\n{}\n", []transcript.Damage{"", transcript.DamageGarbage, ""}},
		{"glued", `{"a":1}{"b":2}` + "\n", []transcript.Damage{transcript.DamageGarbage}},
		{"an array is no line", "[]\n", []transcript.Damage{transcript.DamageGarbage}},
		{"zeros after a crash", "{}\n\x00\x00\x00\n", []transcript.Damage{"", transcript.DamageGarbage}},
		{"zeros in a string", "{\"a\":\"\x00\"}\n", []transcript.Damage{transcript.DamageGarbage}},
		{"blank", "{}\n\n  \n{}\n", []transcript.Damage{"", transcript.DamageBlank, transcript.DamageBlank, ""}},
		{"carriage returns", "{}\r\n{}\r\n", []transcript.Damage{"", ""}},
		{"byte order mark", "\ufeff{}\n{}\n", []transcript.Damage{"", ""}},
		{"bytes that are no UTF-8", "{\"a\":\"\xff\"}\n", []transcript.Damage{""}},
		{"too long", `{"a":"` + strings.Repeat("x", 100<<10) + `"}` + "\n{}\n", []transcript.Damage{transcript.DamageTooLong, ""}},
		{"too long and torn", "{}\n" + `{"a":"` + strings.Repeat("x", 300<<10), []transcript.Damage{"", transcript.DamageTooLong}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			for _, r := range []io.Reader{strings.NewReader(c.content), iotest.OneByteReader(strings.NewReader(c.content))} {
				var got []transcript.Damage
				var next int64
				for i, l := range lines(t, r, 90<<10) {
					got = append(got, l.Damage)
					assert.Equal(t, i+1, l.Number)
					if l.Damage != transcript.DamageTooLong {
						at := c.content[l.Offset : l.Offset+int64(len(l.Raw))]
						assert.Equal(t, at, string(l.Raw), "the place of line %d", l.Number)
					}
					assert.GreaterOrEqual(t, l.Offset, next)
					next = l.Offset
				}
				assert.Equal(t, c.damage, got)
			}
		})
	}
}

func TestDecoderReturnsTheReadersError(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	d := transcript.NewDecoder(io.MultiReader(strings.NewReader("{}\n{"), iotest.ErrReader(broken)))
	_, err := d.Next()
	require.NoError(t, err)
	_, err = d.Next()
	require.ErrorIs(t, err, broken)
}

// TestDecoderIsBounded reads a gigabyte of lines, one of them a quarter of it.
func TestDecoderIsBounded(t *testing.T) { // alone: it measures memory
	if testing.Short() {
		t.Skip("reads a gigabyte")
	}
	line := `{"type":"user","uuid":"x","message":{"role":"user","content":"` + strings.Repeat("y", 1<<20) + `"}}` + "\n"
	var parts []io.Reader
	all := 768
	if sim.Raced() {
		all = 192
	}
	for i := range all {
		if i == all/2 {
			parts = append(parts, io.LimitReader(endless{}, int64(all/3)<<20), strings.NewReader("\n"))
		}
		parts = append(parts, strings.NewReader(line))
	}
	d := transcript.NewDecoder(io.MultiReader(parts...))
	d.MaxLine = 4 << 20
	n, tooLong := 0, 0
	var after uint64
	before := heap()
	for l, err := range d.Lines() {
		require.NoError(t, err)
		n++
		if l.Damage == transcript.DamageTooLong {
			tooLong++
			assert.LessOrEqual(t, len(l.Raw), 4096)
		}
		if n%30 == 0 {
			after = max(after, heap())
		}
	}
	assert.Equal(t, all+1, n)
	assert.Equal(t, 1, tooLong)
	assert.Less(t, int64(after)-int64(before), int64(64<<20), "the memory of the decoder")
}

// endless is a stream of one byte without end.
type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'z'
	}
	return len(p), nil
}

// TestTypesOfTheCorpus keeps a recorded line of each type that was observed.
func TestTypesOfTheCorpus(t *testing.T) {
	t.Parallel()
	files, err := corpus()
	require.NoError(t, err)
	seen := map[string]int{}
	for _, f := range files {
		if !strings.HasSuffix(f.Path, ".jsonl") {
			continue
		}
		for _, l := range lines(t, bytes.NewReader(f.data), 0) {
			seen[l.Type()]++
		}
	}
	for _, typ := range []string{
		"user", "assistant", "attachment", "system", "queue-operation", "last-prompt", "custom-title", "ai-title",
		"agent-name", "tag", "summary", "mode", "relocated", "cost-state", "tools-used", "atis-latch",
		"file-history-snapshot", "file-history-delta",
	} {
		assert.NotZero(t, seen[typ], "no recorded line of type %s", typ)
	}
}

func TestCheckpoints(t *testing.T) {
	t.Parallel()
	raw := corpusData(t, "000000000006.jsonl")
	tr, err := transcript.Index(bytes.NewReader(raw), int64(len(raw)), transcript.Claude)
	require.NoError(t, err)
	points, err := tr.Checkpoints()
	require.NoError(t, err)
	require.Len(t, points, 5)
	assert.Equal(t, "66666666-0000-4000-8000-000000000001", points[0].MessageUUID)
	assert.Equal(t, []string{"ck.txt"}, points[0].Paths())
	assert.Nil(t, points[0].Files["ck.txt"].FileName, "the file did not exist")
	assert.Equal(t, "3b84326907c343d5@v3", *points[2].Files["ck.txt"].FileName)
}

// TestHistoricalView shows, for Qoder, what was before a compaction (23 messages in Qoder's
// SDK 1.0.39 on the same file).
func TestHistoricalView(t *testing.T) {
	t.Parallel()
	raw := corpusData(t, "000000000002.jsonl")
	tr, err := transcript.Index(bytes.NewReader(raw), int64(len(raw)), transcript.Qoder)
	require.NoError(t, err)
	count := func(o transcript.ShownOptions) (n int) {
		for m, err := range tr.Shown(o) {
			require.NoError(t, err)
			assert.False(t, o.Historical && strings.Contains(string(m.Line.Raw), `"isCompactSummary":true`))
			n++
		}
		return n
	}
	assert.Equal(t, 14, count(transcript.ShownOptions{}))
	assert.Equal(t, 23, count(transcript.ShownOptions{Historical: true}))
}

func TestActiveLeaf(t *testing.T) {
	t.Parallel()
	base := string(corpusData(t, "000000000030.jsonl")) // two branches: 4 and 6
	const session = "5e550000-0000-4000-8000-000000000030"
	for _, c := range []struct {
		name, line string
		last       string // the text of the last message
	}{
		{"none", "", "R"},
		{"the other branch", `{"type":"active-leaf","sessionId":"` + session + `","leafUuid":"1d000000-0000-4000-8000-000000000004"}`, "L"},
		{"the older names", `{"type":"active-leaf","session_id":"` + session + `","leaf_uuid":"1d000000-0000-4000-8000-000000000004"}`, "L"},
		{"null", `{"type":"active-leaf","sessionId":"` + session + `","leafUuid":null}`, ""},
		{"not a string", `{"type":"active-leaf","sessionId":"` + session + `","leafUuid":7}`, "R"},
		{"unknown", `{"type":"active-leaf","sessionId":"` + session + `","leafUuid":"1d000000-0000-4000-8000-000000000099"}`, "R"},
		{"of another session", `{"type":"active-leaf","sessionId":"other","leafUuid":"1d000000-0000-4000-8000-000000000004"}`, "R"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			raw := base + c.line + "\n"
			tr, err := transcript.Index(strings.NewReader(raw), int64(len(raw)), transcript.Qoder)
			require.NoError(t, err)
			last := ""
			for m, err := range tr.Shown(transcript.ShownOptions{}) {
				require.NoError(t, err)
				last = m.Text()
			}
			assert.Equal(t, c.last, last)
		})
	}
}

// FuzzDecoder checks that no byte is lost, that the scanner agrees with encoding/json
// about what is an object, and that no reader panics.
func FuzzDecoder(f *testing.F) {
	for _, s := range []string{
		"", "{}\n", "\ufeff{}\r\n\n{\"a\":[1,2.5e-3,true,null,\"\\u00e9\\n\"]}\n{\"type\":\"us", "{\"a\":1}{\"b\":2}\n", "{\"uuid\":\"x\",\"parentUuid\":\"x\",\"type\":\"user\"}",
	} {
		f.Add([]byte(s))
	}
	f.Add(corpusData(f, "000000000038.jsonl"))
	f.Add(corpusData(f, "000000000033.jsonl"))
	f.Add(corpusData(f, "000000000037.jsonl"))
	f.Fuzz(func(t *testing.T, data []byte) {
		var next int64
		for _, l := range lines(t, bytes.NewReader(data), 0) {
			if l.Offset < next {
				t.Fatalf("line %d begins at %d, before %d", l.Number, l.Offset, next)
			}
			skipped := bytes.Trim(data[next:l.Offset], "\r\n")
			if l.Number == 1 {
				skipped = bytes.TrimPrefix(skipped, []byte("\ufeff"))
			}
			if len(skipped) > 0 {
				t.Fatalf("bytes before line %d are lost: %q", l.Number, skipped)
			}
			next = l.Offset + int64(len(l.Raw))
			var object map[string]json.RawMessage
			valid := json.Valid(l.Raw) && json.Unmarshal(l.Raw, &object) == nil && object != nil
			if deep(l.Raw) {
				continue // encoding/json allows more
			}
			if valid != (l.Damage == "") {
				t.Fatalf("line %q: damage %q, valid %v", l.Raw, l.Damage, valid)
			}
			if !valid {
				continue
			}
			// JSON has no order of equal names here: the last counts, as in JavaScript.
			var typ string
			if protocol.Unmarshal(object["type"], &typ) == nil && object["type"] != nil && typ != l.Type() {
				t.Fatalf("line %q: type %q, want %q", l.Raw, l.Type(), typ)
			}
		}
		if rest := bytes.Trim(data[min(next, int64(len(data))):], "\r\n"); len(rest) > 0 && !bytes.Equal(rest, []byte("\ufeff")) {
			t.Fatalf("bytes at the end are lost: %q", rest)
		}
		for _, v := range []transcript.Vendor{transcript.Claude, transcript.Qoder} {
			tr, err := transcript.Index(bytes.NewReader(data), int64(len(data)), v)
			if err != nil {
				t.Fatal(err)
			}
			for m, err := range tr.Shown(transcript.ShownOptions{System: true, Historical: true}) {
				if err != nil {
					t.Fatal(err)
				}
				_, _ = m.Content()
			}
			if r, err := tr.Resumed(); err == nil {
				for _, err := range r.Messages() {
					if err != nil {
						t.Fatal(err)
					}
				}
			}
			_, _ = tr.Checkpoints()
		}
	})
}

// deep reports whether a line may be nested deeper than the scanner follows.
func deep(raw []byte) bool { return bytes.Count(raw, []byte("{"))+bytes.Count(raw, []byte("[")) > 1000 }

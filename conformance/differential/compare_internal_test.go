package differential

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

type object = map[string]any

// seen is an observation with a thing of each kind.
func seen() *Observation {
	result := func(id, content string) Item {
		return Item{"tool_result:" + id, object{"type": "tool_result", "tool_use_id": id, "content": content, "is_error": false}}
	}
	return &Observation{
		Frames: []Item{
			{"system/init", object{"type": "system", "tools": []any{"Bash", "Read"}, "cwd": "/w/proj"}},
			{"stream_event/message_start", object{"type": "stream_event"}},
			{"assistant/tool_use:a", object{"message": object{"content": []any{object{"type": "tool_use", "id": "a", "name": "Write", "input": object{"file_path": "/w/proj/a.txt"}}}}}},
			{"user/tool_result:a", object{"message": object{"content": []any{object{"tool_use_id": "a", "is_error": false, "content": "done"}}}}},
			{"user/tool_result:b", object{"message": object{"content": []any{object{"tool_use_id": "b", "is_error": true, "content": "Exit code 1"}}}}},
			{"assistant/text", object{"message": object{"content": []any{object{"type": "text", "text": "Done."}}}}},
		},
		Gates: []Item{
			{"hook PreToolUse", object{"hook": 0.0, "input": object{"tool_name": "Write"}}},
			{"ask:a", object{"tool_name": "Write", "input": object{"file_path": "/w/proj/a.txt"}, "decision_reason_type": "mode"}},
		},
		Reads: []Item{
			{"request", []Item{{"text", object{"role": "user", "text": "Go."}}, {"text", object{"role": "system", "text": "a hook's note"}}}},
			{"request", []Item{{"said tool_use", object{"name": "Write", "input": object{}}}, result("a", "done"), result("b", "Exit code 1")}},
		},
		Structured: []Item{{"result:a", object{"value": object{"type": "create"}, "meta": object{"permission": object{"decision": "accept"}}}}},
		Calls:      []Item{{"call:a", "called, PreToolUse, asked, result"}},
		Files:      []Item{{"a.txt", object{"text": "one\n", "mode": "0644"}}},
		Results:    []Item{{"result", object{"subtype": "success", "is_error": false, "result": "Done.", "num_turns": 2.0}}},
	}
}

// member changes a member of an item, however deep.
func member(i Item, value any, path ...string) {
	at := i.Value
	for _, name := range path[:len(path)-1] {
		if list, ok := at.([]any); ok {
			at = list[0]
		}
		at = at.(object)[name]
	}
	if list, ok := at.([]any); ok {
		at = list[0]
	}
	at.(object)[path[len(path)-1]] = value
}

func read(o *Observation, request, block int) *Item { return &o.Reads[request].Value.([]Item)[block] }

// Each difference that is planted is found in its field, and no row excuses it.
func TestEachPlantedDifferenceIsRed(t *testing.T) {
	t.Parallel()
	table, err := Rows()
	require.NoError(t, err)
	played := &Case{Script: []Step{{Content: []Content{{Name: "Write", ID: "a"}, {Name: "Bash", ID: "b"}}}}}
	require.Empty(t, Compare(played, seen(), seen()))
	for name, c := range map[string]struct {
		field string
		plant func(o *Observation)
	}{
		"a member of a frame":      {"frames.system/init.cwd", func(o *Observation) { member(o.Frames[0], "/w", "cwd") }},
		"a tool that is offered":   {"frames.system/init.tools", func(o *Observation) { member(o.Frames[0], []any{"Bash", "Write"}, "tools") }},
		"a frame that is missing":  {"frames.assistant/text", func(o *Observation) { o.Frames = o.Frames[:5] }},
		"a frame twice":            {"frames.assistant/text", func(o *Observation) { o.Frames = append(o.Frames, o.Frames[5]) }},
		"a new frame":              {"frames.system/status", func(o *Observation) { o.Frames = append(o.Frames, Item{"system/status", object{}}) }},
		"frames in another order":  {"frames.assistant/text", func(o *Observation) { o.Frames = slices.Concat(o.Frames[5:], o.Frames[:5]) }},
		"a call that is not shown": {"frames.assistant/tool_use", func(o *Observation) { o.Frames = slices.Delete(o.Frames, 2, 3) }},
		"the input of a call":      {"frames.assistant/tool_use.message.content.input.file_path", func(o *Observation) { member(o.Frames[2], "/etc/passwd", "message", "content", "input", "file_path") }},
		"an is_error of a frame":   {"frames.user/tool_result.message.content.is_error", func(o *Observation) { member(o.Frames[3], true, "message", "content", "is_error") }},
		"a hook that is missing":   {"gates.hook_PreToolUse", func(o *Observation) { o.Gates = o.Gates[1:] }},
		"a question is missing":    {"gates.ask", func(o *Observation) { o.Gates = o.Gates[:1] }},
		"a question too many":      {"gates.ask", func(o *Observation) { o.Gates = append(o.Gates, Item{"ask:b", object{}}) }},
		"asked before the hook":    {"gates.hook_PreToolUse", func(o *Observation) { slices.Reverse(o.Gates) }},
		"what is asked about":      {"gates.ask.input.file_path", func(o *Observation) { member(o.Gates[1], "/w/proj/b.txt", "input", "file_path") }},
		"why it is asked":          {"gates.ask.decision_reason_type", func(o *Observation) { member(o.Gates[1], "rule", "decision_reason_type") }},
		"another hook":             {"gates.hook_PreToolUse.hook", func(o *Observation) { member(o.Gates[0], 1.0, "hook") }},
		"the content of a file":    {"files.text", func(o *Observation) { member(o.Files[0], "one", "text") }},
		"the mode of a file":       {"files.mode", func(o *Observation) { member(o.Files[0], "0600", "mode") }},
		"a file that is missing":   {"files", func(o *Observation) { o.Files = nil }},
		"a file too many":          {"files", func(o *Observation) { o.Files = append(o.Files, Item{"b.txt", object{"text": ""}}) }},
		"a request too many":       {"reads.requests", func(o *Observation) { o.Reads = append(o.Reads, Item{"request", []Item{}}) }},
		"what a result says":       {"reads.tool_result.content", func(o *Observation) { member(*read(o, 1, 1), "done ", "content") }},
		"is_error of a result":     {"reads.tool_result.is_error", func(o *Observation) { member(*read(o, 1, 2), true, "is_error") }},
		"a result is missing":      {"reads.tool_result", func(o *Observation) { o.Reads[1].Value = o.Reads[1].Value.([]Item)[:2] }},
		"a result of another call": {"reads.tool_result", func(o *Observation) { read(o, 1, 2).Key = "tool_result:c" }},
		"the history of a call":    {"reads.said_tool_use.input", func(o *Observation) { member(*read(o, 1, 0), "", "input") }},
		"words of the user":        {"reads.text.text", func(o *Observation) { member(*read(o, 0, 0), "Go", "text") }},
		"words of the user, marked": {"reads.text.text", func(o *Observation) {
			member(*read(o, 0, 0), "<system-reminder>\nGo.\n</system-reminder>", "text")
		}},
		"words of the user, as the agent's": {"reads.text.role", func(o *Observation) { member(*read(o, 0, 0), "system", "role") }},
		"a note":                            {"reads.note.text", func(o *Observation) { member(*read(o, 0, 1), "another note", "text") }},
		"a note by the model":               {"reads.note.role", func(o *Observation) { member(*read(o, 0, 1), "assistant", "role") }},
		"a note is missing":                 {"reads.note", func(o *Observation) { o.Reads[0].Value = o.Reads[0].Value.([]Item)[:1] }},
		"a structured result":               {"structured.result.value.type", func(o *Observation) { member(o.Structured[0], "update", "value", "type") }},
		"a decision":                        {"structured.result.meta.permission.decision", func(o *Observation) { member(o.Structured[0], "reject", "meta", "permission", "decision") }},
		"no structured result":              {"structured.result", func(o *Observation) { o.Structured = nil }},
		"a call that is not run":            {"calls.call", func(o *Observation) { o.Calls[0].Value = "called, result" }},
		"another final result":              {"result.result", func(o *Observation) { member(o.Results[0], "Done", "result") }},
		"a result that fails":               {"result.is_error", func(o *Observation) { member(o.Results[0], true, "is_error") }},
		"no final result":                   {"result", func(o *Observation) { o.Results = nil }},
		"two final results":                 {"result", func(o *Observation) { o.Results = append(o.Results, o.Results[0]) }},
		"results in another order": {"reads.tool_result", func(o *Observation) {
			blocks := o.Reads[1].Value.([]Item)
			slices.Reverse(blocks[1:])
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := seen()
			c.plant(got)
			var fields []string
			for _, d := range Compare(played, seen(), got) {
				fields = append(fields, d.Field)
				assert.Empty(t, table.Excuse(d), d)
			}
			assert.Contains(t, fields, c.field)
		})
	}
}

// Calls that only read may end in any order; a call that changes something may not.
func TestOrderOfResults(t *testing.T) {
	t.Parallel()
	results := func(ids ...string) *Observation {
		o := &Observation{}
		for _, id := range ids {
			o.Structured = append(o.Structured, Item{"result:toolu_0_" + id, object{"value": id}})
		}
		return o
	}
	played := func(names ...string) *Case {
		var s Step
		for _, name := range names {
			s.Content = append(s.Content, Content{Name: name})
		}
		return &Case{Script: []Step{s}}
	}
	assert.Empty(t, Compare(played("Read", "Bash", "Grep"), results("0", "1", "2"), results("2", "0", "1")))
	assert.NotEmpty(t, Compare(played("Write", "Bash", "Grep"), results("0", "1", "2"), results("1", "0", "2")))
	assert.NotEmpty(t, Compare(played("Read", "Edit", "Grep"), results("0", "1", "2"), results("2", "1", "0")))
	assert.NotEmpty(t, Compare(played("Write", "Write"), results("0", "1"), results("1", "0")))
}

// The hooks of calls that run side by side may come in any order, those of each call, and of
// calls that run one after the other, may not.
func TestOrderOfHooks(t *testing.T) {
	t.Parallel()
	hooks := func(words string) *Observation {
		o := &Observation{}
		for _, w := range strings.Fields(words) {
			event := map[byte]string{'<': "PreToolUse", '>': "PostToolUse", '-': "Stop"}[w[0]]
			o.Gates = append(o.Gates, Item{hookKey(event, map[string]any{"tool_use_id": w[1:]}), w})
		}
		return o
	}
	for _, c := range []struct {
		want, got string
		differs   bool
	}{
		{"<a <b >b >a", "<a <b >b >a", false},
		{"<a <b >b >a", "<a >a <b >b", false},
		{"<a <b >b >a", "<b >b <a >a", false},
		{"<a <b <c >c >b >a -", "<c >c <a >a <b >b -", false},
		{"<a <b >b >a", ">a <a <b >b", true},
		{"<a <b >b >a", "<a <b >b", true},
		{"<a <b >b >a", "<a <b >b >a <b", true},
		{"<a >a <b >b", "<a <b >a >b", true},
		{"<a >a <b >b", "<b >b <a >a", true},
		{"<a <b >b >a -", "<a <b >b - >a", true},
		{"<a <b >b >a <c >c", "<c >c <a <b >b >a", true},
	} {
		assert.Equal(t, c.differs, len(Compare(&Case{}, hooks(c.want), hooks(c.got))) > 0, "%s and %s", c.want, c.got)
	}
}

// The notes of the hooks of two calls may stand in any order; other notes may not.
func TestOrderOfNotes(t *testing.T) {
	t.Parallel()
	note := func(parts ...string) *Observation {
		return &Observation{Reads: []Item{{"request", []Item{{"text", object{"role": "system", "text": strings.Join(parts, "\n\n")}}}}}}
	}
	const a, b, c = "PreToolUse:Bash hook additional context: a", "PostToolUse:Read hook additional context: b", "Another note."
	assert.Empty(t, Compare(&Case{}, note(a, b), note(b, a)))
	assert.NotEmpty(t, Compare(&Case{}, note(a, b), note(b)))
	assert.NotEmpty(t, Compare(&Case{}, note(a, b), note(b, b)))
	assert.NotEmpty(t, Compare(&Case{}, note(a, b), note(b, a, a)))
	assert.NotEmpty(t, Compare(&Case{}, note(a, c), note(c, a)))
	table, err := Rows()
	require.NoError(t, err)
	own := Compare(&Case{}, note(a, b), note(noteBegins+b, a+noteEnds))
	require.Len(t, own, 1)
	assert.NotEmpty(t, table.Excuse(own[0]))
}

// The comparison takes long texts by their length, and by their sum or beginning, as recordings have them.
func TestLongTextsAreCompared(t *testing.T) {
	t.Parallel()
	cut := object{"cut": true, "len": 5.0, "sha256": "f2ca1bb6c7e907d0"}
	for name, c := range map[string]struct {
		want, got any
		differs   bool
	}{
		"the same text":             {cut, "test\n", false},
		"the text of the sum":       {object{"len": 4.0, "cut": true, "sha256": "9f86d081884c7d65"}, "test", false},
		"another text of that size": {object{"len": 4.0, "cut": true, "sha256": "9f86d081884c7d65"}, "tesT", true},
		"another size":              {object{"len": 5.0, "head": "te"}, "test", true},
		"the beginning":             {object{"len": 4.0, "head": "te"}, "test", false},
		"another beginning":         {object{"len": 4.0, "head": "tx"}, "test", true},
		"no text":                   {object{"len": 4.0, "head": "te"}, nil, true},
		"up to the mark":            {"abc [... cut]", "abc and more", false},
		"other before the mark":     {"abc [... cut]", "ab", true},
		"a delay":                   {object{"retry_delay_ms": 500.0}, object{"retry_delay_ms": 600.0}, false},
		"another delay":             {object{"retry_delay_ms": 500.0}, object{"retry_delay_ms": 1000.0}, true},
		"a duration":                {object{"length": 1.0}, object{"length": 2.0}, true},
		"a longer list":             {[]any{"a"}, []any{"a", "b"}, true},
		"an order":                  {[]any{"a", "b"}, []any{"b", "a"}, true},
		"a number as text":          {1.0, "1", true},
		"no member":                 {object{"a": 1.0}, object{}, true},
		"a member too many":         {object{}, object{"a": false}, true},
	} {
		found := false
		values("x", c.want, c.got, func(Difference) { found = true })
		assert.Equal(t, c.differs, found, name)
	}
}

// Rows that would excuse too much are not read, and no row excuses what is protected.
func TestRowsAreNarrow(t *testing.T) {
	t.Parallel()
	for row, problem := range map[string]string{
		`"field": "gates"`:                             "no row may be about",
		`"field": "gates.ask.input"`:                   "no row may be about",
		`"field": "files"`:                             "no row may be about",
		`"field": "calls.call"`:                        "no row may be about",
		`"field": "result"`:                            "no row may be about",
		`"field": "result.is_error"`:                   "no row may be about",
		`"field": "reads.tool_result"`:                 "no row may be about",
		`"field": "reads.tool_result.is_error"`:        "no row may be about",
		`"field": "structured.result.meta.decision"`:   "no row may be about",
		`"field": "frames"`:                            "it may name one field",
		`"field": "reads"`:                             "it may name one field",
		`"claude": "(?s).*"`:                           "matches any text",
		`"field": "reads.text.text", "embedded": ".+"`: "matches any text",
		`"claude": "("`:                                "missing closing",
		`"reason": ""`:                                 "needs a name, a reason and its runs",
		`"runs": []`:                                   "needs a name, a reason and its runs",
		`"field": ""`:                                  "names neither a field nor a text",
	} {
		_, err := rows(fmt.Appendf(nil, `[{"name": "r", "reason": "because", "runs": ["live"], %s}]`, row))
		assert.ErrorContains(t, err, problem, row)
	}
	table, err := rows([]byte(`[{"name": "words", "claude": "^old$", "embedded": "^new$", "reason": "because", "runs": ["live"]}]`))
	require.NoError(t, err)
	for _, field := range []string{"gates.ask.input.command", "files", "calls.call", "reads.tool_result", "reads.tool_result.is_error", "result"} {
		assert.Empty(t, table.Excuse(Difference{field, "old", "new"}), field)
	}
	assert.Len(t, table.Excuse(Difference{"result.result", "old", "new"}), 1)
	for _, d := range []Difference{{"result.result", "old", "old"}, {"result.result", "new", "old"}, {"result.result", "old and more", "new and more"}, {"result.result", "old", " new"}, {"result.result", "old", absent}} {
		assert.Empty(t, table.Excuse(d), d)
	}
}

// A row cannot excuse what stands beside its text.
func TestARowExcusesItsTextAlone(t *testing.T) {
	t.Parallel()
	table, err := Rows()
	require.NoError(t, err)
	const left = "<system-reminder>\n<total_tokens>1 tokens left</total_tokens>\n</system-reminder>"
	assert.NotEmpty(t, table.Excuse(Difference{"reads.tool_result.content", "1\tone\n\n" + left, "1\tone"}))
	assert.Empty(t, table.Excuse(Difference{"reads.tool_result.content", "1\tone\n\n" + left, "1\ttwo"}))
	assert.NotEmpty(t, table.Excuse(Difference{"reads.tool_result.content", "1\tone\n2\n\n" + left, "1\tone\n2\t"}))
	assert.Empty(t, table.Excuse(Difference{"reads.tool_result.content", "1\tone\n\n" + left, " 1\tone"}))
	assert.NotEmpty(t, table.Excuse(Difference{"reads.text.text", "Go.\n", "Go."}))
	for _, d := range []Difference{{"reads.text.text", "Go.\n", " Go."}, {"reads.text.text", "Go.\n\n", "Go."}, {"reads.text.text", "Go.", "Go.\n"}, {"reads.tool_result.content", "Go.\n", "Go."}} {
		assert.Empty(t, table.Excuse(d), d)
	}
}

// A case of the list may differ in its field alone, and comes off when it does not.
func TestTheListOfCasesThatDiffer(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		first, was string
		listed     bool
		want       string
	}{
		{},
		{first: "files: a in place of b", want: "files: a in place of b"},
		{first: "reads.requests: 2 in place of 1", was: "reads.requests: 3 in place of 1", listed: true},
		{first: "gates.ask: a", was: "reads.requests: 3 in place of 1", listed: true, want: "not-yet.txt says that it differs in reads.requests, and now it does here: gates.ask: a"},
		{was: "reads.requests: 3 in place of 1", listed: true, want: "it is the same now: take it out of not-yet.txt"},
	} {
		o := outcome{first: c.first}
		assert.Equal(t, c.want, o.against(c.was, c.listed, "not-yet.txt"))
	}
}

// A directory without cases, and one with a file that has no list of cases, is an error that says so.
func TestDirectoriesOfCases(t *testing.T) { //nolint:paralleltest // it sets the environment
	dir := t.TempDir()
	load := func() ([]*Case, error) {
		all, other, err := Cases("no-such-directory")
		require.True(t, other)
		return all, err
	}
	t.Setenv("TROUPE_TOOL_CASES", filepath.Join(dir, "none"))
	_, err := load()
	require.ErrorContains(t, err, "TROUPE_TOOL_CASES="+dir+"/none: read the directory of cases: open "+dir+"/none: no such file or directory")
	t.Setenv("TROUPE_TOOL_CASES", dir)
	_, err = load()
	require.ErrorContains(t, err, dir+" has no cases: .json files with lists of cases are expected")
	file := func(name, text string) {
		t.Helper()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	file("schemas.json", `{"Read": {}}`)
	file("notes.txt", "no case")
	file("a.json", `[{"name": "one", "requests": [], "script": [{"hang": 600}]}, {"name": "two"}]`)
	all, err := load()
	require.NoError(t, err)
	require.Len(t, all, 2)
	_, err = all[0].Recording()
	require.NoError(t, err)
	assert.True(t, bool(all[0].Script[0].Hang))
	_, err = all[1].Recording()
	require.ErrorContains(t, err, `case "two" has no recording`)
	for text, problem := range map[string]string{
		"[{\"name\": \"one\"},\n":                    "b.json is not a JSON list of cases: unexpected end of JSON input (line 2)",
		"{\n\"name\": one}":                          "b.json is not a JSON list of cases: invalid character 'o' looking for beginning of value (line 2)",
		`[{"prompts": ["x"]}]`:                       "b.json: case 1 has no name",
		`[{"name": "x", "script": [[{"type": 1}]]}]`: `b.json: case "x": json: cannot unmarshal number`,
		`["x"]`: "b.json: case",
	} {
		file("b.json", text)
		_, err := load()
		assert.ErrorContains(t, err, problem, text)
	}
	require.NoError(t, os.Remove(filepath.Join(dir, "b.json")))
	t.Setenv("TROUPE_TOOL_CASES", "agent/embedded/testdata/cases")
	all, err = load()
	require.NoError(t, err)
	assert.Greater(t, len(all), 500, "a relative name begins at the top of the repository")
	t.Setenv("TROUPE_TOOL_CASES", "")
	_, other, err := Cases(dir)
	require.NoError(t, err)
	assert.False(t, other)
}

// A command in the background may end before the turn or after it; that it is not reported, or
// otherwise, or that the session is not idle at the end, is a difference.
func TestWhenACommandInTheBackgroundEnds(t *testing.T) {
	t.Parallel()
	state := func(s string) Item { return Item{"system/session_state_changed", object{"state": s}} }
	begun, ended := Item{"system/background_tasks_changed", object{"tasks": []any{"a"}}}, Item{"system/background_tasks_changed", object{"tasks": []any{}}}
	told := Item{"system/task_notification", object{"status": "completed"}}
	done, said := Item{"command_lifecycle", object{"state": "completed"}}, Item{"assistant/text", object{"text": "Done."}}
	within := &Observation{Frames: []Item{state("running"), begun, told, ended, done, said, state("idle")}}
	after := []Item{state("running"), begun, done, state("idle"), told, ended, state("running"), said, state("idle")}
	assert.Empty(t, Compare(&Case{}, within, &Observation{Frames: after}))
	assert.NotEmpty(t, Compare(&Case{}, within, &Observation{Frames: slices.Delete(slices.Clone(after), 4, 5)}), "not reported")
	assert.NotEmpty(t, Compare(&Case{}, within, &Observation{Frames: after[:8]}), "not idle")
	assert.NotEmpty(t, Compare(&Case{}, within, &Observation{Frames: slices.Insert(slices.Clone(after), 8, said)}), "a text twice")
	after[4].Value = object{"status": "failed"}
	assert.NotEmpty(t, Compare(&Case{}, within, &Observation{Frames: after}))
	plain := &Observation{Frames: []Item{state("running"), said, state("idle")}}
	assert.NotEmpty(t, Compare(&Case{}, plain, &Observation{Frames: []Item{state("running"), state("idle"), said}}), "without such commands the order counts")
}

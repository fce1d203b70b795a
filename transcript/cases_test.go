package transcript_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/transcript"
)

// vendorCase is a call of the vendor's function on the recorded sessions.
type vendorCase struct {
	ID          string            `json:"id"`
	Fn          string            `json:"fn"`
	Args        []json.RawMessage `json:"args"`
	Result      json.RawMessage   `json:"result"`
	Error       string            `json:"error"`
	Effects     []effect          `json:"effects"`
	Unspecified string            `json:"unspecified"`
	Tail        string            `json:"tail"`
	Files       []string          `json:"files"`
	Mutates     bool              `json:"mutates"` // not set in Qoder's cases
}

// effect is what the call did to one file.
type effect struct {
	Created, Changed, Appended, Removed string
	Content                             string
	Lines                               []map[string]any
}

// caseOptions are the options of all the vendor's functions.
type caseOptions struct {
	Dir                   string
	Limit, Offset         int
	IncludeSystemMessages bool
	Title, UpToMessageID  string
}

// deviations are the cases in which Troupe differs on purpose, and why.
var deviations = map[transcript.Vendor]map[string]string{
	transcript.Claude: {
		"list-rel-slash": "a slash after a directory that does not exist makes no difference, as Qoder has it",
	},
	transcript.Qoder: {
		"list-limit0": "a limit of 0 and less means all sessions, as Claude has it",
		"list-neg":    "a limit of 0 and less means all sessions, as Claude has it",
	},
}

func TestClaudesFunctions(t *testing.T) {
	t.Parallel()
	var file struct{ Cases []vendorCase }
	readJSON(t, "claude-cases.json", &file)
	require.Len(t, file.Cases, 144)
	runCases(t, transcript.Claude, file.Cases)
}

func TestQodersFunctions(t *testing.T) {
	t.Parallel()
	var claude struct{ Cases []vendorCase }
	readJSON(t, "claude-cases.json", &claude)
	var qoder struct {
		SameAsClaude []string     `json:"same_as_claude"`
		Different    []vendorCase `json:"different"`
	}
	readJSON(t, "qoder-cases.json", &qoder)
	cases := qoder.Different
	for _, c := range claude.Cases {
		if slices.Contains(qoder.SameAsClaude, c.ID) {
			cases = append(cases, c)
		}
	}
	require.Len(t, cases, 91+50)
	runCases(t, transcript.Qoder, cases)
}

func runCases(t *testing.T, vendor transcript.Vendor, cases []vendorCase) {
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			t.Parallel()
			why, differs := deviations[vendor][c.ID]
			got, want := runCase(t, vendor, &c)
			if differs {
				assert.NotEqual(t, want, got, "this is no deviation any more: %s", why)
				return
			}
			assert.Equal(t, want, got)
		})
	}
}

// runCase returns what the call did here and what it did in the vendor's function.
func runCase(t *testing.T, vendor transcript.Vendor, c *vendorCase) (got, want any) {
	root := copyCorpus
	if strings.HasPrefix(c.Fn, "get") || strings.HasPrefix(c.Fn, "list") {
		root = sharedCorpus
	} else {
		c.Mutates = true
	}
	return runCaseIn(t, vendor, c, root(t))
}

func runCaseIn(t *testing.T, vendor transcript.Vendor, c *vendorCase, root string) (got, want any) {
	before := map[string]string{}
	if c.Mutates {
		before = tree(t, root)
	}
	ids := 0
	s := &transcript.Sessions{
		Vendor: vendor, Root: root,
		Now:   func() time.Time { return time.UnixMilli(1800000000000) },
		NewID: func() string { ids++; return fmt.Sprintf("<new-uuid-%d>", ids) },
	}
	var o caseOptions
	var words []string // the arguments before the options
	for i, a := range c.Args {
		if i == len(c.Args)-1 {
			require.NoError(t, json.Unmarshal(a, &o))
			break
		}
		var word *string
		require.NoError(t, json.Unmarshal(a, &word))
		if word == nil {
			words = append(words, "$null")
		} else {
			words = append(words, *word)
		}
	}
	s.Dir = o.Dir
	result, err := call(t, s, c.Fn, words, o)
	if c.Error != "" {
		require.Error(t, err)
		assert.Equal(t, before, tree(t, root), "an error changes nothing")
		return errorText(err, vendor, c.Fn), strings.ReplaceAll(c.Error, "for "+o.Dir, "for DIR")
	}
	require.NoError(t, err)
	var expected any
	require.NoError(t, json.Unmarshal(c.Result, &expected))
	if c.ID == "info-81-nodir" {
		return true, result != nil // either copy
	}
	if !c.Mutates {
		return result, expected
	}
	after := tree(t, root)
	if vendor == transcript.Qoder && len(c.Effects) == 0 {
		return qoderEffects(t, c, before, after), c.Tail
	}
	assert.Equal(t, expected, result)
	if c.Unspecified != "" {
		return len(changes(before, after)), 1
	}
	return withEffects(t, c, before, after)
}

// call calls our function of that name.
func call(t *testing.T, s *transcript.Sessions, fn string, words []string, o caseOptions) (any, error) {
	ctx := t.Context()
	switch fn {
	case "listSessions":
		list, err := s.List(ctx, transcript.ListOptions{Limit: o.Limit, Offset: o.Offset})
		out := []any{}
		for i := range list {
			out = append(out, vendorInfo(&list[i]))
		}
		return out, err
	case "getSessionInfo":
		info, err := s.Info(ctx, words[0])
		if errors.Is(err, fs.ErrNotExist) || isIDError(err) {
			return "$undefined", nil
		}
		return vendorInfo(info), err
	case "getSessionMessages":
		return vendorMessages(t, s.Messages(ctx, words[0], transcript.ShownOptions{Limit: o.Limit, Offset: o.Offset, System: o.IncludeSystemMessages}))
	case "listSubagents":
		list, err := s.Subagents(ctx, words[0])
		if errors.Is(err, fs.ErrNotExist) || isIDError(err) {
			err = nil
		}
		out := []any{}
		for _, a := range list {
			out = append(out, a.ID)
		}
		return out, err
	case "getSubagentMessages":
		return vendorMessages(t, s.SubagentMessages(ctx, words[0], words[1], transcript.ShownOptions{Limit: o.Limit, Offset: o.Offset}))
	case "renameSession":
		return "$undefined", s.Rename(ctx, words[0], words[1])
	case "tagSession":
		if words[1] == "$null" {
			return "$undefined", s.Untag(ctx, words[0])
		}
		return "$undefined", s.Tag(ctx, words[0], words[1])
	case "archiveSession":
		return "$undefined", s.Archive(ctx, words[0])
	case "unarchiveSession":
		return "$undefined", s.Unarchive(ctx, words[0])
	case "deleteSession":
		return "$undefined", s.Delete(ctx, words[0])
	case "forkSession":
		id, err := s.Fork(ctx, words[0], transcript.ForkOptions{UpTo: o.UpToMessageID, Title: o.Title})
		return map[string]any{"sessionId": id}, err
	}
	require.Fail(t, "an unknown function", fn)
	return nil, nil
}

func isIDError(err error) bool {
	var e *transcript.IDError
	return errors.As(err, &e)
}

// errorText maps our errors to the texts of the vendors'.
func errorText(err error, vendor transcript.Vendor, fn string) string {
	var missing *transcript.NotFoundError
	var bad *transcript.IDError
	switch {
	case errors.As(err, &bad):
		return "Invalid sessionId: " + bad.ID
	case errors.As(err, &missing) && vendor == transcript.Qoder, errors.As(err, &missing) && fn == "forkSession" && missing.Dir == "":
		return "Session " + missing.ID + " not found"
	case errors.As(err, &missing) && missing.Dir != "":
		return "Session " + missing.ID + " not found in project directory for DIR"
	case errors.As(err, &missing):
		return "Session " + missing.ID + " not found in any project directory"
	case errors.Is(err, transcript.ErrNoTitle):
		return "title must be non-empty"
	case errors.Is(err, transcript.ErrNoTag):
		return "tag must be non-empty (use null to clear)"
	case errors.Is(err, transcript.ErrNothingToFork):
		return regexp.MustCompile("session ([^:]+): .*").ReplaceAllString(err.Error(), "Session $1 has no messages to fork")
	case errors.Is(err, transcript.ErrNoMessage):
		return regexp.MustCompile("session ([^:]+): message ([^:]+): .*").ReplaceAllString(err.Error(), "Message $2 not found in session $1")
	}
	return err.Error()
}

// vendorInfo returns the row of the vendor's list.
func vendorInfo(i *transcript.Info) any {
	if i == nil {
		return nil
	}
	row := map[string]any{"sessionId": i.SessionID, "summary": i.Summary, "lastModified": float64(i.LastModified.UnixMilli()), "fileSize": float64(i.FileSize)}
	for name, text := range map[string]string{"customTitle": i.CustomTitle, "firstPrompt": i.FirstPrompt, "gitBranch": i.GitBranch, "cwd": i.Cwd, "tag": i.Tag} {
		if text != "" {
			row[name] = text
		}
	}
	if !i.CreatedAt.IsZero() {
		row["createdAt"] = float64(i.CreatedAt.UnixMilli())
	}
	if i.Archived != nil {
		row["archived"] = *i.Archived
	}
	return row
}

// vendorMessages returns the messages in the form of the recorded cases.
func vendorMessages(t *testing.T, messages func(func(*transcript.Message, error) bool)) (any, error) {
	out := []any{}
	for m, err := range messages {
		if errors.Is(err, fs.ErrNotExist) || isIDError(err) {
			return []any{}, nil
		}
		if err != nil {
			return nil, err
		}
		raw, err := json.Marshal(m)
		require.NoError(t, err)
		var row map[string]any
		require.NoError(t, json.Unmarshal(raw, &row))
		if body, ok := row["message"].(map[string]any); ok {
			row["$text"] = shortText(body["content"])
		}
		delete(row, "message")
		out = append(out, row)
	}
	return out, nil
}

func shortText(content any) string {
	text := ""
	switch c := content.(type) {
	case string:
		text = c
	case []any:
		block, _ := c[0].(map[string]any)
		switch block["type"] {
		case "text":
			text, _ = block["text"].(string)
		case "tool_use":
			text = fmt.Sprintf("<tool_use %s>", block["name"])
		case "tool_result":
			text = fmt.Sprintf("<tool_result %s>", block["tool_use_id"])
		default:
			text = fmt.Sprintf("<%s>", block["type"])
		}
	}
	runes := []rune(text)
	return string(runes[:min(len(runes), 60)])
}

// changes lists the files that differ.
func changes(before, after map[string]string) []string {
	var out []string
	for name := range before {
		if content, ok := after[name]; !ok || content != before[name] {
			out = append(out, name)
		}
	}
	for name := range after {
		if _, ok := before[name]; !ok {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// withEffects compares what happened to the files with the recorded effects.
func withEffects(t *testing.T, c *vendorCase, before, after map[string]string) (got, want any) {
	expected := maps.Clone(before)
	for _, e := range c.Effects {
		content := strings.ReplaceAll(e.Content, "<now>", "2027-01-15T08:00:00.000Z")
		switch {
		case e.Removed != "":
			delete(expected, e.Removed)
		case e.Appended != "":
			expected[e.Appended] += content
		case len(e.Lines) > 0:
			assert.Equal(t, e.Lines, shortLines(t, after[e.Created]))
			expected[e.Created] = after[e.Created]
		default:
			expected[e.Created+e.Changed] = content
		}
	}
	return after, expected
}

// shortLines returns what the recorded cases have of the lines of a long copy.
func shortLines(t *testing.T, content string) []map[string]any {
	var out []map[string]any
	for line := range strings.Lines(content) {
		var all map[string]any
		require.NoError(t, json.Unmarshal([]byte(line), &all))
		row := map[string]any{}
		for _, name := range []string{"type", "subtype", "uuid", "parentUuid", "logicalParentUuid", "sessionId", "forkedFrom", "compactMetadata", "atis", "tools", "customTitle"} {
			if v, ok := all[name]; ok {
				row[name] = v
			}
		}
		if a, ok := all["attachment"].(map[string]any); ok {
			row["attachment"] = a["type"]
		}
		out = append(out, row)
	}
	return out
}

// qoderEffects returns what was appended, with the time of the recording.
func qoderEffects(t *testing.T, c *vendorCase, before, after map[string]string) string {
	changed := changes(before, after)
	require.Len(t, changed, 1)
	if len(c.Files) > 0 {
		return "" // a file that was made or removed
	}
	appended, ok := strings.CutPrefix(after[changed[0]], before[changed[0]])
	require.True(t, ok)
	_, stamp, ok := strings.Cut(c.Tail, `"timestamp":"`)
	require.True(t, ok)
	return strings.ReplaceAll(appended, "2027-01-15T08:00:00.000Z", stamp[:24])
}

package acpagent

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/acp"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/protocol/tools"
)

// tool is a tool call that has no result yet.
type tool struct {
	name, parent string
	input        json.RawMessage // nil: not known yet
	started      bool
}

// hidden: the calls are shown as a plan.
func hidden(name string) bool {
	switch tools.Canonical(name) {
	case "TodoWrite", "TaskCreate", "TaskUpdate", "TaskGet", "TaskList":
		return true
	}
	return false
}

// toolSeen shows a call whose input is still being written.
func (s *session) toolSeen(id, name, parent string) *tool {
	if t := s.shown.tools[id]; t != nil || hidden(name) || s.shown.closed[id] {
		return t
	}
	t := s.remember(id, name, parent)
	s.send(acp.SessionUpdate{ToolCall: &acp.ToolCall{
		ToolCallID: acp.ToolCallID(id), Name: name, Title: name, Kind: kindOf(name), Status: acp.ToolCallStatusPending, RawInput: json.RawMessage("{}"), Meta: t.meta(),
	}})
	return t
}

// remember notes that a call is open.
func (s *session) remember(id, name, parent string) *tool {
	t := &tool{name: name, parent: parent}
	if s.shown.tools == nil {
		s.shown.tools, s.shown.closed = map[string]*tool{}, map[string]bool{}
	}
	s.shown.tools[id] = t
	return t
}

// toolCalled shows the whole input of a call: in an update if the call was shown before, else
// with the call itself.
func (s *session) toolCalled(id, name, parent string, input json.RawMessage) {
	t := s.shown.tools[id]
	if t == nil && (hidden(name) || s.shown.closed[id]) || t != nil && t.input != nil {
		return
	}
	if t != nil {
		t.input = input
		u := s.describe(id, t)
		s.send(acp.SessionUpdate{ToolCallUpdate: &u})
		return
	}
	t = s.remember(id, name, parent)
	t.input = input
	u := s.describe(id, t)
	s.send(acp.SessionUpdate{ToolCall: &acp.ToolCall{
		ToolCallID: u.ToolCallID, Name: name, Title: u.Title, Kind: kindOf(name), Status: acp.ToolCallStatusPending,
		RawInput: u.RawInput, Content: u.Content, Locations: u.Locations, Meta: u.Meta,
	}})
}

// describe is a call as its input says.
func (s *session) describe(id string, t *tool) acp.ToolCallUpdate {
	d := describe(t.name, t.input, s.cwd)
	return acp.ToolCallUpdate{ToolCallID: acp.ToolCallID(id), Title: d.title, Content: d.content, Locations: d.locations, RawInput: t.input, Meta: t.meta()}
}

// toolStarted shows that a call runs.
func (s *session) toolStarted(id string) {
	if t := s.shown.tools[id]; t != nil && !t.started {
		t.started = true
		s.send(acp.SessionUpdate{ToolCallUpdate: &acp.ToolCallUpdate{ToolCallID: acp.ToolCallID(id), Status: acp.ToolCallStatusInProgress, Meta: t.meta()}})
	}
}

// toolResult closes a call.
func (s *session) toolResult(r *protocol.ToolResultBlock, output json.RawMessage) {
	t := s.shown.tools[r.ToolUseID]
	if t == nil {
		return
	}
	u := &acp.ToolCallUpdate{ToolCallID: acp.ToolCallID(r.ToolUseID), Status: acp.ToolCallStatusCompleted, Meta: t.meta()}
	if r.IsError {
		u.Status = acp.ToolCallStatusFailed
	}
	u.RawOutput, u.Content = outcome(t, r, output)
	if !r.IsError && tools.Canonical(t.name) == "ExitPlanMode" {
		u.Title = "Exited Plan Mode"
	}
	s.closeTool(r.ToolUseID, u)
}

func (s *session) closeTool(id string, u *acp.ToolCallUpdate) {
	delete(s.shown.tools, id)
	s.shown.closed[id] = true
	s.send(acp.SessionUpdate{ToolCallUpdate: u})
}

// failTools closes the calls that will get no result, and the compaction that runs. Calls
// of a background subagent continue after the turn, unless all is over.
func (s *session) failTools(all bool, why string) {
	s.compacting(acp.CompactionStatusFailed, why)
	for _, id := range slices.Sorted(maps.Keys(s.shown.tools)) {
		t := s.shown.tools[id]
		if !all && s.shown.closed[t.parent] {
			continue
		}
		raw, _ := json.Marshal(why)
		s.closeTool(id, &acp.ToolCallUpdate{
			ToolCallID: acp.ToolCallID(id), Status: acp.ToolCallStatusFailed, RawOutput: raw, Content: []acp.ToolCallContent{inText(why)}, Meta: t.meta(),
		})
	}
}

// meta has the vendor's adapter's key, which editors read.
func (t *tool) meta() acp.Meta {
	m := map[string]any{"toolName": t.name}
	if t.parent != "" {
		m["parentToolUseId"] = t.parent
	}
	return acp.Meta{"claudeCode": m}
}

// outcome is the raw output of a call, and what is shown of it. An edit keeps showing its
// diff; that of a file that was replaced now has the old text.
func outcome(t *tool, r *protocol.ToolResultBlock, output json.RawMessage) (json.RawMessage, []acp.ToolCallContent) {
	text := r.Content.Text()
	raw, _ := json.Marshal(text)
	if !r.IsError {
		if typed, err := tools.DecodeOutput(t.name, output); err == nil {
			if w, ok := typed.(*tools.WriteOutput); ok && w.OriginalFile != nil && w.FilePath != "" {
				return raw, []acp.ToolCallContent{{Diff: &acp.Diff{Path: w.FilePath, OldText: *w.OriginalFile, NewText: w.Content}}}
			}
		}
	}
	switch kind := kindOf(t.name); {
	case (kind == acp.ToolKindEdit || kind == acp.ToolKindSwitchMode) && !r.IsError: // the diff, or the plan, stays
		return raw, nil
	case r.IsError && text != "":
		return raw, []acp.ToolCallContent{inText(fence("", text))}
	case kind == acp.ToolKindExecute && text != "":
		return raw, []acp.ToolCallContent{inText(fence("console", text))}
	case kind == acp.ToolKindRead && text != "":
		return raw, []acp.ToolCallContent{inText(fence("", emptyLastLine.ReplaceAllString(text, "")))}
	}
	var content []acp.ToolCallContent
	for _, b := range contentBlocks(r.Content) {
		content = append(content, acp.ToolCallContent{Content: &acp.Content{Content: b}})
	}
	return raw, content
}

// emptyLastLine is what Read says of a file that ends with a newline: a number without a line.
var emptyLastLine = regexp.MustCompile(`\n *\d+\t$`)

func inText(text string) acp.ToolCallContent {
	return acp.ToolCallContent{Content: &acp.Content{Content: textBlock(text)}}
}

// fence puts a text into a Markdown block, which no line of the text ends.
func fence(language, text string) string {
	marks := "```"
	for strings.Contains(text, marks) {
		marks += "`"
	}
	return marks + language + "\n" + strings.TrimRight(text, "\n") + "\n" + marks
}

// kindOf is the kind of a tool.
func kindOf(name string) acp.ToolKind {
	switch tools.Canonical(name) {
	case "Read", "NotebookRead", "LS":
		return acp.ToolKindRead
	case "Write", "Edit", "NotebookEdit", "MultiEdit":
		return acp.ToolKindEdit
	case "Bash", "PowerShell", "Monitor":
		return acp.ToolKindExecute
	case "Glob", "Grep", "ToolSearch":
		return acp.ToolKindSearch
	case "WebFetch", "WebSearch":
		return acp.ToolKindFetch
	case "Agent":
		return acp.ToolKindThink
	case "ExitPlanMode", "EnterPlanMode":
		return acp.ToolKindSwitchMode
	}
	return acp.ToolKindOther
}

// description is what the editor shows of a call before its result.
type description struct {
	title     string
	content   []acp.ToolCallContent
	locations []acp.ToolCallLocation
}

// describe reads the input of a call. Diffs are shown only for absolute paths.
func describe(name string, input json.RawMessage, cwd string) description {
	d := description{title: name}
	at := func(path string, line int) {
		if filepath.IsAbs(path) {
			l := acp.ToolCallLocation{Path: path}
			if line > 0 {
				l.Line = &line
			}
			d.locations = []acp.ToolCallLocation{l}
		}
	}
	diff := func(path, before, now string) {
		if filepath.IsAbs(path) {
			d.content = []acp.ToolCallContent{{Diff: &acp.Diff{Path: path, OldText: before, NewText: now}}}
		}
	}
	typed, err := tools.DecodeInput(name, input)
	if err != nil {
		return d
	}
	switch in := typed.(type) {
	case *tools.ReadInput:
		d.title = "Read " + below(in.FilePath, cwd)
		at(in.FilePath, max(in.Offset, 1))
	case *tools.WriteInput:
		d.title = "Write " + below(in.FilePath, cwd)
		at(in.FilePath, 0)
		diff(in.FilePath, "", in.Content)
	case *tools.EditInput:
		d.title = "Edit " + below(in.FilePath, cwd)
		at(in.FilePath, 0)
		diff(in.FilePath, in.OldString, in.NewString)
	case *tools.NotebookEditInput:
		d.title = "Edit " + below(in.NotebookPath, cwd)
		at(in.NotebookPath, 0)
	case *tools.BashInput:
		d.title = oneLine(in.Command)
		if in.Description != "" {
			d.content = []acp.ToolCallContent{inText(in.Description)}
		}
	case *tools.GlobInput:
		d.title = "Find " + quoted(in.Pattern)
	case *tools.GrepInput:
		d.title = strings.TrimSpace(fmt.Sprintf("grep %q %s", in.Pattern, in.Path))
	case *tools.WebFetchInput:
		d.title = "Fetch " + in.URL
	case *tools.WebSearchInput:
		d.title = "Search " + in.Query
	case *tools.AgentInput:
		d.title = cmp.Or(in.Description, name)
		if in.Prompt != "" {
			d.content = []acp.ToolCallContent{inText(in.Prompt)}
		}
	case *tools.ExitPlanModeInput:
		d.title = "Approve Plan"
		if in.Plan != "" {
			d.content = []acp.ToolCallContent{inText(in.Plan)}
		}
	case *tools.AskUserQuestionInput:
		if len(in.Questions) > 0 {
			d.title = oneLine(in.Questions[0].Question)
			d.content = []acp.ToolCallContent{inText(asked(in.Questions))}
		}
	}
	return d
}

// asked is the text of the questions, one on a line.
func asked(questions []tools.Question) string {
	lines := make([]string, len(questions))
	for i, q := range questions {
		lines[i] = cmp.Or(q.Question, q.Header)
	}
	return strings.Join(lines, "\n")
}

// quoted puts a text between backticks, so that Markdown leaves it as it is.
func quoted(text string) string {
	if strings.Contains(text, "`") {
		return text
	}
	return "`" + text + "`"
}

// below is a path as people read it.
func below(path, cwd string) string {
	if rel, err := filepath.Rel(cwd, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// oneLine is the beginning of a text.
func oneLine(text string) string {
	line, more, _ := strings.Cut(strings.TrimSpace(text), "\n")
	if runes := []rune(line); len(runes) > 200 {
		line, more = string(runes[:200]), "…"
	}
	if more != "" {
		line += " …"
	}
	return line
}

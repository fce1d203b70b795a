package acpagent

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/agent-troupe/troupe/acp"
	escape "github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/protocol/tools"
	"github.com/agent-troupe/troupe/sdk"
)

// consent is the call of a permission request. Its title and content have all of the call's
// input, and where it runs: few editors show the raw input. The model's description of the
// call is marked as such, and invisible characters are escaped. Keys match as they do in the
// agent, by their exact name.
func (s *session) consent(r *sdk.ToolPermissionRequest) acp.ToolCallUpdate {
	call := s.describe(r.ToolUseID, &tool{name: r.ToolName, input: r.Input})
	call.Name, call.Kind, call.Status = r.ToolName, kindOf(r.ToolName), acp.ToolCallStatusPending
	call.Title, call.Meta = escape.Visible(call.Title), nil
	if call.Locations == nil && filepath.IsAbs(r.BlockedPath) { // why the agent asks
		call.Locations = []acp.ToolCallLocation{{Path: r.BlockedPath}}
	}
	var input map[string]json.RawMessage
	if err := protocol.Decode(r.Input, &input); err != nil {
		call.Content = []acp.ToolCallContent{inText(fence("json", escape.Visible(string(r.Input))))}
		return call
	}
	var content []acp.ToolCallContent
	say := func(text string) { content = append(content, inText(text)) }
	where := "In " + code(escape.Line(s.directory(r)))
	switch name := tools.Canonical(r.ToolName); {
	case kindOf(r.ToolName) == acp.ToolKindExecute && isText(input["command"]):
		say(where + ":\n\n" + fence("sh", escape.Visible(take(input, "command"))))
		if isText(input["description"]) {
			say("The agent says: " + escape.Visible(take(input, "description")))
		}
	case (name == "Write" || name == "Edit") && hasDiff(call.Content):
		content = call.Content
		for _, key := range []string{"file_path", "content", "old_string", "new_string"} {
			if isText(input[key]) {
				delete(input, key)
			}
		}
	case name == "ExitPlanMode" && isText(input["plan"]):
		content = call.Content
		delete(input, "plan")
	case name == "Agent" && isText(input["prompt"]):
		if isText(input["description"]) {
			call.Title = r.ToolName + ": " + call.Title // the model's words
		}
		say(where + ", a subagent with this prompt:\n\n" + fence("", escape.Visible(take(input, "prompt"))))
	default:
		say(where)
	}
	if len(input) > 0 {
		say(fence("json", escape.Visible(pretty(input))))
	}
	call.Content = content
	return call
}

func hasDiff(content []acp.ToolCallContent) bool { return len(content) == 1 && content[0].Diff != nil }

func isText(raw json.RawMessage) bool {
	var text string
	return len(raw) > 0 && raw[0] == '"' && json.Unmarshal(raw, &text) == nil
}

// take removes a text from the input.
func take(input map[string]json.RawMessage, key string) (text string) {
	_ = json.Unmarshal(input[key], &text) // isText has looked
	delete(input, key)
	return text
}

// pretty is an object as JSON for people: indented, and with < > & as themselves.
func pretty(input map[string]json.RawMessage) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	_ = e.Encode(input) // was JSON before
	return b.String()
}

// code is a text as code within a line of Markdown. No backtick of the text ends it.
func code(text string) string {
	marks := "`"
	for strings.Contains(text, marks) {
		marks += "`"
	}
	if marks != "`" {
		text = " " + text + " "
	}
	return marks + text + marks
}

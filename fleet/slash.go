package fleet

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-troupe/troupe/sdk"
)

// syntheticModel is the model of messages that no model wrote (observed on Claude Code 2.1.329).
const syntheticModel = "<synthetic>"

// message is a prompt as it is sent. An agent takes a text that begins with a slash as a
// command, if it knows one of that name. client_composed keeps Claude Code from that, and from
// reading the files that an @ names (observed on 2.1.329); no other text needs it.
func (a *attempt) message(text string) sdk.UserMessage {
	m := sdk.UserText(text)
	m.ClientComposed = !a.task.Slash && strings.HasPrefix(text, "/")
	return m
}

// modeled notes that a model was asked.
func (a *attempt) modeled(m sdk.Message) {
	switch m := m.(type) {
	case *sdk.AssistantMessage:
		a.asked = a.asked || m.Error == "" && m.Message.Model != syntheticModel
	case *sdk.ResultMessage:
		a.asked = a.asked || m.NumTurns > 0 || m.DurationAPIMS > 0 || len(m.ModelUsage) > 0
	}
}

// unasked says why a success without a request to a model does not count, or "". A command
// of the project may come to its end without a model.
func (a *attempt) unasked() string {
	name, command := a.command()
	switch {
	case a.asked, command && ownCommand(a.space.Dir, name):
		return ""
	case name != "":
		return "no model was asked: the agent took /" + name + " as a command and answered by itself"
	}
	return "no model was asked: the agent answered by itself"
}

// command is the first word of the prompt if it looks like the name of a command, without its
// slash; sent: it was sent as one.
func (a *attempt) command() (name string, sent bool) {
	words := strings.Fields(a.task.Prompt)
	if len(words) == 0 || !strings.HasPrefix(words[0], "/") {
		return "", false
	}
	return short(words[0][1:]), a.task.Slash
}

// ownCommand reports whether the project defines a command: a Markdown file below
// .claude/commands, in a directory for each colon of the name, or a skill.
func ownCommand(dir, name string) bool {
	path := filepath.FromSlash(strings.ReplaceAll(name, ":", "/"))
	if name == "" || !filepath.IsLocal(path) {
		return false
	}
	for _, file := range []string{filepath.Join("commands", path+".md"), filepath.Join("skills", path, "SKILL.md")} {
		if st, err := os.Stat(filepath.Join(dir, ".claude", file)); err == nil && st.Mode().IsRegular() {
			return true
		}
	}
	return false
}

package claude

import (
	"bytes"
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/internal/optionfile"
)

// In print mode Claude Code drops, without a word, a settings file that is not strict JSON or has a value of another type
// than it expects, and single rules, hooks and values that it cannot read (observed on 2.1.329). A deny rule or a hook in
// it then guards nothing. So what it would drop is refused before the start. TestSettingsThatTheAgentDrops in conformance
// holds this file, settings_rules.go and settings.schema.json to the agent.

//go:embed settings.schema.json
var settingsSchema []byte

var readSettingsSchema = sync.OnceValues(func() (*optionfile.Schema, error) { return optionfile.ParseSchema(settingsSchema) }) //nolint:gochecknoglobals // only read

// managedOnly are keys that count in managed settings alone; the agent drops them from all others.
func managedOnly() []string {
	return []string{"attributionProjectPolicy", "availableModelsMatch", "deniedModels", "managedMcpServers"}
}

// maxSettingsMistakes is how many mistakes of one document are reported.
const maxSettingsMistakes = 20

// droppedSettings finds what Claude Code would drop of a settings document: mistakes, in the order of the document, and
// keys that the release 2.1.329 does not know, which it ignores. managed says that the document is a managed one.
func droppedSettings(doc []byte, managed bool) (mistakes, unknown []optionfile.Mistake) {
	if bytes.HasPrefix(doc, []byte{0xFE, 0xFF}) { // the agent reads only the other order
		return []optionfile.Mistake{{Line: 1, Column: 1, Problem: "is UTF-16 of the order that the agent does not read", Fix: "save the file as UTF-8"}}, nil
	}
	schema, err := readSettingsSchema()
	if err != nil {
		return []optionfile.Mistake{{Problem: err.Error()}}, nil
	}
	mistakes, unknown = schema.CheckJSON(doc)
	root := optionfile.ReadJSON(doc)
	if root == nil {
		return mistakes, unknown
	}
	for _, p := range root.Pairs {
		switch key := p.Key.Text; {
		case slices.Contains(managedOnly(), key) && !managed:
			mistakes = append(mistakes, p.Key.Mistake(key, "counts in managed settings only", "move it there, or leave it out"))
		case key == "permissions":
			mistakes = append(mistakes, droppedRules(p.Value)...)
		case key == "allowedMcpServers" || key == "deniedMcpServers":
			for i, s := range p.Value.List {
				if len(s.Pairs) != 1 {
					mistakes = append(mistakes, s.Mistake(fmt.Sprintf("%s[%d]", key, i), "does not have exactly one of serverName, serverCommand and serverUrl", "give one"))
				}
			}
		}
	}
	unknown = slices.DeleteFunc(unknown, func(m optionfile.Mistake) bool {
		if hookEvent(m.Key) { // the agent drops the whole document
			m.Fix = "move it into hooks"
			mistakes = append(mistakes, m)
			return true
		}
		return false
	})
	optionfile.Sort(mistakes)
	return mistakes, unknown
}

// hookEvent reports whether a key at the top of the settings is the name of a hook that guards something.
func hookEvent(key string) bool { return key == "PreToolUse" || key == "PermissionRequest" }

// checkSettings refuses settings of which the agent would drop something.
func checkSettings(o *dialect.Input, p *build.Problems) {
	report(p, "Settings", "", o.Settings, false)
	report(p, "SettingsPath", o.SettingsPath, settingsFile(o), false)
	report(p, "ManagedSettings", "", o.ManagedSettings, true)
	for _, f := range o.LoadedSettings {
		if f.Servers {
			continue
		}
		mistakes, _ := droppedSettings(f.Content, false)
		for _, m := range mistakes[:min(len(mistakes), maxSettingsMistakes)] {
			problem := placed(f.Path, f.Content, m) + loss
			fix := "correct the file, or leave " + f.Source + " out of SettingSources"
			if o.Unattended {
				p.Add("SettingSources", problem, fix)
			} else {
				p.Warn("SettingSources", f.Source, problem, fix)
			}
		}
	}
}

// report adds what is wrong with a document that an option has.
func report(p *build.Problems, option, path string, doc []byte, managed bool) {
	if len(doc) == 0 || path == "" && !build.IsObject(doc) { // build.Check reports that
		return
	}
	mistakes, unknown := droppedSettings(doc, managed)
	for i, m := range mistakes {
		if i == maxSettingsMistakes {
			p.Addf(option, "has %d more mistakes", len(mistakes)-i)
			break
		}
		p.Add(option, placed(path, doc, m)+loss, m.Fix)
	}
	for _, m := range unknown[:min(len(unknown), maxSettingsMistakes)] {
		p.Warn(option, m.Key, placed(path, doc, m)+" to this release of Troupe; Claude Code ignores keys that it does not know", "check its name")
	}
}

// loss is what a mistake leads to.
const loss = "; Claude Code would drop it, or the whole document, without a word"

// placed is a mistake with its place. A document of one line, such as one that was made from YAML, needs no place: the
// key says it.
func placed(path string, doc []byte, m optionfile.Mistake) string {
	var b strings.Builder
	if path != "" {
		b.WriteString(path + ":")
	}
	switch {
	case m.Line > 0 && (path != "" || strings.Contains(strings.TrimSpace(string(doc)), "\n") || m.Key == ""):
		if path == "" {
			b.WriteString("line ")
		}
		fmt.Fprintf(&b, "%d:%d: ", m.Line, m.Column)
	case path != "":
		b.WriteString(" ")
	}
	if m.Key != "" {
		b.WriteString(m.Key + " ")
	}
	return b.String() + m.Problem
}

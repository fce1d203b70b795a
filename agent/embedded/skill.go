package embedded

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/goccy/go-yaml"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/base/spell"
)

// Limits of skills.
const (
	maxSkills    = 100      // of a session
	maxSkill     = 64 << 10 // bytes of a skill's text
	maxSkillNote = 250      // bytes of a description in the prompt
)

// skillTool is the tool Skill, as Claude Code 2.1.329 has it (observed). The text of a skill
// follows the results of the calls, as a message of the user's.
func skillTool() *tool {
	return &tool{
		name:     "Skill",
		about:    "Loads a skill: instructions for a kind of work. The system prompt names those that there are.",
		free:     true,
		beside:   alone,
		bySkills: true,
		params: []param{
			{name: "skill", kind: "string", required: true},
			{name: "args", kind: "string", about: "What it is for this time."},
		},
		before: func(t *talk, _ *agent.Lane, s *agent.Strand, in agent.Object) (string, error) {
			_, problem, err := t.skill(s, str(in, "skill"))
			return problem, err
		},
		act: func(t *talk, _ *agent.Lane, s *agent.Strand, _ string, in agent.Object) (agent.ToolResult, error) {
			k, problem, err := t.skill(s, str(in, "skill"))
			if err != nil || problem != "" {
				return failure("%s", problem), err
			}
			t.loaded = append(t.loaded, k.filled(str(in, "args")))
			return agent.ToolResult{Content: "Launching skill: " + k.name, Structured: agent.Object{"success": true, "commandName": k.name}}, nil
		},
	}
}

// skill is a file with instructions.
type skill struct {
	name, about string
	dir         string // its directory; "" if it is a single file
	body        string
	hidden      bool // only the user may load it
}

// builtins are commands of the vendor's program that models take for skills.
const builtins = "clear compact config context cost doctor exit export help hooks login logout mcp memory model permissions resume rewind status usage"

// skill finds a skill, or says why the model cannot have it.
func (t *talk) skill(s *agent.Strand, name string) (k *skill, problem string, err error) {
	name = strings.TrimPrefix(strings.TrimSpace(name), "/")
	var all []skill
	err = s.Do(func(context.Context) error {
		all = t.hands.skills(t.cfg.Skills)
		return nil
	})
	if err != nil {
		return nil, "", err
	}
	i := slices.IndexFunc(all, func(k skill) bool { return k.name == name })
	switch {
	case name == "":
		return nil, "Invalid skill format: ", nil
	case i < 0 && slices.Contains(strings.Fields(builtins), name):
		return nil, name + " is a built-in CLI command, not a skill. Ask the user to run /" + name + " themselves — it cannot be invoked via the Skill tool.", nil
	case i < 0:
		problem = "Unknown skill: " + name
		for _, k := range all {
			if !k.hidden && spell.Distance(k.name, name) <= 2 {
				return nil, problem + ". Did you mean " + k.name + "?", nil
			}
		}
		return nil, problem, nil
	case all[i].hidden:
		return nil, "Skill " + name + " cannot be used with Skill tool due to disable-model-invocation. Ask the user to run /" + name +
			" themselves — it cannot be invoked via the Skill tool. Do not replicate this skill's workflow by other means — it is reserved for explicit user invocation.", nil
	}
	return &all[i], "", nil
}

// placeholder is what a skill has in place of arguments, and of its directory.
var placeholder = regexp.MustCompile(`\$ARGUMENTS\b|\$\d+|\$\{CLAUDE_SKILL_DIR\}`)

// filled is the text of a skill with its arguments (observed).
func (k *skill) filled(args string) string {
	words, used := strings.Fields(args), false
	body := placeholder.ReplaceAllStringFunc(k.body, func(p string) string {
		switch {
		case p == "$ARGUMENTS":
			used = true
			return args
		case p[1] == '{' && k.dir != "":
			return k.dir
		case p[1] == '{':
			return p
		}
		if n, err := strconv.Atoi(p[1:]); err == nil && n < len(words) {
			used = true
			return words[n]
		}
		return p // as observed
	})
	if args != "" && !used {
		body += "\n\nARGUMENTS: " + args
	}
	if k.dir != "" {
		return "Base directory for this skill: " + k.dir + "\n\n" + body
	}
	return body
}

// showSkills gives the model the skills that its last calls have loaded.
func (t *talk) showSkills(l *agent.Lane) {
	for _, text := range t.loaded {
		l.UserText(text, agent.Object{"isSynthetic": true})
	}
	t.loaded = nil
}

// skillList is what the system prompt says of skills; "" without skills.
func skillList(all []skill) string {
	var b strings.Builder
	for _, k := range all {
		if k.hidden {
			continue
		}
		about := strings.Join(strings.Fields(k.about), " ")
		if len(about) > maxSkillNote {
			about = strings.ToValidUTF8(about[:maxSkillNote], "") + "…"
		}
		fmt.Fprintf(&b, "- %s: %s\n", k.name, about)
	}
	if b.Len() == 0 {
		return ""
	}
	return "\nSkills, which the tool Skill loads:\n" + b.String()
}

// skills are those of directories, in the order of their names; of two with one name that of the
// first directory. A relative directory is one of the session's; links do not lead out of it.
func (h *hands) skills(dirs []string) (all []skill) {
	for _, dir := range dirs {
		base, below := dir, "."
		if !filepath.IsAbs(dir) {
			base, below = h.root, filepath.ToSlash(filepath.Clean(dir))
		}
		root, err := os.OpenRoot(base)
		if err != nil {
			continue
		}
		all = append(all, h.skillsIn(root, base, below, all)...)
		_ = root.Close() // it was only read
	}
	slices.SortStableFunc(all, func(a, b skill) int { return strings.Compare(a.name, b.name) })
	return all
}

func (h *hands) skillsIn(root *os.Root, base, below string, known []skill) (all []skill) {
	list, err := root.Open(below)
	if err != nil {
		return nil
	}
	entries, _ := list.ReadDir(-1) // as far as it can be read
	_ = list.Close()               // it was only read
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	for _, e := range entries {
		name, file := e.Name(), path.Join(below, e.Name(), "SKILL.md")
		single := strings.HasSuffix(name, ".md")
		if single {
			name, file = strings.TrimSuffix(name, ".md"), path.Join(below, e.Name())
		}
		taken := func(k skill) bool { return k.name == name }
		if len(known)+len(all) == maxSkills || !skillName.MatchString(name) || slices.ContainsFunc(known, taken) || slices.ContainsFunc(all, taken) {
			continue
		}
		if h.disk.ask(diskRead, filepath.Join(base, file)) != nil {
			continue
		}
		text, err := readStart(func(name string) (*os.File, error) { return root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0) }, file, maxSkill)
		if err != nil {
			continue
		}
		k := parsedSkill(strings.ToValidUTF8(strings.ReplaceAll(text, "\r\n", "\n"), "\ufffd"))
		if k.name = name; !single {
			k.dir = filepath.Join(base, path.Dir(file))
		}
		all = append(all, k)
	}
	return all
}

// skillName is what a skill may be called: the name is part of the prompt.
var skillName = regexp.MustCompile(`^\w[\w:.-]{0,63}$`)

// parsedSkill reads a skill: what it says of itself between two lines of ---, and its text.
func parsedSkill(text string) (k skill) {
	k.body = text
	rest, ok := strings.CutPrefix(strings.TrimPrefix(text, bom), "---\n")
	if !ok {
		return k
	}
	head, body, ok := strings.Cut(rest, "\n---\n")
	if !ok {
		return k
	}
	var about struct {
		Description string `yaml:"description"`
		Hidden      bool   `yaml:"disable-model-invocation"`
	}
	if yaml.Unmarshal([]byte(head), &about) != nil {
		about.Hidden = strings.Contains(head, "disable-model-invocation: true") // it is not shown by mistake
	}
	k.about, k.hidden, k.body = about.Description, about.Hidden, body
	return k
}

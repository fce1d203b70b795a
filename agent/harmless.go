package agent

import (
	"path"
	"slices"
	"strings"
)

// This file decides which calls run without a question, as observed on Claude Code
// 2.1.329. The decisions of testdata/decisions.json were recorded from it.

// places are the directories that the agent may read and, in acceptEdits, edit.
type places struct {
	cwd  string   // "": unknown, then every path counts as inside
	more []string // of --add-dir
}

func (l places) inside(name string) bool {
	if l.cwd == "" {
		return true
	}
	if strings.HasPrefix(name, "~") {
		return false
	}
	if !path.IsAbs(name) {
		name = path.Join(l.cwd, name)
	}
	name = path.Clean(name)
	return slices.ContainsFunc(append([]string{l.cwd}, l.more...), func(dir string) bool {
		dir = path.Clean(dir)
		return name == dir || strings.HasPrefix(name, strings.TrimSuffix(dir, "/")+"/")
	})
}

// file is the path that a file tool works on; "" for other tools and for none.
func (c *call) file() string {
	key := "file_path"
	switch c.Name {
	case "Grep", "Glob", "LS":
		key = "path"
	case "NotebookEdit":
		key = "notebook_path"
	case "Read", "Write", "Edit", "MultiEdit", "NotebookRead":
	default:
		return ""
	}
	name, _ := c.input[key].(string)
	return name
}

func edits(tool string) bool {
	return slices.Contains([]string{"Write", "Edit", "MultiEdit", "NotebookEdit"}, tool)
}

// harmless lists built-in tools that never ask, apart from paths outside.
func harmless(tool string) bool {
	switch tool {
	case "Read", "Glob", "Grep", "LS", "Agent", "Task", "TaskStop", "TodoWrite", "Skill",
		"StructuredOutput", "EnterPlanMode", "ToolSearch":
		return true
	}
	return false
}

// shellCommand is the command of a Bash call.
func (c *call) shellCommand() (string, bool) {
	command, _ := c.input["command"].(string)
	return command, c.Name == "Bash" && command != ""
}

// readsOnly reports whether a shell command only reads, inside the places.
func (l places) readsOnly(command string) bool {
	script, ok := simple(command)
	return ok && !slices.ContainsFunc(script, func(words []string) bool { return !l.reader(words) })
}

// editsOnly reports whether a shell command is one of those that acceptEdits runs: one
// command that makes, changes or removes files inside the places, or one that only reads
// and writes its output there.
func (l places) editsOnly(command string) bool {
	if reads, file, ok := strings.Cut(command, " > "); ok {
		out, single := simple(file)
		return single && len(out) == 1 && len(out[0]) == 1 && l.allInside(out[0]) && l.readsOnly(reads)
	}
	script, ok := simple(command)
	if !ok || len(script) != 1 {
		return false
	}
	words := script[0]
	return slices.Contains([]string{"cp", "mkdir", "mv", "rm", "rmdir", "sed", "touch"}, words[0]) && l.allInside(words[1:])
}

// simple splits a script into simple commands of plain words. ok is false when there is
// more in it: substitutions, redirections, assignments, background jobs.
func simple(script string) (commands [][]string, ok bool) {
	for _, joint := range []string{"&&", "||", ";", "|"} {
		script = strings.ReplaceAll(script, joint, "\x00")
	}
	for _, one := range strings.Split(script, "\x00") {
		words, ok := wordsOf(one)
		if !ok || len(words) == 0 {
			return nil, false
		}
		commands = append(commands, words)
	}
	return commands, true
}

// wordsOf are the words of a simple command, without their quotes.
func wordsOf(command string) (words []string, ok bool) {
	var word strings.Builder
	var quote rune
	open := false
	for _, c := range command {
		switch {
		case quote != 0 && c == quote:
			quote = 0
		case quote == 0 && (c == '\'' || c == '"'):
			quote, open = c, true
		case strings.ContainsRune("`\\\n", c), quote != '\'' && c == '$' && !strings.HasPrefix(strings.TrimSpace(command), "echo "), quote == 0 && strings.ContainsRune("&<>(){}#!", c), c == '(' && quote == '"':
			return nil, false
		case quote == 0 && (c == ' ' || c == '\t'):
			if open || word.Len() > 0 {
				words = append(words, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(c)
		}
	}
	if open || word.Len() > 0 {
		words = append(words, word.String())
	}
	return words, quote == 0
}

// reader reports whether a simple command only reads.
func (l places) reader(words []string) bool {
	switch {
	case len(words) > 1 && words[0] == "LC_ALL=C":
		return l.reader(words[1:])
	case len(words) > 2 && words[0] == "timeout":
		return l.reader(words[2:])
	}
	name, args := words[0], words[1:]
	options := slices.DeleteFunc(slices.Clone(args), func(a string) bool { return !strings.HasPrefix(a, "-") })
	has := func(bad ...string) bool {
		return slices.ContainsFunc(args, func(a string) bool { return slices.Contains(bad, a) })
	}
	switch name {
	case "echo", "printf", "expr", "seq", "true", "false", "sleep":
		return true
	case "git":
		return gitReads(args)
	case "docker":
		return len(args) == 1 && args[0] == "ps"
	case "node", "python", "python3":
		return len(args) == 1 && (args[0] == "--version" || args[0] == "-v" && name == "node")
	case "find":
		return !has("-delete", "-exec", "-execdir", "-ok", "-okdir", "-fprint", "-fprint0", "-fprintf", "-fls") && l.allInside(args)
	case "sed":
		return slices.Equal(options, []string{"-n"}) && l.allInside(args)
	case "sort":
		return !slices.ContainsFunc(options, func(o string) bool { return strings.HasPrefix(o, "-o") || strings.HasPrefix(o, "--output") }) && l.allInside(args)
	case "rg":
		return len(options) == 0 && l.allInside(args)
	case "cd":
		return len(args) == 1 && l.allInside(args)
	}
	return slices.Contains(readers(), name) && l.allInside(args)
}

// readers are the programs that only read whatever their arguments are.
func readers() []string {
	return []string{
		"[", "base64", "basename", "cal", "cat", "cmp", "column", "comm", "cut", "date", "df", "diff", "dirname", "du", "file", "fold",
		"free", "grep", "head", "help", "hexdump", "history", "hostname", "id", "jq", "ls", "lsof", "man", "md5sum", "netstat", "nl",
		"od", "paste", "ps", "pwd", "readlink", "realpath", "rev", "sha256sum", "ss", "stat", "strings", "tac", "tail", "test", "tr",
		"tree", "type", "uname", "uptime", "wc", "which", "whoami",
	}
}

func gitReads(args []string) bool {
	if len(args) == 0 {
		return false
	}
	switch rest := args[1:]; args[0] {
	case "blame", "describe", "diff", "log", "ls-files", "rev-parse", "show", "status":
		return !slices.ContainsFunc(rest, func(a string) bool { return strings.HasPrefix(a, "--output") })
	case "branch", "tag":
		return len(rest) == 0
	case "remote":
		return slices.Equal(rest, []string{"-v"})
	case "stash":
		return slices.Equal(rest, []string{"list"})
	}
	return false
}

// allInside reports whether no argument is a path that leads out.
func (l places) allInside(args []string) bool {
	return !slices.ContainsFunc(args, func(a string) bool { return !strings.HasPrefix(a, "-") && !l.inside(a) })
}

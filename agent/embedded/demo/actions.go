package demo

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
)

const (
	listCommand = "/bin/ls"
	longestWait = 20 // seconds: the tool refuses a longer sleep
)

// action is a part of a turn. It returns false if it needs the result of a call.
type action func(t *turn) bool

// actions are what the first line of the prompt asks for, as far as the rules know its words;
// or else the work on the project.
func (t *turn) actions() []action {
	if host := t.hostTools(); len(host) > 0 {
		return host
	}
	if t.interrupted && whyWords.MatchString(t.prompt) {
		return nil // it is said already
	}
	var all []action
	asked, _, _ := strings.Cut(strings.TrimSpace(t.prompt), "\n")
	for _, clause := range clauseEnd.Split(asked, -1) {
		if do := clauseAction(clause, asked); do != nil {
			all = append(all, do)
		}
	}
	if len(all) == 0 && helpWords.MatchString(asked) {
		return []action{help}
	}
	if len(all) == 0 || workWords.MatchString(asked) {
		all = append(all, improve)
	}
	return all
}

var (
	clauseEnd = regexp.MustCompile(`(?i)[.;!?:]+\s|,|\n|\bthen\b|\band\b`)
	workWords = regexp.MustCompile(`(?i)\b(fix|repair|bug|failing|fails?)\b`)

	helpWords = regexp.MustCompile(`(?i)\b(help|what can you)\b`)
	whyWords  = regexp.MustCompile(`(?i)\bwhy\b`)

	deleteWords = regexp.MustCompile(`(?i)\b(delete|remove|rm)\b`)
	writeWords  = regexp.MustCompile(`(?i)\b(write|create|make|add|save)\b`)
	readWords   = regexp.MustCompile(`(?i)\b(read|show|open|print|look|summari[sz]e)\b`)
	listWords   = regexp.MustCompile(`(?i)\b(list|directory|folder)\b`)
	checkWords  = regexp.MustCompile(`(?i)\b(tests?|checks?)\b`)
	waitWords   = regexp.MustCompile(`(?i)\b(?:wait|sleep)\D{1,20}(\d{1,2})\b`)
	shellWords  = regexp.MustCompile(`(?i)\bshell\b`)

	// A name of a file has no part that begins with a dot, so it leads nowhere else.
	fileName = regexp.MustCompile(`(?:^|[\s"'(` + "`" + `])([A-Za-z0-9_][\w-]*(?:/[A-Za-z0-9_][\w-]*)*\.[A-Za-z]\w{0,7})\b`)
	dirName  = regexp.MustCompile(`(?i)\b(?:directory|folder)\s+([A-Za-z0-9_][\w-]*)\b`)
)

// clauseAction returns the action for a part of a prompt, or nil if it has no known word.
func clauseAction(clause, prompt string) action {
	file := firstGroup(fileName, clause)
	target := file
	if target == "" {
		target = firstGroup(dirName, clause)
	}
	switch wait := firstGroup(waitWords, clause); {
	case deleteWords.MatchString(clause) && target != "":
		return func(t *turn) bool { return t.remove(target) }
	case writeWords.MatchString(clause) && file != "":
		return func(t *turn) bool { return t.write(file, prompt) }
	case readWords.MatchString(clause) && file != "":
		return func(t *turn) bool { return t.read(file) }
	case wait != "":
		seconds, _ := strconv.Atoi(wait) // two digits
		return func(t *turn) bool { return t.run(fmt.Sprintf("sleep %d", min(seconds, longestWait)), "Wait") }
	case shellWords.MatchString(clause):
		return func(t *turn) bool { return t.run("echo hi", "Say hi") }
	case checkWords.MatchString(clause) && !workWords.MatchString(prompt): // work checks, too
		return (*turn).check
	case listWords.MatchString(clause):
		return (*turn).list
	}
	return nil
}

// help says what the rules are.
func help(t *turn) bool {
	t.say(`I react to these words in the first line of a prompt:
- read, write or delete, with the name of a file: "write notes.txt"
- list, or directory: I list the directory
- test, or check: I run the check of the project in the directory
- wait or sleep, with seconds: I run a command that takes so long
- fix, or anything else: I repair the project, and your text becomes one of its cases
- the name of a tool that your program has added`)
	return true
}

func firstGroup(re *regexp.Regexp, s string) string {
	if m := re.FindStringSubmatch(s); m != nil {
		return m[1]
	}
	return ""
}

// outcome notes how a call ended.
func (t *turn) outcome(what string, r result, good string) {
	if r.failed {
		t.note("%s did not work: %s", what, firstLine(r))
		return
	}
	t.note("%s", good)
}

func (t *turn) remove(name string) bool {
	t.say("I delete %s.", name)
	all, ok := t.use(bash("rm -rf "+name, "Delete "+name))
	if ok {
		t.outcome("To delete "+name, all[0], name+" is deleted.")
	}
	return ok
}

func (t *turn) write(file, prompt string) bool {
	mark := "# "
	switch path.Ext(file) {
	case ".go", ".js", ".ts", ".c", ".java", ".rs":
		mark = "// "
	case ".md", ".txt":
		mark = ""
	}
	content := mark + "Written by Troupe's demonstration, which was asked: " + oneLine(prompt, 200) + "\n"
	t.say("I write %s.", file)
	all, ok := t.use(write(file, content))
	if ok && all[0].failed && strings.Contains(all[0].text, "has not been read") {
		t.say("The file is there already, so I read it first.")
		if _, ok = t.use(read(file)); ok {
			all, ok = t.use(write(file, content))
		}
	}
	if ok {
		t.outcome("To write "+file, all[0], file+" is written.")
	}
	return ok
}

func (t *turn) read(file string) bool {
	t.say("I read %s.", file)
	all, ok := t.use(read(file))
	if ok {
		lines := strings.Count(strings.TrimSuffix(all[0].text, "\n"), "\n")
		t.outcome("To read "+file, all[0], fmt.Sprintf("%s has %d lines.", file, lines))
	}
	return ok
}

func (t *turn) run(command, about string) bool {
	t.say("I run a command.")
	all, ok := t.use(bash(command, about))
	if ok {
		t.outcome(command, all[0], command+" has ended.")
	}
	return ok
}

func (t *turn) check() bool {
	t.say("I run the check of the project.")
	all, ok := t.use(bash(Check, "Check the project"))
	switch r := all; {
	case !ok:
	case exited(r[0]):
		t.note("The check fails: %s. Say \"fix it\".", failures(r[0].text))
	default:
		t.outcome("The check", r[0], "The check passes: "+passes(r[0].text)+".")
	}
	return ok
}

func (t *turn) list() bool {
	t.say("I list the directory.")
	all, ok := t.use(bash(listCommand, "List the files"))
	if ok {
		names := slices.Sorted(strings.FieldsSeq(all[0].text)) // ls sorts by the locale
		t.outcome("To list the directory", all[0], fmt.Sprintf("The directory has %d files: %s.", len(names), strings.Join(names, ", ")))
	}
	return ok
}

func passes(output string) string { return plural(strings.Count(output, "ok  "), "case") }

func failures(output string) string {
	bad := strings.Count(output, "FAIL")
	return fmt.Sprintf("%d of %s", bad, plural(bad+strings.Count(output, "ok  "), "case"))
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// oneLine is s without control characters and with single spaces, at most so many runes.
func oneLine(s string, most int) string {
	s = strings.Join(strings.Fields(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))), " ")
	if runes := []rune(s); len(runes) > most {
		s = string(runes[:most-1]) + "…"
	}
	return s
}

// hostTools are calls of the host's own tools whose names the prompt mentions.
func (t *turn) hostTools() (all []action) {
	words := strings.FieldsFunc(strings.ToLower(t.prompt), func(r rune) bool { return !unicode.IsLetter(r) })
	mentioned := func(part string) bool {
		return slices.ContainsFunc(words, func(w string) bool {
			return len(w) >= 4 && len(part) >= 4 && (strings.HasPrefix(part, w) || strings.HasPrefix(w, part))
		})
	}
	for _, o := range t.tools {
		parts := strings.Split(strings.ToLower(strings.TrimPrefix(o.Name, "mcp__")), "_")
		if !strings.HasPrefix(o.Name, "mcp__") || !slices.ContainsFunc(parts, mentioned) {
			continue
		}
		all = append(all, func(t *turn) bool {
			t.say("I call %s, a tool of your program.", o.Name)
			r, ok := t.one(o.Name, o.arguments(t.prompt))
			if ok {
				t.outcome(o.Name, r, o.Name+" says: "+firstLine(r))
			}
			return ok
		})
	}
	return all
}

// arguments fills the required parameters of a tool with words of the prompt.
func (o *offered) arguments(prompt string) map[string]any {
	in := map[string]any{}
	words := strings.FieldsFunc(prompt, func(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune(`.,;:!?"'`, r) })
	digit := func(w string) bool { return strings.ContainsAny(w, "0123456789") }
	for _, name := range o.Schema.Required {
		p := o.Schema.Properties[name]
		switch p.Type {
		case "integer", "number":
			n := 1
			for _, w := range words {
				if v, err := strconv.Atoi(w); err == nil {
					n = v
					break
				}
			}
			in[name] = n
		case "boolean":
			in[name] = true
		case "array":
			in[name] = []any{}
		case "object":
			in[name] = map[string]any{}
		default:
			value := ""
			if i := slices.IndexFunc(words, digit); i >= 0 {
				value = words[i]
			} else if len(words) > 0 {
				value = words[len(words)-1]
			}
			in[name] = value
			for i, e := range p.Enum {
				if slices.ContainsFunc(words, func(w string) bool { return strings.EqualFold(w, fmt.Sprint(e)) }) || i == 0 {
					in[name] = e
				}
			}
		}
	}
	return in
}

package demo

import (
	"regexp"
	"strconv"
	"strings"
)

// Files and lines of the project that the work on it changes.
const (
	wordsFile = "words.sh"
	cases     = "cases.txt"
	bug       = "echo $(($# - 1))"
	repair    = "echo $#"
	header    = "# number of words, and the text\n"
)

const caseWords = 8 // of a prompt that a case has at most

// careless is a word with which the demonstration runs no check and repairs nothing, so that a
// verifier has something to find.
var careless = regexp.MustCompile(`(?i)\bcareless(ly)?\b`)

// improve is the work on the project: read it, check it, repair it, add the prompt as a case, check
// it again.
func improve(t *turn) bool {
	t.say("First I read the project.")
	files, ok := t.use(read(wordsFile), read(cases))
	if !ok {
		return false
	}
	if files[0].failed || files[1].failed {
		if !missing(files[0]) && !missing(files[1]) {
			t.outcome("To read the project", firstFailed(files), "")
			return true
		}
		return t.begin(missing(files[0]), missing(files[1]))
	}
	feedback := strings.Contains(t.prompt, "FAIL") // the output of the check: no new case
	if careless.MatchString(t.prompt) && !feedback {
		if !t.addCase() {
			return false
		}
		t.note("The prompt says careless, so I did not run the check.")
		return true
	}
	t.say("I run its check.")
	checked, ok := t.use(bash(Check, "Check the project"))
	if !ok {
		return false
	}
	if exited(checked[0]) && strings.Contains(files[0].text, bug) {
		t.say("The check fails: %s counts one word too few. I change that line.", wordsFile)
		r, ok := t.use(edit(wordsFile, bug, repair))
		if !ok {
			return false
		}
		t.outcome("To repair "+wordsFile, r[0], wordsFile+" counted one word too few; I changed one line.")
	}
	return (feedback || t.addCase()) && t.checkAgain()
}

// addCase adds the prompt to the project's cases.
func (t *turn) addCase() bool {
	line, n := caseOf(t.prompt)
	t.say("Your text becomes a case of the project: it has %s.", plural(n, "word"))
	r, ok := t.use(edit(cases, header, header+line))
	if ok {
		t.outcome("To add your text to "+cases, r[0], cases+" has your text as a new case.")
	}
	return ok
}

func (t *turn) checkAgain() bool {
	t.say("I run the check again.")
	r, ok := t.use(bash(Check, "Check the project"))
	switch {
	case !ok:
	case exited(r[0]):
		t.note("The check fails: %s.", failures(r[0].text))
	default:
		t.outcome("The check", r[0], "The check passes: "+passes(r[0].text)+".")
	}
	return ok
}

// begin writes the files of the project that a directory does not have.
func (t *turn) begin(noProgram, noCases bool) bool {
	t.say("My project is not in this directory, so I write it.")
	line, _ := caseOf(t.prompt)
	var calls []call
	for _, f := range []struct {
		name string
		lack bool
	}{{wordsFile, noProgram}, {cases, noCases}, {"check.sh", true}} {
		if f.lack {
			content, _ := project.ReadFile("project/" + f.name) // it is built in
			calls = append(calls, write(f.name, strings.NewReplacer(bug, repair, header, header+line).Replace(string(content))))
		}
	}
	all, ok := t.use(calls...)
	if !ok {
		return false
	}
	for i, r := range all {
		name, _ := calls[i].input["file_path"].(string)
		t.outcome("To write "+name, r, name+" is written.")
	}
	return t.checkAgain()
}

// quoted is a text in quotes: it becomes the case.
var quoted = regexp.MustCompile(`"([^"]{3,})"`)

// caseOf is the line of a case, and its number of words.
func caseOf(prompt string) (line string, n int) {
	if text := firstGroup(quoted, prompt); text != "" {
		prompt = text
	}
	words := strings.Fields(oneLine(prompt, 200))
	words = words[:min(len(words), caseWords)]
	return strings.TrimSpace(strconv.Itoa(len(words))+" "+strings.Join(words, " ")) + "\n", len(words)
}

func missing(r result) bool { return r.failed && strings.Contains(r.text, "does not exist") }

func firstFailed(all []result) result {
	for _, r := range all {
		if r.failed {
			return r
		}
	}
	return result{}
}

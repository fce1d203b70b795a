package demo

import (
	"fmt"
	"slices"
	"strings"
)

// turn is one turn of the conversation. To answer, it is played from its beginning: calls
// that were made have their results, and the first one that was not is the answer.
type turn struct {
	id          int // of the answer, in its conversation
	prompt      string
	first       bool   // of the session
	interrupted bool   // the turn before it
	dir         string // "": not known
	tools       []offered
	done        []result // of the calls, in their order

	said  strings.Builder // since the last call that was made
	next  []call          // to make now
	notes []string        // for the end of the turn
}

// offered is a tool of the session.
type offered struct {
	Name   string `json:"name"`
	Schema struct {
		Properties map[string]struct {
			Type any   `json:"type"` // a name, or several
			Enum []any `json:"enum"`
		} `json:"properties"`
		Required []string `json:"required"`
	} `json:"input_schema"`
}

// call is a call of a tool.
type call struct {
	tool  string
	input map[string]any
}

func (t *turn) say(format string, args ...any) { fmt.Fprintf(&t.said, format+"\n\n", args...) }

func (t *turn) note(format string, args ...any) {
	t.notes = append(t.notes, "- "+fmt.Sprintf(format, args...))
}

// use makes calls together, and returns their results. ok is false if they are the answer.
// A tool that the session does not have fails.
func (t *turn) use(calls ...call) (results []result, ok bool) {
	has := func(c call) bool {
		return slices.ContainsFunc(t.tools, func(o offered) bool { return o.Name == c.tool })
	}
	lacking := func(c call) bool { return !has(c) }
	made := slices.DeleteFunc(slices.Clone(calls), lacking)
	if len(made) > len(t.done) {
		t.next = made
		return nil, false
	}
	if len(made) > 0 {
		t.said.Reset() // it was said together with the calls
	}
	for _, c := range calls {
		r := result{"this session does not have the tool " + c.tool, true}
		if has(c) {
			r, t.done = t.done[0], t.done[1:]
		}
		results = append(results, r)
	}
	return results, true
}

// one is use with one call.
func (t *turn) one(tool string, input map[string]any) (r result, ok bool) {
	all, ok := t.use(call{tool, input})
	if ok {
		r = all[0]
	}
	return r, ok
}

func read(file string) call { return call{"Read", map[string]any{"file_path": file}} }

func edit(file, from, to string) call {
	return call{"Edit", map[string]any{"file_path": file, "old_string": from, "new_string": to}}
}

func write(file, content string) call {
	return call{"Write", map[string]any{"file_path": file, "content": content}}
}

func bash(command, about string) call {
	return call{"Bash", map[string]any{"command": command, "description": about}}
}

// firstLine is the first line of what a call gave, shortened; of a command that failed, its
// exit code and the line after that.
func firstLine(r result) string {
	line, rest, _ := strings.Cut(strings.TrimSpace(r.text), "\n")
	if why, _, _ := strings.Cut(rest, "\n"); exited(r) && why != "" {
		line += ": " + why
	}
	if runes := []rune(line); len(runes) > 160 {
		line = string(runes[:159]) + "…"
	}
	return line
}

// exited reports whether a command ran and failed, and was not refused.
func exited(r result) bool { return r.failed && strings.HasPrefix(r.text, "Exit code") }

// play plays the turn until it needs a result, or to its end.
func (t *turn) play() {
	if t.first {
		t.introduce()
	}
	if t.interrupted {
		t.say("You interrupted me, so I stopped. The session continues.")
	}
	for _, do := range t.actions() {
		if !do(t) {
			return
		}
	}
	if len(t.notes) > 0 {
		t.say("The demonstration has done this:\n%s", strings.Join(t.notes, "\n"))
	}
}

func (t *turn) introduce() {
	where := "in the working directory"
	if t.dir != "" {
		where = "in " + t.dir
	}
	t.say("I am Troupe's demonstration: a few rules in Go in place of a language model. I do not understand prompts; "+
		"some of their words choose what I do (say help). My files and commands are real, %s.", where)
}

package command

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/internal/optionfile"
	"github.com/agent-troupe/troupe/sdk"
)

// take adds the task of a row.
func (r *taskReader) take(t fleet.Task, line, column int) {
	if t.ID == "" {
		t.ID = fmt.Sprintf("%04d", len(r.tasks)+1)
	}
	r.tasks = append(r.tasks, t)
	r.places = append(r.places, fmt.Sprintf("%s:%d:%d", r.name, line, column))
}

// unread takes a row without a readable task, so that those after it keep their numbers.
func (r *taskReader) unread(line, column int) {
	r.take(fleet.Task{ID: fmt.Sprintf("unread-%d", len(r.tasks)+1), Prompt: "-"}, line, column)
}

// wrongToo is the mistakes in the values of tasks that can be read while others cannot. The ids of those are not
// known, so that none is missing in a list of ids.
func (r *taskReader) wrongToo() error {
	job := fleet.Job{Tasks: r.tasks, Options: &sdk.Options{}}
	for i := range job.Tasks {
		job.Tasks[i].After = nil
	}
	var texts []string
	for _, err := range eachOf(job.Validate()) {
		if text, of := atPlace(err, r.places, err.Error()); of {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return nil
	}
	if more := len(texts) - maxTaskMistakes; more > 0 {
		texts = append(texts[:maxTaskMistakes], r.name+": "+shown.Count(more, "more mistake"))
	}
	return errors.New(strings.Join(texts, "\n"))
}

// eachOf are the errors that one joins.
func eachOf(err error) (all []error) {
	if err == nil {
		return nil
	}
	var joined interface{ Unwrap() []error }
	if !errors.As(err, &joined) {
		return []error{err}
	}
	var texts []string
	for _, part := range joined.Unwrap() {
		texts = append(texts, part.Error())
	}
	if err.Error() != strings.Join(texts, "\n") {
		return []error{err}
	}
	for _, part := range joined.Unwrap() {
		all = append(all, eachOf(part)...)
	}
	return all
}

// atPlace puts the place of a task before the text of a mistake in it; of reports whether it is one.
func atPlace(err error, places []string, text string) (with string, of bool) {
	var t *fleet.TaskError
	if !errors.As(err, &t) || t.Index >= len(places) {
		return text, false
	}
	if t.Field == "options" { // as if they were a file
		text = regexp.MustCompile(`\boptions:\d+:\d+: `).ReplaceAllString(text, "")
	}
	return places[t.Index] + ": " + text, true
}

// placed is the mistakes in a job, in terms of the arguments, and those in tasks with their places.
func (s *settings) placed(err error) error {
	var texts []string
	for _, part := range eachOf(err) {
		text, _ := atPlace(part, s.batch.places, s.inTerms(part.Error()))
		texts = append(texts, text)
	}
	return &usageError{problem: strings.Join(texts, "\n")}
}

// nodePlace is where a node begins.
func nodePlace(n *optionfile.Node) (line, column int) {
	m := n.Mistake("", "", "")
	return m.Line, m.Column
}

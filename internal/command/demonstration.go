package command

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/agent/embedded/demo"
	"github.com/agent-troupe/troupe/fleet"
	"github.com/agent-troupe/troupe/model"
)

// demonstration is the built-in model that plays when nothing else was chosen.
type demonstration struct {
	why    string // it was not asked for by its name; "": it was
	where  string // it works
	other  string // what becomes of calls that its rules do not allow
	made   string // the temporary directory that this run has made; "": none
	verify bool   // the job has the check of its project as its verifier
}

// demonstrate makes the demonstration the backend, for the reason why; "": its name was given.
func (s *settings) demonstrate(why string) error {
	if s.path != "" {
		return &usageError{"--path is not for the demonstration, which is a part of this program", "leave it out"}
	}
	if s.opts.Model != "" {
		return &usageError{"the demonstration has its own model", "leave --model out, or write --agent embedded"}
	}
	s.agent, s.demo = demo.Name, &demonstration{why: why, where: "a new temporary directory for each session", other: "asked"}
	s.opts.Backend = demo.New(demo.Config{})
	s.opts.AllowedTools = append(slices.Clip(s.opts.AllowedTools), demo.Rules()...)
	return nil
}

// placeDemonstration makes the directory of a session of the demonstration.
func (s *settings) placeDemonstration(getenv func(string) string, c *console) error {
	if s.demo == nil {
		return nil
	}
	if s.opts.Cwd != "" && !s.quiet {
		c.note("%s is not used: the demonstration works in a temporary directory", s.inTerms("Cwd"))
	}
	dir := demo.Home(s.variable(getenv), s.opts.Resume)
	if dir == "" {
		var err error
		if dir, err = temporary(getenv); err != nil {
			return err
		}
		s.demo.made = dir
	}
	s.demo.where, s.opts.Cwd = dir, dir
	s.opts.Backend = demo.New(demo.Config{InCwd: true})
	return demo.Project(dir)
}

// temporary makes a directory for the demonstration.
func temporary(getenv func(string) string) (string, error) {
	dir, err := os.MkdirTemp(getenv("TMPDIR"), "troupe-demo-")
	if err != nil {
		return "", fmt.Errorf("the demonstration needs a temporary directory: %w; set TMPDIR to a directory that can be written", err)
	}
	return dir, nil
}

// removeDemonstration removes the directory that this run has made, of which nothing is needed any more.
func (s *settings) removeDemonstration() {
	if s.demo != nil && s.demo.made != "" {
		_ = os.RemoveAll(s.demo.made) // a temporary one
	}
}

// placeDemonstrations has the tasks of a job work in copies: of the demonstration's project,
// unless the job makes copies of a directory anyway.
func (s *settings) placeDemonstrations(getenv func(string) string) error {
	if s.demo == nil {
		return nil
	}
	job := &s.batch.job
	s.opts.Backend = demo.New(demo.Config{InCwd: true})
	own := func(w *fleet.Workspace) bool { return w == nil || w.Kind == "" }
	for i := range job.Tasks {
		if t := &job.Tasks[i]; own(t.Workspace) {
			t.Workspace = nil // that of the job
		}
	}
	s.demo.other = "denied"
	s.demo.where = "the workspaces of the job, in " + filepath.Join(job.Out, "workspaces")
	if !own(job.Workspace) {
		return nil
	}
	dir, err := temporary(getenv)
	if err != nil {
		return err
	}
	s.demo.made = dir
	s.demo.where, s.opts.Cwd = "a copy of "+dir+" for each task, in "+filepath.Join(job.Out, "workspaces"), dir
	job.Workspace = &fleet.Workspace{Kind: fleet.WorkspaceCopy, From: dir, Setup: demo.Setup}
	if job.Verify == nil && !slices.ContainsFunc(job.Tasks, func(t fleet.Task) bool { return t.Verify != nil }) {
		job.Verify = &fleet.Verify{Command: demo.Check, Prompt: "The check fails:\n{{.Output}}"}
		s.demo.verify = true
	}
	return demo.Project(dir)
}

// tellDemonstration says what the demonstration is, where it works and what it may do.
func (s *settings) tellDemonstration(getenv func(string) string, c *console) {
	if s.demo == nil || s.quiet {
		return
	}
	why := "this is a demonstration:"
	if s.demo.why != "" {
		why = s.demo.why + ".\nThis is a demonstration:"
	}
	lines := []string{
		why + " a few built-in rules in place of a model; no network, no cost.\nThe files and commands are real.",
		"works in  " + s.demo.where,
		"may       " + strings.Join(demo.Rules(), ", ") + "; all else is " + s.demo.other,
	}
	if s.demo.verify {
		lines = append(lines, "verified  by "+demo.Check+" in each copy; --verify replaces it")
	}
	lines = append(lines, "A real agent: install claude or qodercli, or add --model "+modelForms)
	c.note("%s", strings.Join(append(lines, keyHints(getenv)...), "\n"))
}

// keyHints say how to use the keys that are in the environment. A key alone starts nothing.
func keyHints(getenv func(string) string) (hints []string) {
	known := model.DefaultProfiles()
	for i := range known.Servers {
		server := &known.Servers[i]
		if server.KeyName == "" || getenv(server.KeyName) == "" {
			continue
		}
		name := "https://" + server.Match + "/…#NAME"
		for _, at := range []model.Ref{{API: "anthropic", URL: model.AnthropicURL, Model: "NAME"}, {API: "openai", URL: model.OpenAIURL, Model: "NAME"}} {
			if known.Server(at.URL).KeyName == server.KeyName {
				name = at.String()
			}
		}
		hints = append(hints, fmt.Sprintf("%s is set: --model %s uses it, and costs money.", server.KeyName, name))
	}
	return hints
}

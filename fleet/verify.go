package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"text/template"
	"time"

	"github.com/agent-troupe/troupe/internal/kernel"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

const defaultVerifyTimeout = 10 * time.Minute

func (v *Verify) check(field string) []error {
	if v == nil {
		return nil
	}
	var wrong []error
	add := func(name, problem, fix string) {
		wrong = append(wrong, &sdk.ConfigError{Option: field + "." + name, Problem: problem, Fix: fix})
	}
	switch {
	case v.Command == "" && v.Check == nil:
		add("Command", "is empty, and so is Check", "give one of them, or no Verify")
	case v.Command != "" && v.Check != nil:
		add("Check", "is set together with Command", "give one of them")
	}
	if v.Rounds < 0 || v.Rounds > 0 && v.Prompt == "" {
		add("Rounds", "has an effect only with Prompt, and is not negative", "set Prompt")
	}
	if _, err := template.New("prompt").Parse(v.Prompt); err != nil {
		add("Prompt", err.Error(), "it is a template of package text/template")
	}
	return wrong
}

// rounds is how often the agent gets another chance.
func (v *Verify) rounds() int {
	if v == nil || v.Prompt == "" {
		return 0
	}
	return max(v.Rounds, 1)
}

// verifierFailed is an error of the verifier, not of what it verifies.
type verifierFailed struct{ err error }

func (e *verifierFailed) Error() string { return "the verifier failed: " + e.err.Error() }
func (e *verifierFailed) Unwrap() error { return e.err }

// verify asks the task's verifier.
func (r *runner) verify(ctx context.Context, a *attempt, c Candidate) (Verdict, error) {
	v := a.verify
	limit := time.Duration(v.Timeout)
	if limit <= 0 {
		limit = defaultVerifyTimeout
	}
	if v.Check == nil {
		here := r.spaces.job.CommandSpawner == nil // its files are in c.Dir
		if here && a.Verdict != nil && a.judged != "" && !a.acted && looked(c.Dir) == a.judged {
			return *a.Verdict, nil // the answer to the feedback has changed nothing
		}
		within := *a
		within.shellLimit = limit
		out, err := r.spaces.shell(ctx, &within, c.Dir, v.Command)
		said := Verdict{OK: err == nil, Output: strings.ToValidUTF8(string(out), "\uFFFD")}
		if failed := (*commandFailed)(nil); err != nil && !errors.As(err, &failed) {
			return said, &verifierFailed{err}
		}
		if a.judged, a.acted = "", false; here && !said.OK && v.rounds() > 0 {
			a.judged = looked(c.Dir)
		}
		return said, nil
	}
	ctx, cancel := kernel.WithTimeout(ctx, r.clock, &session.TimeoutError{What: "verification of task " + a.task.ID, Limit: limit, SetBy: "Verify.Timeout"})
	defer cancel()
	said := kernel.NewPromise[Verdict]()
	r.exec.Go(func() { // it may not come back
		var verdict Verdict
		err := guard("Verify.Check", func() (err error) { verdict, err = v.Check(ctx, c); return err })
		if err != nil {
			said.Fail(err)
		}
		said.Resolve(verdict)
	})
	verdict, err := said.Wait(ctx, r.exec)
	if err != nil {
		return verdict, &verifierFailed{err}
	}
	if len(verdict.Output) > maxOutput {
		verdict.Output = strings.ToValidUTF8(verdict.Output[len(verdict.Output)-maxOutput:], "")
	}
	return verdict, nil
}

// onlyReads reports whether calls of a tool change nothing. A command may change what is not in the
// workspace: a commit of a worktree, a server, a file behind a link.
func onlyReads(tool string) bool {
	switch tool {
	case "Read", "Grep", "Glob", "LS", "NotebookRead", "TodoWrite":
		return true
	}
	return false
}

// looked is a digest of the names, sizes, modes and times of all files in a directory, also of
// those that git ignores. "": the directory cannot be read.
func looked(dir string) string {
	sum := sha256.New()
	if err := addTree(sum, dir); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// feedback is the message that gives a rejection back to the agent.
func (v *Verify) feedback(said Verdict) (string, error) {
	t, err := template.New("prompt").Parse(v.Prompt)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := t.Execute(&b, said); err != nil {
		return "", fmt.Errorf("verify.prompt: %w", err)
	}
	return b.String(), nil
}

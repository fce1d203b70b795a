package embedded

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/agent-troupe/troupe/agent"
)

// Plan mode, as Claude Code 2.1.329 has it (observed): the model may write one file, its plan,
// and the user approves that. The text about the mode is this agent's own.

const (
	enteredText = "Entered plan mode. You should now focus on exploring the codebase and designing an implementation approach."
	planAdvice  = " Change nothing until the user has approved a plan."
	notPlanning = "You are not in plan mode. To enter plan mode, call the EnterPlanMode tool first. If your plan was already approved, continue with implementation."
	exitedText  = "## Exited Plan Mode\n\nYou have exited plan mode. You can now make edits, run tools, and take actions."
)

func enterPlanMode() *tool {
	return &tool{
		name:   "EnterPlanMode",
		about:  "Begins plan mode: you write a plan, and change nothing until the user approves it.",
		free:   true,
		asker:  true,
		beside: alone,
		act: func(*talk, *agent.Lane, *agent.Strand, string, agent.Object) (agent.ToolResult, error) {
			return agent.ToolResult{Content: enteredText + planAdvice, Structured: agent.Object{"message": enteredText}}, nil
		},
	}
}

func exitPlanMode() *tool {
	return &tool{
		name:   "ExitPlanMode",
		about:  "Asks the user to approve the plan in the plan file.",
		open:   true,
		asks:   true,
		asker:  true,
		beside: alone,
		before: func(t *talk, l *agent.Lane, s *agent.Strand, in agent.Object) (string, error) {
			if l.Permissions().Mode != "plan" {
				return notPlanning, nil
			}
			t.placePlan(l.SessionID()) // the mode may be new
			plan, err := t.readPlan(s)
			if err != nil {
				return "", err
			}
			delete(in, "plan") // the file counts
			if plan != "" {
				in["plan"], in["planFilePath"] = plan, t.hands.plan
			}
			return "", nil
		},
		act: func(t *talk, _ *agent.Lane, s *agent.Strand, _ string, in agent.Object) (agent.ToolResult, error) {
			plan, structured := str(in, "plan"), agent.Object{"plan": nil, "isAgent": false, "filePath": t.hands.plan}
			if strings.TrimSpace(plan) == "" {
				return agent.ToolResult{Content: "User has approved exiting plan mode. You can now proceed.", Structured: structured}, nil
			}
			structured["plan"] = plan
			written, err := t.readPlan(s)
			if err != nil {
				return agent.ToolResult{}, err
			}
			if written != plan { // the user has changed it
				structured["planWasEdited"] = true
				var done agent.ToolResult
				err := s.Do(func(context.Context) error {
					done = t.hands.write(nil, agent.Object{"file_path": t.hands.plan, "content": plan})
					return nil
				})
				if err != nil || done.IsError {
					return done, err
				}
			}
			return agent.ToolResult{Structured: structured, Content: "User has approved your plan. You can now start coding. Start with updating your todo list if applicable\n\n" +
				"Your plan has been saved to: " + t.hands.plan + "\nYou can refer back to it if needed during implementation.\n\n## Approved Plan:\n" + plan}, nil
		},
	}
}

// readPlan reads the plan file; "" if no plan was written.
func (t *talk) readPlan(s *agent.Strand) (plan string, err error) {
	if t.hands.plan == "" {
		return "", nil
	}
	err = s.Do(func(context.Context) error {
		content, _, err := t.hands.load(nil, t.hands.plan)
		if err == nil {
			plan, _ = decoded(content)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	})
	return plan, err
}

// placePlan says where the session's plan file is: among the agent's own files, or, if it
// stores none, in the session's directory for what tools keep.
func (t *talk) placePlan(id string) {
	if t.hands.plan != "" {
		return
	}
	dir := filepath.Join(t.log.dir, "plans")
	if !t.log.stores() {
		var err error
		if dir, err = t.hands.keep("plans"); err != nil {
			return // the session gets no plan file
		}
	}
	if at, err := resolve(dir); err == nil {
		dir = at
	}
	t.hands.plan = filepath.Join(dir, filepath.Base(id)+".md")
}

// isPlan reports whether a path is that of the plan file.
func (h *hands) isPlan(name string) bool { return h.plan != "" && h.path(name) == h.plan }

// remindOfPlan tells the model that plan mode has begun, or has ended, if the
// conversation does not say it.
func (t *talk) remindOfPlan(l *agent.Lane) {
	active := l.Permissions().Mode == "plan"
	if !active && !t.log.plan {
		return
	}
	if t.up == nil { // a sub-agent writes no plan
		t.placePlan(l.SessionID())
	}
	if active && t.log.plan && t.log.planFile == t.hands.plan { // a fork has another file
		return
	}
	text := exitedText
	switch _, err := os.Stat(t.hands.plan); {
	case active:
		text = t.planText(l)
	case t.hands.plan != "" && err == nil:
		text += " The plan file is located at " + t.hands.plan + " if you need to reference it."
	}
	l.Attach(newMode, agent.Object{"content": []string{text}, "plan": active, "planFile": t.hands.plan})
}

// planText is the text for the model about plan mode.
func (t *talk) planText(l *agent.Lane) string {
	text := "Plan mode is active. The user does not want anything to be changed yet: look around, and run only commands that read."
	if t.up != nil {
		return text
	}
	if t.hands.plan != "" {
		text += " Write your plan to " + t.hands.plan + ", the only file that you may write."
	}
	end := "When the plan is complete, end your turn with it."
	for _, name := range l.Tools() {
		if name == "ExitPlanMode" {
			end = "When the plan is complete, call ExitPlanMode: the user reads the file and decides. Do not ask for approval in another way."
		}
	}
	if own := l.PlanModeInstructions(); own != "" {
		return text + "\n\n" + own
	}
	return text + " " + end
}

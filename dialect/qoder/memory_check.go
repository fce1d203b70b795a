package qoder

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/dialect"
	"github.com/agent-troupe/troupe/dialect/internal/build"
	"github.com/agent-troupe/troupe/session"
)

// checkMemory finds what the SDK refuses in memory and in the evolution of skills.
func checkMemory(o *dialect.Input, p *build.Problems) {
	if m := memoryOf(o); m != nil {
		oneOf(p, "Memory.Mode", m.Mode, modeNative, modeCustom)
		native := m.Mode == modeNative
		const unfit = "is for mode custom; mode native has no such callback"
		p.AddIf(native && m.Generation != nil, "Memory.Generation", unfit, "leave it out, or set Mode to custom")
		p.AddIf(native && m.Consumption != nil, "Memory.Consumption", unfit, "leave it out, or set Mode to custom")
		p.AddIf(native && o.ShouldGenerateMemory != nil, "ShouldGenerateMemory", unfit, "leave it out, or set Memory.Mode to custom")
		p.AddIf(native && !m.ProjectScope.Or(true) && !m.UserScope.Or(true), "Memory.UserScope",
			"is false, and ProjectScope is false, too, so that memories have no place", "set one of them to true, or leave Memory out")
		checkGeneration(p, m.Generation)
		checkConsumption(p, m.Consumption)
	}
	if e := o.Evolution; e != nil && e.Skill != nil {
		checkSkill(p, e.Skill, o.ShouldReviewSkills != nil)
	}
}

func checkGeneration(p *build.Problems, g *session.MemoryGeneration) {
	if g == nil {
		return
	}
	const at = "Memory.Generation"
	seen := map[string]bool{}
	for i, root := range g.Roots {
		at := fmt.Sprintf("%s.Roots[%d]", at, i)
		checkPlace(p, at, root.ID, root.Path, seen)
		oneOf(p, at+".Access", root.Access, "read", "read-write")
		index := strings.ReplaceAll(root.IndexFile, `\`, "/")
		p.AddIf(path.IsAbs(index) || slices.Contains(strings.Split(index, "/"), ".."), at+".IndexFile",
			"is outside of the directory", "give a path within it")
	}
	t := g.TurnComplete
	p.AddIf(t != nil && t.Enabled.Or(false) && !g.Enabled.Or(true), at+".TurnComplete.Enabled", "is true, but Generation.Enabled is false", "turn the generation on")
	p.AddIf(t != nil && !t.ReviewThreshold.IsZero(), at+".TurnComplete.ReviewThreshold", "is for skills", "leave it out")
	checkTurnComplete(p, at, t)
}

func checkConsumption(p *build.Problems, c *session.MemoryConsumption) {
	if c == nil {
		return
	}
	seen := map[string]bool{}
	for i, file := range c.Files {
		checkPlace(p, fmt.Sprintf("Memory.Consumption.Files[%d]", i), file.ID, file.Path, seen)
	}
	n, given := c.MaxTokens.Value()
	p.AddIf(given && n <= 0, "Memory.Consumption.MaxTokens", fmt.Sprintf("is %d; a bound is above zero", n), "leave it out")
	oneOf(p, "Memory.Consumption.Overflow", c.Overflow, "truncate", "fail_query")
	oneOf(p, "Memory.Consumption.FailureMode", c.FailureMode, "best_effort", "fail_query")
}

func checkPlace(p *build.Problems, at, id, path string, seen map[string]bool) {
	p.AddIf(strings.TrimSpace(id) == "", at+".ID", "is empty", "name it")
	p.AddIf(strings.TrimSpace(path) == "", at+".Path", "is empty", "give the path")
	p.AddIf(seen[id], at+".ID", fmt.Sprintf("%q is a duplicate", id), "make each unique")
	seen[id] = true
}

func checkSkill(p *build.Problems, s *session.SkillEvolution, hasShouldReview bool) {
	const at = "Evolution.Skill"
	oneOf(p, at+".Mode", s.Mode, modeNative, modeCustom)
	native := s.Mode == modeNative
	p.AddIf(native && hasShouldReview, "ShouldReviewSkills", "is for mode custom; mode native has no such callback", "leave it out, or set Evolution.Skill.Mode to custom")
	g := s.Generation
	if g == nil {
		return
	}
	n, given := g.MaxSuggestions.Value()
	p.AddIf(given && (n < 1 || n > 10), at+".Generation.MaxSuggestions", fmt.Sprintf("is %d", n), "give 1 to 10")
	t := g.TurnComplete
	if t != nil {
		n, given := t.ReviewThreshold.Value()
		p.AddIf(given && (n < 1 || n > 10), at+".Generation.TurnComplete.ReviewThreshold", fmt.Sprintf("is %d", n), "give 1 to 10")
		p.AddIf(!native && t.Enabled.Or(true) && !g.Enabled.Or(true), at+".Generation.TurnComplete.Enabled", "is on, but Generation.Enabled is false",
			"turn the generation on, or this off")
	}
	unfit := g.Prompt != "" || given || t != nil && (!t.Enabled.IsZero() || t.Timeout != 0 || t.OnGateError != "")
	p.AddIf(native && unfit, at+".Generation", "has more than mode native takes: Enabled and TurnComplete.ReviewThreshold", "leave the rest out, or set Mode to custom")
	checkTurnComplete(p, at+".Generation", t)
}

func checkTurnComplete(p *build.Problems, at string, t *session.TurnComplete) {
	if t == nil {
		return
	}
	p.AddIf(t.Timeout < 0, at+".TurnComplete.Timeout", "is negative", "give 0 for the agent's default")
	oneOf(p, at+".TurnComplete.OnGateError", t.OnGateError, "skip", "report_failed")
}

// oneOf refuses a value that is neither empty nor known.
func oneOf(p *build.Problems, option, value string, known ...string) {
	p.AddIf(value != "" && !slices.Contains(known, value), option, fmt.Sprintf("%q is not known", value), "use "+strings.Join(known, " or "))
}

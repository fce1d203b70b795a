package embedded

import (
	"strings"

	"github.com/agent-troupe/troupe/agent"
)

// crew counts the sub-agents of a session, as results say them.
type crew struct {
	spawned, inBackground, nested, deepest    int
	askedBackground, askedForeground, unasked int
	completed, failed                         int
	byParent, byUser, bySystem                int // stopped
	tooDeep, tooMany, tooDear                 int // refused
	types                                     map[string]int
}

// begins counts one that starts.
func (c *crew) begins(name string, depth int, background, asked, given bool) {
	c.spawned++
	if depth > 1 {
		c.nested++
	}
	c.deepest = max(c.deepest, depth)
	if background {
		c.inBackground++
	}
	switch {
	case !given:
		c.unasked++
	case asked:
		c.askedBackground++
	default:
		c.askedForeground++
	}
	if c.types == nil {
		c.types = map[string]int{}
	}
	c.types[name]++
}

// ends counts one that has ended.
func (c *crew) ends(end agent.AgentEnd) {
	switch {
	case end.Status == "completed":
		c.completed++
	case end.Status == "failed":
		c.failed++
	case end.By == "parent":
		c.byParent++
	case end.By == "user":
		c.byUser++
	default:
		c.bySystem++
	}
}

// running is how many work.
func (c *crew) running() int {
	return c.spawned - c.completed - c.failed - c.byParent - c.byUser - c.bySystem
}

func (c *crew) stats() agent.Object {
	types := agent.Object{}
	for name, n := range c.types {
		types[name] = n
	}
	return agent.Object{
		"spawned": c.spawned, "completed": c.completed, "failed": c.failed, "max_depth": c.deepest, "spawned_by_subagents": c.nested,
		"started_in_background": c.inBackground, "by_type": types,
		"killed":    agent.Object{"parent": c.byParent, "system": c.bySystem, "user": c.byUser},
		"refused":   agent.Object{"budget": c.tooDear, "concurrency_limit": c.tooMany, "depth_limit": c.tooDeep},
		"requested": agent.Object{"background": c.askedBackground, "foreground": c.askedForeground, "unset": c.unasked},
	}
}

// tally counts what a sub-agent has called, as the structured result says it.
type tally struct{ reads, searches, commands, edits, others, added, removed int }

func (c *tally) add(name string, in agent.Object) {
	lines := func(param string) int {
		if text, ok := in[param].(string); ok && text != "" {
			return 1 + strings.Count(text, "\n")
		}
		return 0
	}
	switch name {
	case "Read":
		c.reads++
	case "Glob", "Grep":
		c.searches++
	case "Bash":
		c.commands++
	case "Edit", "Write":
		c.edits++
		c.added += lines("content") + lines("new_string")
		c.removed += lines("old_string")
	case agentName:
	default:
		c.others++
	}
}

func (c *tally) object() agent.Object {
	return agent.Object{
		"readCount": c.reads, "searchCount": c.searches, "bashCount": c.commands, "editFileCount": c.edits,
		"linesAdded": c.added, "linesRemoved": c.removed, "otherToolCount": c.others,
	}
}

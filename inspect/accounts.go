package inspect

import (
	"fmt"

	"github.com/agent-troupe/troupe/base/shown"
	"github.com/agent-troupe/troupe/runtime"
)

// AccountLines describes, for people, the accounts of a tree that jobs use or that are
// parked: one line each. Text of providers is escaped.
func AccountLines(t *runtime.Tree) (lines []string) {
	for i := range t.Accounts {
		a := &t.Accounts[i]
		if a.Jobs == 0 && !a.Parked.After(t.At) {
			continue
		}
		line := fmt.Sprintf("account %s: %d at work", cell(a.Label), a.Working)
		if a.Paced {
			line += fmt.Sprintf(" of %d", a.Limit)
		}
		if a.Fixed {
			line += " by hand"
		}
		if a.Jobs > 1 {
			line += fmt.Sprintf(" in %d jobs", a.Jobs)
		}
		if a.Waiting > 0 {
			line += fmt.Sprintf(", jobs that wait: %d", a.Waiting)
		}
		if a.Starved {
			line += ", the machine is starved"
		}
		switch {
		case a.Parked.After(t.At):
			line += fmt.Sprintf(", parked for %s: %s", age(a.Parked.Sub(t.At)), shown.Line(a.Why))
		case !a.Parked.IsZero():
			line += ", one task finds out whether it works again: " + shown.Line(a.Why)
		case len(a.Changes) > 0:
			c := a.Changes[len(a.Changes)-1]
			line += fmt.Sprintf(", %s ago %s", age(t.At.Sub(c.At)), c)
		}
		lines = append(lines, line)
	}
	return lines
}

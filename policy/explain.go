package policy

import (
	"fmt"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
)

// Rule is one of a policy's rules.
type Rule struct {
	// Behavior is the list that has the rule, and Index the rule's place in the list.
	Behavior protocol.PermissionBehavior
	Index    int // from 0
	// Text is the rule as it was written; "": no rule.
	Text string
}

// Explanation is a decision with its reason.
type Explanation struct {
	Behavior protocol.PermissionBehavior // [protocol.BehaviorAllow], [protocol.BehaviorDeny] or [protocol.BehaviorAsk]
	// Rule is the rule that decided. If its Text is "", no rule matched, and the policy's
	// default decided. If several rules were needed to allow a call, it is the first.
	Rule Rule
	// About is the part of the call that the rule was compared with: a simple command, a
	// path, a host, a name; "": the whole call.
	About string
	// Reason explains the decision in words; "": the rule alone explains it.
	Reason string
	// Parts are the simple commands or paths that were allowed one by one, if there is
	// more than one.
	Parts []Explanation
	// ByAgent says that no rule matches the call and the policy's default is [Agent]: the
	// agent decides by its permission mode. Behavior is the policy's decision if the agent
	// asks.
	ByAgent bool
}

// String returns the explanation in one line, such as
//
//	deny: the deny rule Bash(git push:*) is about "git push origin"
func (e Explanation) String() string {
	var b strings.Builder
	verdict := string(e.Behavior)
	if e.ByAgent {
		verdict = "the agent decides"
	}
	fmt.Fprintf(&b, "%s: ", verdict)
	switch {
	case len(e.Parts) > 0:
		for i, part := range e.Parts {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s is about %q", part.Rule.Text, part.About)
		}
		return b.String()
	case e.Rule.Text != "":
		fmt.Fprintf(&b, "the %s rule %s", e.Rule.Behavior, e.Rule.Text)
		if e.Reason != "" {
			fmt.Fprintf(&b, " %s", e.Reason)
			if e.About != "" {
				fmt.Fprintf(&b, " (%q)", e.About)
			}
			return b.String()
		}
		if e.About == "" {
			return b.String() + " is about every such call"
		}
		fmt.Fprintf(&b, " is about %q", e.About)
	case e.About != "":
		fmt.Fprintf(&b, "%q: %s", e.About, e.Reason)
	default:
		b.WriteString(e.Reason)
	}
	return b.String()
}

// ParseError is a rule that cannot be used.
type ParseError struct {
	// List is the list that has the rule (allow, ask, deny), or another field of [Rules];
	// "" for [ParseRule]. Index is the rule's place in the list, -1 if there is no list.
	List  string
	Index int // from 0
	// Rule is the text of the rule, and Offset the byte in it where the problem is.
	Rule    string
	Offset  int    // from 0, in bytes
	Problem string // what is wrong
	Fix     string // what to write instead; "": unknown
}

func (e *ParseError) Error() string {
	var b strings.Builder
	b.WriteString("policy: ")
	switch {
	case e.List != "" && e.Index >= 0:
		fmt.Fprintf(&b, "%s[%d] ", e.List, e.Index)
	case e.List != "":
		fmt.Fprintf(&b, "%s ", e.List)
	}
	fmt.Fprintf(&b, "%q", e.Rule)
	if e.Offset > 0 {
		fmt.Fprintf(&b, " at byte %d", e.Offset)
	}
	fmt.Fprintf(&b, ": %s", e.Problem)
	if e.Fix != "" {
		fmt.Fprintf(&b, "; %s", e.Fix)
	}
	return b.String()
}

package policy

import (
	"fmt"
	"strings"

	"github.com/agent-troupe/troupe/protocol"
)

// Rule is one of a policy's rules.
type Rule struct {
	// Behavior is the list that the rule stands in, and Index its place there.
	Behavior protocol.PermissionBehavior
	Index    int // from 0
	// Text is the rule as it was written; "" is no rule.
	Text string
}

// Explanation is a decision with its reason.
type Explanation struct {
	Behavior protocol.PermissionBehavior // [protocol.BehaviorAllow], [protocol.BehaviorDeny] or [protocol.BehaviorAsk]
	// Rule is the rule that decided; without a Text: none did, and the policy's
	// default holds. When several were needed to allow a call it is the first of them.
	Rule Rule
	// About is what the rule was held against: a simple command, a path, a
	// host, a name; "" is the whole call.
	About string
	// Reason says more, in words; "" when the rule says it all.
	Reason string
	// Parts are the simple commands or paths that were allowed one by one, when
	// there is more than one.
	Parts []Explanation
	// ByAgent is set when no rule names the call and the policy's default is
	// [Agent]: the agent decides by its mode. Behavior is what the policy then
	// says if the agent asks.
	ByAgent bool
}

// String is the explanation in one line, such as
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
	// List is the list that the rule stands in (allow, ask, deny), or the field
	// of [Rules]; "" when the rule was parsed by itself. Index is its place in
	// the list, -1 outside of lists.
	List  string
	Index int // from 0
	// Rule is the text, and Offset the byte in it where the problem is.
	Rule    string
	Offset  int    // from 0, in bytes
	Problem string // what is wrong, in words
	Fix     string // what to write instead, in words; "": not known
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

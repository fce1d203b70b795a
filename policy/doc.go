// Package policy decides about tool calls by rules in the vendors' syntax:
//
//	p, err := policy.Compile(policy.Rules{
//		Allow: []string{"Bash(git status:*)", "Read(src/**)", "mcp__tracker"},
//		Ask:   []string{"Bash(git push:*)"},
//		Deny:  []string{"Read(**/.env)", "WebFetch(domain:example.com)"},
//		Cwd:   "/repo",
//	})
//	p.Explain(policy.Call{Tool: "Bash", Input: input}) // which rule, and why
//
// Deny comes before ask, ask before allow, and what no rule is about asks. A
// policy errs on the side of asking: an allow rule must fit all of a call, a
// deny or ask rule need only be impossible to rule out.
//
// Shell commands are parsed, never compared as text. Only simple commands made
// of literal words can be allowed; whatever the shell would still expand,
// redirect or substitute asks.
//
// A policy looks at the call alone: its input, and the directory in which it
// runs. It does not see what a program does once it runs (a Makefile's recipes, a
// git alias), where a symbolic link leads (unless Rules.Resolve says so), or where
// a web server redirects to. The work of a decision is bounded; a call that would
// take more is denied.
//
// Here live the rules, their parser and the decision. The package does no I/O
// and knows nothing of sessions; package sdk puts a policy in front of the
// CanUseTool callback.
package policy

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
// Deny rules take precedence over ask rules, and ask rules over allow rules. A call that
// matches no rule is asked about; Rules.Default changes that. In doubt a policy asks: an
// allow rule must match the whole call, while a deny or ask rule applies already if it
// cannot be ruled out.
//
// Shell commands are parsed, never compared as text. The usual additions to a command that
// a rule allows stay allowed if they can neither write a file nor run anything: 2>&1,
// >/dev/null, filters behind a pipe in their plain forms, comments, quoted heredocs,
// patterns of files. Every other command that the shell would still expand, redirect or substitute is asked about.
//
// A policy sees only the call: its input, and the directory in which it runs. It does not
// see what a program does when it runs (a Makefile's recipes, a git alias), where a
// symbolic link leads (unless Rules.Resolve says so), or where a web server redirects
// to. The work of a decision is bounded; a call that would need more is denied.
//
// The rules, their parser and the decision live here. The package does no I/O and knows
// nothing about sessions; package sdk applies a policy before the CanUseTool callback.
package policy

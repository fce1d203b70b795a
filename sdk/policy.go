package sdk

import "github.com/agent-troupe/troupe/policy"

// Policy are the rules of [Options].Policy, which decide about tool calls. Package
// policy documents the syntax; with it a program can also test rules and explain a
// decision.
//
// Troupe enforces the policy with a hook, for every call, in every permission mode and
// for subagents. A call that matches no rule goes to CanUseTool, and is denied without
// one; Default changes that. In permission mode dontAsk, a call that is not allowed is
// denied, and CanUseTool is not called.
//
// Troupe fills in empty fields: Cwd with Options.Cwd or the directory of this
// program, Root with Cwd, Home with the HOME of the agent. It adds
// Options.AdditionalDirectories to Directories. If the agent runs on another machine,
// set these fields yourself. Resolve follows the symbolic links of this machine; if
// Options.Spawner is set, links are not followed. It is [policy.Rules].
type Policy = policy.Rules

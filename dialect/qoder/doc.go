// Package qoder is the dialect of qodercli.
//
// Facts are observed on Qoder Agent SDK 1.0.39 (wire 1.4.0) and qodercli 1.1.52 unless a comment says otherwise. No
// turn of the real CLI has been observed: it needs an account. The argument list, the environment and the initialize
// request are the SDK's, with these deviations:
//
//   - options.env is added to the parent's environment; the SDK replaces the environment.
//   - A settings or MCP document that could hold a credential, or is too long for an argument, is passed as a file of
//     mode 0600.
//   - A proxy URL with a user name is passed by HTTPS_PROXY and a set_proxy request, not by --proxy.
//   - GoalMaxTurns is sent as a set_goal_max_turns request; the SDK sends nothing.
//   - Options that the SDK's documents list but the SDK does not send are errors.
//   - Resume options without Resume are errors, because the CLI refuses them. Modes that skip permissions without
//     AllowDangerouslySkipPermissions are errors, because the documents forbid them.
//   - NODE_OPTIONS is kept if the user gives it.
//   - Permission rules that are too long for the argument list are sent in the settings.
//   - A .cjs file is a script, too.
//   - A value that begins with a dash is joined to its flag; otherwise the agent would take the value for a flag.
//   - Policies for MCP tools whose names have letters outside ASCII become rules in the agent's spelling, with its hash.
//     The SDK leaves the hash out, and such a rule matches no tool.
//   - ExtraArgs are sorted by key, and repeat no flag that an option has set.
//   - Zero values are not sent: PromptSuggestions false, an empty list of agents and an empty text to append are left out
//     of initialize. The SDK sends them if they are given.
//   - Keys are in the order of the Go fields, agents and servers are sorted by name, settings keep their order.
//   - A value that the vendor's documents do not have is an error; the SDK passes on values that it does not check.
//   - Settings that are JSON text are decoded to an object; the SDK passes the text on, and cannot merge anything into it.
//   - Memory and Evolution without a Mode have mode custom; the SDK refuses them.
package qoder

// Package qoder is the dialect of qodercli.
//
// Facts are observed on Qoder Agent SDK 1.0.39 (wire 1.4.0) and qodercli 1.1.52 unless a comment says otherwise. No
// turn of the real CLI has been observed: it needs an account. The argument list, the environment and the initialize
// request are the SDK's, with these deviations:
//
//   - options.env is merged over the parent's environment; the SDK replaces it.
//   - A settings or MCP document that can hold a credential, or is longer than an argument may be, goes by 0600 file.
//   - A proxy with a user name in it goes by HTTPS_PROXY and a set_proxy request, not by --proxy.
//   - GoalMaxTurns is sent as a set_goal_max_turns request; the SDK sends nothing.
//   - Options that the SDK takes in its documents and has no wire for are errors.
//   - Resume options without Resume, and modes that skip permissions without AllowDangerouslySkipPermissions, are
//     errors: the CLI refuses the first, the documents the second.
//   - NODE_OPTIONS stays when the user gives it.
//   - Too many permission rules for the argument list go to the settings.
//   - A .cjs file is a script like its kin.
//   - A value that begins with a dash is joined to its flag, or the agent would take it for a flag itself.
//   - Policies for MCP tools whose names have other letters than ASCII are rules in the agent's spelling, with its hash. The
//     SDK leaves the hash out, and such a rule is about no tool.
//   - ExtraArgs stand in the order of their keys, and repeat no flag that an option has set.
//   - What is zero is not given: PromptSuggestions that are off, no agents and nothing to append are left out of
//     initialize. The SDK sends them when they are given.
//   - Keys stand in the order of the Go fields, agents and servers in that of their names; in settings, as given.
//   - A value that the documents do not have is an error; the SDK passes on what it does not look at.
//   - Settings that are JSON text are an object; the SDK passes them on, and cannot merge anything into them.
//   - Memory and Evolution without a Mode are custom; the SDK refuses them.
package qoder

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
//   - ExtraArgs stand in the order of their keys.
package qoder

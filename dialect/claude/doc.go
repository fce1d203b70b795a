// Package claude is the dialect of Claude Code.
//
// Facts are observed on Claude Code 2.1.329 driven by Agent SDK 0.3.329 unless a comment says otherwise. The argument
// list, the environment and the initialize request are the SDK's, byte for byte where JSON allows it, with these
// deviations:
//
//   - options.env is added to the parent's environment; the SDK replaces the environment.
//   - A settings or MCP document that could hold a credential, or is too long for an argument, is passed as a file of
//     mode 0600; managed settings are then sent in the initialize request. The SDK passes all of them as arguments.
//   - Policies for single MCP tools also become permission rules in the settings, for every kind of server; the SDK only
//     sends them with the server.
//   - A sandbox is merged into a settings file; the SDK rejects the combination.
//   - Hooks that are gates have onFailure: block, so that an invalid answer denies.
//   - An allow always has updatedInput, the original input if the host did not change it.
//   - Continue is left out with Resume. With both, the CLI continues the most recent session, which may not be that of
//     Resume.
//   - ExtraArgs are sorted by key, and repeat no flag that an option has set.
//   - Zero values are not sent: a switch that is off, an empty text and an empty map are left out of initialize, and an
//     empty ProjectConfigRoot is left out of the arguments. The SDK sends them if they are given.
//   - Keys are in the order of the Go fields, agents and servers are sorted by name, settings keep their order. JSON text
//     is written without white space.
//   - A value that the vendor's documents do not have is an error; the SDK passes on values that it does not check.
//   - The variables that name the SDK are always set, unless Env has them; the SDK keeps inherited ones.
//   - CLAUDECODE is removed, so that an agent can be started from a tool of another agent. NODE_OPTIONS and DEBUG, which
//     the SDK removes, too, are kept if the user gives them.
//   - --await-initialize is not set for a resume, --debug-file is not set for DEBUG_CLAUDE_AGENT_SDK, and
//     NoDefaultCurrentDirectoryInExePath is never set. The SDK sets the first for the program that comes with it.
//   - A timeout of an MCP server is a whole number of milliseconds, rounded up: the agent drops a server with any other
//     number.
//   - Options with which the CLI refuses to start are errors before the start: a session id with a resume but without a
//     fork, ResumeSessionAt without Resume, an id that is not a UUID, a budget of zero.
//   - A setting that makes the agent skip every permission check is an error without AllowDangerouslySkipPermissions,
//     wherever it is: PermissionMode, permissions.defaultMode of settings (Settings, SettingsPath, ManagedSettings), an
//     agent's mode, ExtraArgs or ExecutableArgs. The SDK passes it on, and the CLI accepts bypassPermissions from settings
//     and from --permission-mode without its own flag for it.
//   - With hooks, a Policy or CanUseTool, CLAUDE_CODE_SIMPLE and --bare are errors, because they turn the gates off. The
//     SDK passes them on.
//   - A .cjs file is a script, too, and the case of an extension does not matter.
//
// Some options are not in the recordings: --session-mirror, a file for --mcp-config and --settings, and the schema and
// managed settings in initialize only. All but the first were tried on the CLI itself; for --session-mirror it is only
// known that the CLI accepts the flag.
package claude

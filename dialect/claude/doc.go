// Package claude is the dialect of Claude Code.
//
// Facts are observed on Claude Code 2.1.329 driven by Agent SDK 0.3.329 unless a comment says otherwise. The argument
// list, the environment and the initialize request are the SDK's, byte for byte where JSON allows it, with these
// deviations:
//
//   - options.env is merged over the parent's environment; the SDK replaces it.
//   - A settings or MCP document that can hold a credential, or is longer than an argument may be, goes by 0600 file
//     (managed settings: in the initialize request). The SDK puts all of them in argv.
//   - Policies for single MCP tools are permission rules in the settings besides, for every kind of server; the SDK has
//     them with the server alone.
//   - A sandbox is merged into a settings file; the SDK refuses the two together.
//   - Hooks that are gates say onFailure: block, so that an answer which does not validate denies.
//   - An allow always carries updatedInput, the original input if the host changed nothing.
//   - Continue is left out beside Resume: given both the CLI continues, and takes another session than Resume names.
//   - ExtraArgs stand in the order of their keys, and repeat no flag that an option has set.
//   - What is zero is not given: a switch that is off, an empty text and an empty map are left out of initialize, and an
//     empty ProjectConfigRoot of argv. The SDK sends them when they are given.
//   - Keys stand in the order of the Go fields, agents and servers in that of their names; in settings, as given. JSON text
//     is written without white space.
//   - A value that the documents do not have is an error; the SDK passes on what it does not look at.
//   - The variables that name the SDK are set whatever the parent's are, unless Env has them; the SDK keeps those it
//     inherits.
//   - CLAUDECODE is removed, so that an agent can be started from within another one's tool. NODE_OPTIONS and DEBUG,
//     which the SDK removes, too, stay when the user gives them.
//   - --await-initialize is not set for a resume, as it is for the program that comes with the SDK; --debug-file not for
//     DEBUG_CLAUDE_AGENT_SDK, and NoDefaultCurrentDirectoryInExePath not at all: they are the SDK's own affairs.
//   - A timeout of an MCP server is a whole number of milliseconds, rounded up: the agent drops a server with any other.
//   - What the CLI refuses at start is an error before it: a session id beside a resume without a fork, a cut without
//     Resume, an id that is no UUID, a budget of zero.
//   - What has the agent skip every permission check is an error without AllowDangerouslySkipPermissions, whatever sets
//     it: PermissionMode, permissions.defaultMode of settings (Settings, SettingsPath, ManagedSettings), an agent's mode,
//     ExtraArgs or ExecutableArgs. The SDK passes it on, and the CLI takes bypassPermissions from settings and from
//     --permission-mode without its own flag for that.
//   - With hooks, a Policy or CanUseTool, CLAUDE_CODE_SIMPLE and --bare are errors: they switch the gates off. The SDK
//     passes them on.
//   - A .cjs file is a script like its kin, and the case of an extension does not count.
//
// Options that the recordings do not have (--session-mirror, a file for --mcp-config and --settings, the schema and
// managed settings by initialize alone) were tried on the CLI itself, but for --session-mirror, of which only the flag
// is known to be taken.
package claude

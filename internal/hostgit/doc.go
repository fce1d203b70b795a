// Package hostgit is git as a job, and the embedded agent for a subagent, run it in directories that an agent can write.
//
// Files that an agent can write must decide nothing: git takes programs to run from the
// configuration, the attributes and the hooks of a repository (core.fsmonitor, filters, text
// conversions, and more with each release). A list of options to switch off is therefore not
// enough. Package hostgit gives git a separate directory ([Dir], GIT_DIR) instead, with a
// configuration that it writes itself from a short list of keys that name no programs
// ([Repo].Config), read before an agent runs. The objects of the repository are alternates of
// that directory: git reads them as data. Everything else of a repository (where it is, HEAD,
// references, worktrees) is read here, as files.
//
// In this package: repositories, the host's own git directories, and worktrees. Not in this
// package: tasks, attempts, and how a program is started; the caller passes [Git].Run.
package hostgit

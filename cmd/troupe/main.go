// Command troupe runs coding agents from the command line.
//
//	troupe run [flags] PROMPT   give an agent one prompt and print its answer
//	troupe chat [flags]         hold a conversation on the terminal
//	troupe batch [flags] TASKS  give many tasks to agents, and keep each result
//	troupe worker [flags]       run tasks of jobs that are shared by many machines (contrib/nats)
//	troupe jobs [rm JOB]        list or remove the jobs that are shared by many machines (contrib/nats)
//	troupe ctl DIR [COMMAND]    look into a batch that runs, and decide about its tasks
//	troupe approvals DIR        list and answer the calls of a batch that wait for a person
//	troupe options [flags]      print how an agent would be started
//	troupe sessions COMMAND     list, show, fork, rename, tag, delete or export sessions on disk
//	troupe ps [SESSION]         list the sessions of all programs that show theirs
//	troupe top                  the same, as a screen that is kept up to date
//	troupe mcp                  the same, as an MCP server on stdin and stdout
//	troupe acp [flags]          be an agent for editors on stdin and stdout
//	troupe doctor               say what this machine has for agents, and what is wrong
//	troupe schema [NAME]        print the JSON schema of a file
//	troupe completion SHELL     print a script that completes command lines in a shell
//	troupe man [COMMAND]        print the manual page of a command
//	troupe guard                clean up for a program that has died; runtime.Config.Guard starts it
//	troupe version              print the version of this program
//	troupe help [COMMAND]       print every flag and exit code
//
// The agent is Claude Code, Qoder CLI, or a scripted agent that needs neither a
// network nor an account. The answer goes to stdout as it is written, everything
// else to stderr. Ctrl-C interrupts the agent, a second Ctrl-C closes the session,
// a third one kills the agent. The command always ends the agent's whole process
// tree before it exits.
package main

import (
	"context"
	"os"

	"github.com/agent-troupe/troupe/internal/command"
)

func main() { os.Exit(command.Main(context.Background(), os.Args[1:])) }

// Package transcript reads and edits the sessions that agents keep on disk, while no
// agent runs: the transcripts of Claude Code and of qodercli, their titles, tags,
// subagents and checkpoints.
//
// There are three levels:
//
//   - [Decoder] streams the lines of a session file. It holds one line at a time,
//     reports damaged lines and skips none.
//   - [Index] reads a whole file into a [Transcript], about 100 bytes for each line, and
//     leaves the content in the file. [Transcript.Shown] is the session as the vendor's
//     SDK shows it (getSessionMessages), [Transcript.Resumed] as the agent's program
//     would resume it. The two differ after a rewind, a fork inside the file and damage.
//   - [Sessions] finds sessions in the folders of an agent: list, info, messages,
//     subagents, rename, tag, archive, fork, delete.
//
// Nothing here starts an agent or uses a network. Time, ids and files come from the
// fields of [Sessions], so a simulation can replace them. The readers are safe for
// concurrent use if the underlying files are; edits of one session are not.
//
// Sessions with a running agent are in package runtime and the packages below it.
//
// The facts about the files were observed on Claude Code 2.1.329 with the Claude Agent
// SDK 0.3.329, and on qodercli 1.1.52 with the Qoder Agent SDK 1.0.39, on Linux.
package transcript

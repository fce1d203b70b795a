// Package confine starts commands that the Linux kernel confines (Landlock): what they, and
// all that they start, may read and write.
//
// Landlock confines the process that asks for it, for good, and all that it starts. So
// [Rules.Wrap] makes a command that starts this program again. There [Serve], the first thing in main,
// reads the rules from the standard input, confines the process and executes the command in its
// place. The process keeps its number, its environment and the rest of its input.
//
// A rule of Landlock grants something to a directory with all that is below. It cannot take a
// part away again. When some paths are hidden, [Readable] therefore lists the rest: of a directory
// with a hidden path in it, each other entry by itself.
//
// Sessions and their rules must not live here.
package confine

// Package search finds files, and lines in them, by the rules of ripgrep 14.1.1: its wildcards,
// its ignore files, its file types, and its regular expressions. So every host finds the same,
// with no program to install. The errors have ripgrep's words.
//
// It does not have the Unicode form of \b. It takes \< and \b{start} for \b. It does not read
// core.excludesFile of Git's configuration, and a . matches bytes that are not UTF-8.
//
// It knows nothing of tools and permissions: its user says which files are hidden.
package search

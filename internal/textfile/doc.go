// Package textfile decodes files that people and their tools write: UTF-8, with or
// without a byte order mark, and UTF-16 with one.
package textfile

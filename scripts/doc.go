// Package scripts has what makes and ships a release: the script release, and the files of an image in
// docker. It has no Go code.
package scripts

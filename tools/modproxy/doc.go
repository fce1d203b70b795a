// Command modproxy makes the modules of a release as a GOPROXY in a directory: the main module and
// those in contrib that others import, which then need each other by their versions and not by a
// directory.
//
//	go -C tools run ./modproxy -out DIR -version v0.1.0     # the proxy
//	go -C tools run ./modproxy -edit -version v0.1.0        # the same go.mod files, in the checkout
//
// The files are those of the checkout, committed or not, but for what git ignores.
//
// Its test builds a program outside of the tree against such a proxy, and installs the command.
package main

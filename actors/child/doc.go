// Package child is the actor that runs a child of Options.Children: its functions, one at
// a time, each as a task. The [Box] outlives it, so that queued items are there for the
// next incarnation.
//
// Not in this package: when a child is started or stopped, which its supervisor decides.
package child

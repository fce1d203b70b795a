// Package peers has other agents, the embedded agent and many sessions of one process do the same
// small task at the same endpoint, which plays a model in the protocol of each.
//
// In this package: the agents, the task, and what it costs each of them. Not in this package: flags,
// and hosts of agents, which are package drive's.
package peers

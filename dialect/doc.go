// Package dialect describes what differs between agents, and nothing else: how one is launched, what its initialize
// request says, how control requests and answers are spelled, and how long it takes to go away.
//
// A [Dialect] is data in, data out. Nothing here touches the file system, the environment, the clock or a process, and
// nothing here calls the user back: of the callbacks in the options a dialect only asks whether they are given. The same input
// always gives the same bytes, in the same order.
//
// The dialects themselves live in the claude and qoder subpackages. Wire types live in package protocol, errors and
// warnings about options in package session.
package dialect

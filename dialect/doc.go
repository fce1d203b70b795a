// Package dialect describes the differences between agents: how an agent is started, the content of its initialize
// request, the form of control requests and answers, and how long it takes to exit.
//
// A [Dialect] only transforms data. It does not use the file system, the environment, the clock or processes, and calls
// no callback: it only checks which callbacks of the options are set. The same input always gives the same bytes, in the
// same order.
//
// The dialects themselves live in the claude and qoder subpackages. Wire types live in package protocol, errors and
// warnings about options in package session.
package dialect

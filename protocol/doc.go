// Package protocol holds the wire types of the agents' NDJSON protocol and
// its codec.
//
// A line of the wire passes through three steps, each usable alone:
//
//   - [Splitter] cuts a byte stream into lines.
//   - [ParseFrame] reads a line's envelope: type, subtype, request id.
//   - [DecodeMessage], [DecodeAgentRequest], [DecodeHostRequest] and
//     [DecodeControlResponse] turn a frame into typed values, when someone
//     asks for them.
//
// The other direction is a set of append functions ([AppendControlRequest],
// [AppendControlSuccess], …), each of which writes exactly one line, and
// [MarshalMessage] for whoever plays the agent.
//
// The types cover Claude Code and qodercli together. What the two say
// differently (which fields they read, which spelling they expect, what they
// support) belongs to package dialect. This package does no I/O, starts no
// goroutine, reads no clock and knows no dialect.
//
// Every decoder is lenient: unknown fields are ignored, every field may be
// absent, and the bytes as they came stay reachable through Raw. A zero value
// of a decoded field means "absent, null or zero" unless its comment says
// otherwise. Values are plain data, safe for concurrent reading.
package protocol

// Package protocol has the types of the agents' NDJSON protocol, and its codec.
//
// A line that is read passes through three steps, each usable alone:
//
//   - [Splitter] splits a byte stream into lines.
//   - [ParseFrame] reads a line's envelope: type, subtype, request id.
//   - [DecodeMessage], [DecodeAgentRequest], [DecodeHostRequest] and
//     [DecodeControlResponse] turn a frame into typed values, on demand.
//
// To write, use the append functions ([AppendControlRequest], [AppendControlSuccess],
// …), each of which writes exactly one line. Programs that implement an agent use
// [MarshalMessage].
//
// The types cover Claude Code and qodercli together. The differences between the two
// (the fields that they read, their spelling, the requests that they support) belong to
// package dialect. This package does no I/O, starts no goroutine, reads no clock and
// knows no dialect.
//
// Decoders are lenient: they ignore unknown fields, every field may be absent, and the
// original bytes are available as Raw. The zero value of a decoded field means "absent,
// null or zero", unless its comment says otherwise. "Not sent" means that the agent left
// the field out. Values are plain data, safe for concurrent reading.
package protocol

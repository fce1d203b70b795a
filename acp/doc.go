// Package acp has the types of the Agent Client Protocol, version 1, by which editors
// drive agents, and a connection that speaks it: JSON-RPC 2.0, one object per line, both
// sides make requests. It uses only the standard library, and works for agents and for
// clients.
//
// The types in the files schema_*.go are generated from schema/v1.json, which is
// published with the npm package @agentclientprotocol/sdk 2.4.0. They are those that the
// stable methods use, without the methods for terminals, files and logout, which Troupe does
// not speak. A union is a struct with a pointer for each variant; a variant
// that this release doesn't know is kept in Other.
//
// The package knows no session: the mapping to the protocol is in acpagent and
// acpclient.
package acp

//go:generate go run ./internal/gen -schema schema/v1.json -out .

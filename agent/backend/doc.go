// Package backend is the interface between a session and the agent that it starts. A
// [Backend] says which dialect the agent speaks and what there is to start: a process, a
// program in this process, or a process that speaks another protocol and is translated.
//
// sdk.Claude, sdk.Qoder and sdk.InMemory are backends, as are those of acp/acpclient and
// agent/cloud; a program may bring its own.
//
// How an agent is started must not live here, nor anything that knows a vendor.
package backend

// Package demo is the demonstration: the embedded agent with a small model that is built
// in. The model is a list of rules in Go. It needs no network, no account and no other
// program, costs nothing, and does the same for the same prompt and the same history. It
// understands nothing: a few words in a prompt choose what it does, and with any other
// prompt it repairs the project that is in its directory, and makes the prompt one of the
// project's cases.
//
// Its tools are the real ones of agent/embedded. They work in a temporary directory that
// is made for the session, never in Options.Cwd, unless [Config.InCwd] says that this
// directory was made for them.
//
// Helpers for tests must not live here: package agent/scripted plays any agent, also one that
// misbehaves.
package demo

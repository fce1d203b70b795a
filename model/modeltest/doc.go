// Package modeltest is a language model in memory, for tests: a [Server] answers requests
// from a script, waits on the seams that it is given, and fails as [Fault] says. It is an
// http.RoundTripper, so what it says goes through the codecs and the client of package model
// like the bytes of a real endpoint: [Server.Anthropic] and [Server.OpenAI] return that
// client, which is a model.Model.
//
// Without a script it answers "ok". It knows no endpoint's rules: a request that a real one
// would refuse gets its answer. Assertions must not live here.
package modeltest

// Package model makes requests to the endpoints of language models: one neutral form of
// requests, events and errors, an HTTP client, and a codec for each of two APIs, Anthropic
// Messages and OpenAI chat completions. Most servers speak one of them.
//
// It knows no loop, no tools of its own and no session, and retries nothing: package
// agent/embedded does. Nothing here reads the environment. A key is asked for with each
// request and kept nowhere.
//
// A conversation is a list of encoded messages: each message is encoded once, by
// [Codec.Message], so each request has the one before it as an exact prefix, and a
// provider's cache of prompts holds.
package model

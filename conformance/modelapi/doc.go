// Package modelapi is a scripted model endpoint: it speaks enough of the
// Anthropic Messages API (streamed and not) that a real agent CLI runs whole
// turns against it, offline and with the same answer every time. Chat completions, the
// Responses API and Gemini's generateContent are other faces of the same scripts.
//
// A prompt picks its script with a marker anywhere in its text:
//
//	please do it [[scn:bash]]
//	please do it [[scn:write some/argument]]
//
// For each call the server takes the last marker in the request's user
// messages, counts the assistant messages behind it, and plays that step of
// the named [Scenario]. The count comes from the request alone, so one session
// can play many scenarios one after another, a resumed session goes on where it
// was, and a subagent is scripted by a marker in the prompt it is given. The
// one thing remembered between calls is how often a [Fault] or a [Cut] was served.
//
// Here live the server, the built-in scenarios ([Builtin]) and the request log.
// Nothing here knows of Troupe: the package stands on the standard library
// alone, so that tests, examples and demos can all use it.
package modelapi

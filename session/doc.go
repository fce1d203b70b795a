// Package session defines what a session and its user share: the values that
// options are made of, limits, graces, states, events, errors, and the types of
// callbacks. Each is defined here once. Package sdk repeats the names of the common
// ones.
//
// The package imports protocol and policy, and two internal packages that print
// and encode structs, so that every other layer can import it. What must not live
// here: behavior. The types have methods that describe them (Error, Unwrap, Is,
// String, Format, LogValue), encode them (MarshalJSON, MarshalYAML and their
// opposites) or fill in defaults (WithDefaults). The functions make values of
// options, such as [Some] and [PromptText]; [ConfigErrors] finds errors in an error.
package session

// Package session defines the types that a session and its user share: options,
// limits, graces, states, events, errors, and callbacks. Each type is defined here
// once. Package sdk has aliases for the common ones.
//
// The package imports protocol, policy, and two internal packages that print and
// encode structs, so that every other layer can import it. Behavior must not live
// here. The types have methods that describe them (Error, Unwrap, Is, String,
// Format, LogValue), encode or decode them (MarshalJSON, UnmarshalJSON, MarshalYAML,
// UnmarshalYAML), or fill in defaults (WithDefaults). The functions make values of
// options, such as [Some] and [Only]; [ConfigErrors] returns the
// *[ConfigError] values of an error.
package session

// Package session defines what a session and its user share: limits, graces,
// states, events, errors, and the types of callbacks. Each is defined here once.
// Package sdk repeats the names of the common ones.
//
// The package imports protocol and policy alone, so that every other layer can
// import it. What must not live here: behavior. The types have methods that
// describe them (Error, Unwrap, Is, String, Format, LogValue) or fill in defaults
// (WithDefaults). The only function is [ConfigErrors], which finds errors in an
// error.
package session

// Package web fetches pages for an agent: over https, from public addresses alone, with limits
// of size and time, and as text.
//
// The use of a page, and the rules about who may fetch which one, must not live here.
package web

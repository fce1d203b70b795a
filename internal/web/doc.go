// Package web fetches pages for an agent: over https, from public addresses alone, with limits
// of size and time, and as text.
//
// What the agent does with a page, and who may fetch which one, must not live here.
package web

// Package export writes a session for people to read: as Markdown or as an HTML page.
//
// The text of users, models and tools is inert in both: it cannot become markup, a link,
// an image or a script, and characters that steer a terminal or the direction of text are
// replaced. An HTML page loads nothing.
//
// Reading session files must not live here; it is in package transcript.
package export

// Package docs has the guides, and tests that hold what they say to the code: names, links, tables,
// examples and schemas. It has no code but its tests.
package docs

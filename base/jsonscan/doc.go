// Package jsonscan walks JSON by structure: it finds where strings, objects and arrays end
// and believes the rest. What it accepts may still be invalid JSON; what it rejects always
// is. [StrictObject] looks at all of a text.
package jsonscan

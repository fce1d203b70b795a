// Package jsonscan walks JSON by structure: it finds where strings, objects and arrays end
// and does not check the rest. Text that it accepts may still be invalid JSON; text that
// it rejects always is. [StrictObject] looks at all of a text.
package jsonscan

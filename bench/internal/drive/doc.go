// Package drive has turns with agents through package sdk, as a user's program
// would, and returns the figures.
//
// What lives here: the driven sessions. What must not: a way around the public
// API.
package drive

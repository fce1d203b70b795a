// Package drive has turns with agents through package sdk, as a user's program
// would, and returns the figures.
//
// In this package: the driven sessions. Not in this package: a way around the public
// API.
package drive

// Package storetest tests implementations of session.Store:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) session.Store { return New(t.TempDir()) })
//	}
//
// Stores themselves must not live here; some are in package transcript/store.
package storetest

// Package troupesqlite is a session store in an SQLite file: a session.Store.
//
//	store, err := troupesqlite.Open(ctx, "sessions.db", troupesqlite.Options{})
//	...
//	defer store.Close()
//	sessions := &transcript.Sessions{Vendor: transcript.Claude, Store: store, Dir: dir}
//
// It is a separate module, so that the main module does not depend on SQLite. The SQLite
// is modernc.org/sqlite, which needs no C compiler.
package troupesqlite

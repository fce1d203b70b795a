// Package troupesqlite is a session store in an SQLite file, for
// session.Options.SessionStore:
//
//	store, err := troupesqlite.Open(ctx, "sessions.db", troupesqlite.Options{})
//	...
//	defer store.Close()
//	result, err := sdk.Run(ctx, "hello", &sdk.Options{SessionStore: store})
//
// It is a module of its own, so that the main module does not depend on SQLite. The SQLite
// is modernc.org/sqlite, which needs no C compiler.
package troupesqlite

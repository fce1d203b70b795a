// Package contrib has modules of their own below it, which need what the main module should not:
// jobs on many machines through NATS, telemetry for OpenTelemetry, a session store in SQLite, and tests
// with the vendors' libraries. This package itself has no code.
package contrib

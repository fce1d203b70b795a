// Package browsertest opens the window (package inspect/ui) and the report of a job in a real browser. It is a module of its
// own, so that nobody who uses the library has a browser's protocol among the
// dependencies. It has tests alone; .ci/run's step contrib runs them with Debian's chromium.
package browsertest

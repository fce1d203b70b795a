// Package cloudtest is Qoder's Cloud Agents service in memory, for tests: a [Server] is an
// http.RoundTripper for cloud.Config.HTTP, and an http.Handler for a real address. It waits
// on the seams that it is given, and fails as [Fault] says.
//
// It follows what the service documents and what the vendor's SDK 1.0.39 was seen to accept.
// The real service was never reached, so nothing here says how that one behaves. Assertions
// must not live here.
package cloudtest

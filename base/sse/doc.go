// Package sse decodes streams of server-sent events, as the WHATWG HTML standard defines
// them. It knows nothing of HTTP, and nothing of what the events say.
package sse

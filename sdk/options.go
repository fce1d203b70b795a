package sdk

import "github.com/agent-troupe/troupe/session"

// Options is everything that can be said about a session. It is
// [session.Options], which has the fields.
type Options = session.Options

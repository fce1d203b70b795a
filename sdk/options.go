package sdk

import "github.com/agent-troupe/troupe/session"

// Options are the options of a session: the agent, its permissions, the callbacks and
// the limits. The zero value is valid, except that Qoder requires Auth. It is
// [session.Options], which has the fields.
type Options = session.Options

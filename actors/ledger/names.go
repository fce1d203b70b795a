package ledger

import "github.com/agent-troupe/troupe/session"

// Names of package session that this package uses throughout.
type (
	// Limits bounds what a session holds.
	Limits = session.Limits
	// Kind is the kind of a request of the agent.
	Kind = session.Kind
	// Wait is something that is waited for.
	Wait = session.Wait
)

// Kinds of requests.
const (
	Permission  = session.KindPermission
	Hook        = session.KindHook
	MCP         = session.KindMCP
	ModelPolicy = session.KindModelPolicy
	Inquiry     = session.KindInquiry
	Other       = session.KindOther
	anyKind     = Other + 1
)

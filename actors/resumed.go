package actors

import (
	"fmt"
	"strings"

	"github.com/agent-troupe/troupe/actors/ledger"
)

// checkSession says what is wrong with the id of a session that was to be
// another's continuation, or to have an id of the user's: an agent that begins
// anew says nothing of it. A Resume that is no id, such as a title, tells
// nothing.
func (k *Core) checkSession(id string) string {
	o := k.cfg.Options
	if o == nil {
		return ""
	}
	id = ledger.Short(id)
	switch same := strings.EqualFold(id, o.Resume); {
	case o.Resume == "" && o.SessionID != "" && !o.Continue && !strings.EqualFold(id, o.SessionID):
		return fmt.Sprintf("option SessionID: the agent calls the session %s, not %s", id, o.SessionID)
	case o.Resume == "" || !isID(o.Resume):
		return ""
	case o.ForkSession && same:
		return fmt.Sprintf("option ForkSession: the agent goes on with session %s itself, not with a copy of it", id)
	case !o.ForkSession && !same:
		return fmt.Sprintf("option Resume: the agent is in session %s, not in %s; what was said there may be missing", id, o.Resume)
	}
	return ""
}

// isID reports whether s has the form of a session's id, a UUID.
func isID(s string) bool {
	return len(s) == 36 && strings.Count(s, "-") == 4 && strings.Trim(s, "0123456789abcdefABCDEF-") == ""
}

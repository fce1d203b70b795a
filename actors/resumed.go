package actors

import (
	"fmt"
	"strings"

	"github.com/agent-troupe/troupe/actors/ledger"
	"github.com/agent-troupe/troupe/dialect"
)

// wanted is what the options say of the agent's session. It is asked about when
// they are gone.
type wanted struct {
	resume, id      string
	continues, fork bool
}

func wantedBy(o *dialect.Options) wanted {
	return wanted{resume: o.Resume, id: o.SessionID, continues: o.Continue, fork: o.ForkSession}
}

// checkSession says what is wrong with the id of a session that was to be
// another's continuation, or to have an id of the user's: an agent that begins
// anew says nothing of it. A Resume that is no id, such as a title, tells
// nothing.
func (k *Core) checkSession(id string) string {
	o := &k.wanted
	id = ledger.Short(id)
	switch same := strings.EqualFold(id, o.resume); {
	case o.resume == "" && o.id != "" && !o.continues && !strings.EqualFold(id, o.id):
		return fmt.Sprintf("option SessionID: the agent calls the session %s, not %s", id, o.id)
	case o.resume == "" || !isID(o.resume):
		return ""
	case o.fork && same:
		return fmt.Sprintf("option ForkSession: the agent goes on with session %s itself, not with a copy of it", id)
	case !o.fork && !same:
		return fmt.Sprintf("option Resume: the agent is in session %s, not in %s; what was said there may be missing", id, o.resume)
	}
	return ""
}

// isID reports whether s has the form of a session's id, a UUID.
func isID(s string) bool {
	return len(s) == 36 && strings.Count(s, "-") == 4 && strings.Trim(s, "0123456789abcdefABCDEF-") == ""
}

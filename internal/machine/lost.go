package machine

import (
	"slices"
	"strings"
)

// lost lets go of a process that has ended and that another one follows.
//
// Its requests are void: their callbacks end, and nobody is answered, so that a late
// answer can never be one to a request of the next process. What was written ends with
// the reason: the agent may have begun with it. What was not waits for the next.
func (m *Routing) lost(in Lost) {
	if in.Gen != m.Gen {
		return
	}
	m.Up, m.Queued = false, 0
	for _, r := range slices.Clone(m.requests) {
		m.dropRequest(r)
	}
	for i := 0; i < len(m.Calls); {
		if c := &m.Calls[i]; !c.Written && !c.Own && !c.Setup {
			i++
			continue
		}
		c := m.takeCall(i)
		m.do(CallOver{ID: c.ID, Err: in.Reason})
	}
	for i := 0; i < len(m.Turns); {
		if t := &m.Turns[i]; t.State != TurnQueued {
			m.turnOver(t, in.Reason)
		} else {
			i++
		}
	}
	tasks, id := len(m.Facts.Tasks) > 0, m.Facts.SessionID
	m.Facts = Facts{TasksSeen: m.Facts.TasksSeen + 1, SessionID: id, Resumes: id, AuthExpired: m.Facts.AuthExpired, WritesLost: m.Facts.WritesLost}
	m.Stall = Stall{}
	m.Past, m.Strays, m.Flush, m.Proof = Past{}, Strays{}, nil, GateProof{Wanted: m.cfg.ProveGates}
	if tasks {
		m.do(TasksChanged{})
	}
	m.unstall()
	m.goOn()
	m.do(Parted{Gen: in.Gen, SessionID: id})
}

// changes reports whether a call may change what the options say, such as the
// permission mode, the model or the directory. What is not known may.
func changes(subtype string) bool {
	switch subtype {
	case "initialize", "interrupt", "mcp_message", "mcp_status", "mcp_call", "mcp_read_resource", "account_info", "background_tasks",
		"cancel_async_message", "stop_task", "file_suggestions", "read_file", "export_conversation", "generate_session_title", "rename_session":
		return false
	}
	return !strings.HasPrefix(subtype, "get_") && !strings.HasPrefix(subtype, "list_")
}

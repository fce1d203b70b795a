package session

import "fmt"

// Kind is the kind of a request that the agent makes of its host. Each kind but
// [KindOther] has one actor that answers its requests.
type Kind int

// Kinds of requests.
const (
	KindPermission  Kind = iota // can_use_tool
	KindHook                    // hook_callback
	KindMCP                     // mcp_message
	KindModelPolicy             // get_model_policy
	KindInquiry                 // elicitations, dialogs, tokens, and questions about turns and artifacts
	KindOther                   // all other requests; the router answers them with an error
)

func (k Kind) String() string {
	names := [...]string{"permission", "hook", "mcp", "model policy", "inquiry", "other"}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("kind(%d)", int(k))
	}
	return names[k]
}

// AsksPeople reports whether requests of the kind may wait for a person. The
// session is in [StateAwaitingHost] while one does.
func (k Kind) AsksPeople() bool { return k == KindPermission || k == KindInquiry }

package session

import "fmt"

// Kind is the kind of a request of the agent to its host. Each kind except
// [KindOther] has one actor that answers the requests.
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
	names := [...]string{
		KindPermission: "permission", KindHook: "hook", KindMCP: "mcp",
		KindModelPolicy: "model policy", KindInquiry: "inquiry", KindOther: "other",
	}
	if k < 0 || int(k) >= len(names) {
		return fmt.Sprintf("kind(%d)", int(k))
	}
	return names[k]
}

package build

import (
	"encoding/json"
	"fmt"

	"github.com/agent-troupe/troupe/protocol"
)

// PermissionAnswer encodes a decision on the call that req asks about. An allow always carries an input.
func PermissionAnswer(req *protocol.CanUseToolRequest, res protocol.PermissionResult) (json.RawMessage, error) {
	res.ToolUseID = req.ToolUseID
	if res.Allowed() && res.UpdatedInput == nil {
		res.UpdatedInput = req.Input
		if res.UpdatedInput == nil {
			res.UpdatedInput = json.RawMessage("{}")
		}
	}
	if res.Allowed() && !IsObject(res.UpdatedInput) {
		return nil, fmt.Errorf("permission answer for %s: the updated input is not a JSON object", req.ToolName)
	}
	return res.MarshalJSON()
}

// PermissionFailure encodes a denial. An empty reason gets a general one.
func PermissionFailure(req *protocol.CanUseToolRequest, reason string) json.RawMessage {
	return MustJSON(protocol.PermissionResult{Behavior: protocol.BehaviorDeny, Message: reason, ToolUseID: req.ToolUseID})
}

// MustJSON encodes a value that is made of strings alone, which cannot fail.
func MustJSON(v any) json.RawMessage {
	raw, err := protocol.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("dialect: encode %T: %v", v, err))
	}
	return raw
}

package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/agent-troupe/troupe/base/jsonscan"
	"github.com/agent-troupe/troupe/protocol"
)

// usable finds outputs of a typed hook that no agent accepts. An agent might read such
// an output as no decision, and the gate would let a call through that its handler
// meant to stop.
func usable(out protocol.HookJSONOutput) error {
	if err := oneOf("Decision", out.Decision, protocol.DecisionApprove, protocol.DecisionBlock); err != nil {
		return err
	}
	switch s := out.Specific.(type) {
	case *protocol.PreToolUseOutput:
		if err := oneOf("PermissionDecision", s.PermissionDecision, protocol.HookAllow, protocol.HookDeny, protocol.HookAsk, protocol.HookDefer); err != nil {
			return err
		}
		return objectIn("UpdatedInput", s.UpdatedInput)
	case *protocol.PreModelSwitchOutput:
		return oneOf("PermissionDecision", s.PermissionDecision, protocol.HookAllow, protocol.HookDeny, protocol.HookAsk)
	case *protocol.PermissionRequestOutput:
		return objectIn("Decision.UpdatedInput", s.Decision.UpdatedInput)
	case *protocol.ElicitationOutput:
		return oneOf("Action", s.Action, protocol.ElicitAccept, protocol.ElicitDecline, protocol.ElicitCancel)
	}
	return nil
}

func oneOf[S ~string](field string, value S, all ...S) error {
	if value == "" || slices.Contains(all, value) {
		return nil
	}
	names := make([]string, len(all))
	for i, one := range all {
		names[i] = string(one)
	}
	return fmt.Errorf("%s is %q; it can be %s, or empty", field, value, strings.Join(names, ", "))
}

func objectIn(field string, value json.RawMessage) error {
	if value == nil || jsonscan.Valid(value) && bytes.HasPrefix(bytes.TrimSpace(value), []byte("{")) {
		return nil
	}
	return fmt.Errorf("%s is not a JSON object", field)
}

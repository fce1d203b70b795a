package claude_test

import (
	"context"
	"encoding/json"

	"github.com/agent-troupe/troupe/protocol"
)

// Callbacks of options: a dialect asks only whether they are given.

func canUseTool(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
	return protocol.PermissionResult{}, nil
}

func resolveModel(context.Context, *protocol.ModelPolicyRequest) (protocol.ModelPolicyReply, error) {
	return protocol.ModelPolicyReply{}, nil
}

func onElicitation(context.Context, *protocol.ElicitationRequest) (protocol.ElicitationResult, error) {
	return protocol.ElicitationResult{}, nil
}

func onUserDialog(context.Context, *protocol.UserDialogRequest) (protocol.UserDialogResult, error) {
	return protocol.UserDialogResult{}, nil
}

func artifacts(context.Context, *protocol.ResolveSessionArtifactsRequest) (json.RawMessage, error) {
	return nil, nil
}

func turnGate(context.Context, *protocol.TurnInfo) (protocol.ShouldRunReply, error) {
	return protocol.ShouldRunReply{}, nil
}

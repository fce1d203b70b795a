package qoder_test

import (
	"context"

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

func turnGate(context.Context, *protocol.TurnInfo) (protocol.ShouldRunReply, error) {
	return protocol.ShouldRunReply{}, nil
}

package claude_test

import (
	"context"

	"github.com/agent-troupe/troupe/protocol"
)

// Callbacks of options: a dialect asks only whether they are given.

func canUseTool(context.Context, *protocol.CanUseToolRequest) (protocol.PermissionResult, error) {
	return protocol.PermissionResult{}, nil
}

func onElicitation(context.Context, *protocol.ElicitationRequest) (protocol.ElicitationResult, error) {
	return protocol.ElicitationResult{}, nil
}

func onUserDialog(context.Context, *protocol.UserDialogRequest) (protocol.UserDialogResult, error) {
	return protocol.UserDialogResult{}, nil
}

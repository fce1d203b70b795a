package sessions_test

import (
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/conformance/modelapi"
	"github.com/agent-troupe/troupe/protocol"
	"github.com/agent-troupe/troupe/sdk"
)

// A policy without Resolve, which is the default, answers "allow" where Claude
// Code asks just because of a symbolic link, and does not deny what Claude
// Code's own rule of the same text denies.
func TestCLISymlinks(t *testing.T) {
	r := newRig(t)
	r.write("secrets/key", "TOPSECRET")
	r.write("src/a", "x")
	require.NoError(t, os.Mkdir(r.root+"/outside", 0o755))
	require.NoError(t, os.WriteFile(r.root+"/outside/private", []byte("PRIVATE"), 0o600))
	require.NoError(t, os.Symlink(r.root+"/outside", r.at("src/link")))
	require.NoError(t, os.Symlink("secrets", r.at("s")))
	o := r.options()
	o.Policy = &sdk.Policy{Allow: []string{"Read(./src/**)", "Edit(./src/**)", "Read(./s/**)"}, Deny: []string{"Read(./secrets/**)"}}
	o.Hooks = []sdk.Hook{sdk.OnPermissionRequest(func(_ context.Context, in *protocol.PermissionRequestInput) (sdk.PermissionRequestOutput, error) {
		t.Logf("asked: %s %s", in.ToolName, in.ToolInput)
		return sdk.PermissionRequestOutput{}, nil
	})}
	out, _ := r.play(o,
		one(modelapi.ToolUse("Read", modelapi.Args{"file_path": r.at("src/link/private")})),
		one(modelapi.ToolUse("Write", modelapi.Args{"file_path": r.at("src/link/new"), "content": "EVIL"})),
		one(modelapi.ToolUse("Read", modelapi.Args{"file_path": r.at("s/key")})),
		one(shell("cat s/key")),
		one(shell("cat \"$PWD/secrets/key\"")),
	)
	check(t, out)
	if _, err := os.Stat(r.root + "/outside/new"); err == nil {
		t.Error("a file was written outside of src, and of the working directory")
	}
}

// The same with nothing but the deny rule.
func TestCLISymlinksDenyOnly(t *testing.T) {
	r := newRig(t)
	r.write("secrets/key", "TOPSECRET")
	require.NoError(t, os.Symlink("secrets", r.at("s")))
	o := r.options()
	o.Policy = &sdk.Policy{Deny: []string{"Read(./secrets/**)"}}
	out, _ := r.play(o,
		one(modelapi.ToolUse("Read", modelapi.Args{"file_path": r.at("s/key")})),
		one(shell("cat s/key")),
		one(shell("cat \"$PWD/secrets/key\"")),
	)
	check(t, out)
}

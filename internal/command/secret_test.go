package command

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const secretHostEnv = "TROUPE_TEST_SECRET_HOST"

// secretHost is this command with a child that looks for the keys.
func secretHost() {
	getenv := ownEnv()
	fmt.Println("own", getenv(envWebhookSecret), getenv(keyVariable), getenv(secretHostEnv))
	c := exec.Command("sh", "-c", `echo "child ${TROUPE_WEBHOOK_SECRET-none} ${TROUPE_MODEL_KEY-none}"; if [ -e /proc/$PPID ]; then tr '\0' '\n' </proc/$PPID/environ | grep -e MODEL_KEY= -e WEBHOOK; fi; true`)
	c.Stdout = os.Stdout
	if err := c.Run(); err != nil {
		fmt.Println(err)
	}
}

// No process that the command starts has the key of the webhook or of the model.
func TestKeysAreNotInherited(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the child is a shell")
	}
	host := func(more ...string) string {
		c := exec.Command(os.Args[0])
		c.Env = append(append(os.Environ(), secretHostEnv+"=1"), more...)
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	got := host(envWebhookSecret+"=0123456789abcdef", keyVariable+"=sk-secret")
	assert.Contains(t, got, "own 0123456789abcdef sk-secret 1\n")
	assert.Contains(t, got, "child none none\n")
	if os.Getuid() != 0 { // root reads the memory of every process
		assert.NotContains(t, got, "WEBHOOK_SECRET=")
		assert.NotContains(t, got, "MODEL_KEY=")
	}
	assert.Contains(t, host(), "own   1\n")
}

package runtime

import (
	"fmt"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheMachineIsMeasured(t *testing.T) {
	t.Parallel()
	child := exec.Command("sh", "-c", "x=$(head -c 4000000 /dev/zero | tr '\\0' x); read y") // the kernel counts small ones late
	_, err := child.StdinPipe()                                                              // it reads until it is killed
	require.NoError(t, err)
	require.NoError(t, child.Start())
	var trees map[int]int64
	assert.Eventually(t, func() bool {
		trees = map[int]int64{child.Process.Pid: 0, 1 << 30: 0}
		measureTrees(trees)
		return trees[child.Process.Pid] > 0
	}, time.Minute, 10*time.Millisecond, "the memory of one process and its children")
	assert.Zero(t, trees[1<<30], "a process that is gone")
	m := measure(t.TempDir())
	require.NoError(t, child.Process.Kill())
	_ = child.Wait() // it was killed
	assert.Positive(t, m.FreeDisk)
	assert.Positive(t, m.Memory)
	parent, pages, ok := parentOf([]byte("7 (a ) b) S 3 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 99 123456 42 18446744073709551615"))
	assert.Equal(t, "3 42 true", fmt.Sprint(parent, pages, ok))
	_, _, ok = parentOf(nil)
	assert.False(t, ok)
}

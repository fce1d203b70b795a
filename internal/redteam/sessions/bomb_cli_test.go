//go:build linux

package sessions_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-troupe/troupe/sdk"
)

// One shell command of 2 kB, end to end.
func TestCLITimeBomb(t *testing.T) {
	r := newRig(t)
	o := r.options()
	o.Policy = &sdk.Policy{Allow: []string{"Bash"}}
	for _, d := range []string{".env", "secrets/**", "**/*.pem", "~/.ssh/**", "//etc/**", "~/.aws/**", "**/id_rsa", "**/.git/**", "**/*.key", "**/*.p12"} {
		o.Policy.Deny = append(o.Policy.Deny, "Read("+d+")", "Edit("+d+")")
	}
	c := sdk.NewClient(o)
	if err := c.Connect(r.ctx); err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	out, _ := r.turn(c, one(shell("cd "+strings.Repeat("a/", 500)+";cat "+strings.Repeat("a ", 500))))
	t.Logf("the turn took %v: %v", time.Since(start).Round(time.Second), out)
	start = time.Now()
	err := c.Close(r.ctx)
	t.Logf("close took %v %v", time.Since(start).Round(time.Millisecond), err)
	cpu := func() time.Duration {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return time.Duration(u.Utime.Nano())
	}
	before := cpu()
	time.Sleep(5 * time.Second)
	t.Logf("in 5 s after the session was closed the host used %v of CPU", (cpu() - before).Round(100*time.Millisecond))
	if cpu()-before > time.Second {
		t.Error("a decision that nobody waits for goes on")
	}
}

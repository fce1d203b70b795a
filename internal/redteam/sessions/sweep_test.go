//go:build linux

// Linux: processes that left their group are found in /proc.

package sessions_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agent-troupe/troupe/sdk"
)

func alive(file string) (pid int, ok bool) {
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0, false
	}
	pid, _ = strconv.Atoi(strings.TrimSpace(string(raw)))
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if pid <= 0 || err != nil {
		return pid, false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return pid, rest[0] != 'Z' && rest[0] != 'X'
}

// Ways out of the sweep, and into it.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	start := func(name, how string) string {
		// each writes its pid and sleeps in a session of its own
		return how + " sh -c 'echo $$ >" + filepath.Join(dir, strings.ReplaceAll(name, " ", "_")) + "; exec sleep 300' </dev/null >/dev/null 2>&1 &\n"
	}
	cases := map[string]string{
		"setsid":          start("setsid", "setsid"),
		"nohup":           start("nohup", "nohup"),
		"double fork":     "(" + strings.TrimSuffix(start("double fork", "setsid"), "\n") + ")\n",
		"env -i":          start("env -i", "setsid env -i PATH=$PATH"),
		"env -u marker":   start("env -u marker", "setsid env $(env | sed -n 's/^\\(TROUPE_LAUNCH_[^=]*\\)=.*/-u \\1/p')"),
		"renamed marker":  start("renamed marker", "setsid env $(env | sed -n 's/^\\(TROUPE_LAUNCH_[^=]*\\)=.*/-u \\1 X\\1=1/p')"),
		"user namespace":  start("user namespace", "setsid unshare -Ur"),
		"pid namespace":   "setsid unshare -pf --mount-proc sh -c 'exec sleep 301' </dev/null >/dev/null 2>&1 & echo $! >'" + filepath.Join(dir, "pid_namespace") + "'\n",
		"group of host":   "python3 -c 'import os,time\npid=os.fork()\nif pid==0:\n os.setpgid(0,os.getpgid(int(os.environ[\"HOSTPID\"]))); open(\"" + filepath.Join(dir, "group_of_host") + "\",\"w\").write(str(os.getpid())); time.sleep(300)' </dev/null >/dev/null 2>&1 &\n",
		"overwritten env": "setsid python3 -c 'import ctypes,os,time\nl=open(\"/proc/self/stat\").read().rsplit(\")\",1)[1].split()\ns,e=int(l[47]),int(l[48])\nctypes.memset(s,0,e-s); open(\"" + filepath.Join(dir, "overwritten_env") + "\",\"w\").write(str(os.getpid())); time.sleep(300)' </dev/null >/dev/null 2>&1 &\n",
	}
	script := ""
	for _, c := range cases {
		script += c
	}
	// Somebody else's process that happens to have the same variable.
	bystander := exec.Command("sleep", "302")
	env := map[string]string{"FAKE_SPAWN": script + "env | grep TROUPE_LAUNCH >" + filepath.Join(dir, "marker") + "; sleep 1", "HOSTPID": strconv.Itoa(os.Getpid())}
	started, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(started)
		for {
			select {
			case <-ended:
				return
			default:
			}
			if m, err := os.ReadFile(filepath.Join(dir, "marker")); err == nil && len(m) > 10 {
				bystander.Env = append(os.Environ(), strings.TrimSpace(string(m)))
				bystander.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
				_ = bystander.Start()
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	converse(t, &sdk.Options{Env: env})
	close(ended)
	<-started
	for name := range cases {
		pid, ok := alive(filepath.Join(dir, strings.ReplaceAll(name, " ", "_")))
		t.Logf("%-16s pid %d alive after Close: %v", name, pid, ok)
		if ok {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if bystander.Process != nil {
		err := bystander.Process.Signal(syscall.Signal(0))
		done := make(chan error, 1)
		go func() { done <- bystander.Wait() }()
		select {
		case err = <-done:
			t.Logf("bystander with the same variable: %v", err)
		case <-time.After(300 * time.Millisecond):
			t.Logf("bystander lives (%v)", err)
			_ = bystander.Process.Kill()
		}
	}
}

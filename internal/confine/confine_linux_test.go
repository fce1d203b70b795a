package confine_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/agent-troupe/troupe/internal/confine"
	"github.com/agent-troupe/troupe/session"
)

func TestMain(m *testing.M) {
	confine.Serve()
	if os.Getenv("CONFINE_PRINT_SIGNAL") != "" {
		var s int32
		_ = unix.Prctl(unix.PR_GET_PDEATHSIG, uintptr(unsafe.Pointer(&s)), 0, 0, 0)
		fmt.Print(s)
		return
	}
	if path := os.Getenv("CONFINE_TRUNCATE"); path != "" {
		_ = os.Truncate(path, 0)
		return
	}
	os.Exit(m.Run())
}

// place is a directory ws, which commands may write, with a hidden file, and one beside it.
type place struct{ ws, out string }

func newPlace(t *testing.T) place {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	p := place{filepath.Join(root, "ws"), filepath.Join(root, "out")}
	for _, dir := range []string{p.ws, p.ws + "/sub", p.ws + "/other", p.out} {
		require.NoError(t, os.Mkdir(dir, 0o700))
	}
	require.NoError(t, os.Symlink(p.out, p.ws+"/link"))
	for path, text := range map[string]string{"/ws/a": "a", "/ws/sub/b": "b", "/ws/secret": "SECRET", "/out/file": "file", "/out/private": "SECRET"} {
		require.NoError(t, os.WriteFile(root+path, []byte(text), 0o600))
	}
	return p
}

func (p place) hides(path string) (here, below bool) {
	for _, hidden := range []string{p.ws + "/secret", p.out + "/private"} {
		here, below = here || confine.Within(path, hidden), below || confine.Within(hidden, path)
	}
	return here, below
}

// command is a shell's command, which is confined unless the rules are nil.
func (p place) command(t *testing.T, rules *confine.Rules, script string) *exec.Cmd {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	env := append(os.Environ(), "WS="+p.ws, "OUT="+p.out, "PROGRAM="+program)
	c, input := session.Command{Path: "/bin/bash", Args: []string{"-c", script}, Dir: p.ws, Env: env}, []byte(nil)
	if rules != nil {
		c, input = rules.Wrap(c)
	}
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Dir, cmd.Env, cmd.Stdin = c.Dir, c.Env, bytes.NewReader(input)
	return cmd
}

func (p place) rules(t *testing.T) *confine.Rules {
	t.Helper()
	tree, err := confine.Readable(p.hides, p.ws)
	require.NoError(t, err)
	r := confine.RulesOf(tree, []string{p.ws})
	return &r
}

// needsLandlock skips where the kernel cannot confine: TestWhatTheKernelHas says whether that is so.
func needsLandlock(t *testing.T) {
	t.Helper()
	if err := confine.Available(); err != nil {
		t.Skip(err)
	}
}

// version is that of the kernel's Landlock; 0 without.
func version() int {
	v, _, errno := syscall.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(v)
}

// The error is there if, and only if, the kernel lacks what is needed.
func TestWhatTheKernelHas(t *testing.T) {
	t.Parallel()
	err := confine.Available()
	if version() < 3 {
		require.ErrorIs(t, err, errors.ErrUnsupported)
		return
	}
	require.NoError(t, err)
}

// Each attack works on a command that is not confined, and on no other.
func TestAttacks(t *testing.T) {
	t.Parallel()
	needsLandlock(t)
	exists := func(path string) func(*testing.T, place, string) bool {
		return func(_ *testing.T, p place, _ string) bool {
			_, err := os.Lstat(strings.NewReplacer("WS", p.ws, "OUT", p.out).Replace(path))
			return err == nil
		}
	}
	changed := func(_ *testing.T, p place, _ string) bool {
		b, err := os.ReadFile(p.out + "/file")
		return err != nil || string(b) != "file"
	}
	printed := func(text string) func(*testing.T, place, string) bool {
		return func(_ *testing.T, _ place, output string) bool { return strings.Contains(output, text) }
	}
	secret := printed("SECRET")
	for name, c := range map[string]struct {
		script string
		worked func(t *testing.T, p place, output string) bool
	}{
		"write by an absolute path":     {`echo x >$OUT/new`, exists("OUT/new")},
		"write by ..":                   {`echo x >../out/new`, exists("OUT/new")},
		"write after cd":                {`cd $OUT && echo x >new`, exists("OUT/new")},
		"write through a link":          {`echo x >link/new`, exists("OUT/new")},
		"write through a new link":      {`ln -s $OUT sub/l; echo x >sub/l/new`, exists("OUT/new")},
		"write through /proc":           {`echo x >/proc/self/root$OUT/new`, exists("OUT/new")},
		"write by a child":              {`bash -c 'setsid bash -c "echo x >$OUT/new"'`, exists("OUT/new")},
		"change a file":                 {`echo x >$OUT/file`, changed},
		"append to a file":              {`echo x >>$OUT/file`, changed},
		"truncate a file":               {`truncate -s 0 $OUT/file`, changed},
		"truncate a file by its path":   {`CONFINE_TRUNCATE=$OUT/file "$PROGRAM"`, changed},
		"remove a file":                 {`rm -f $OUT/file`, changed},
		"rename over a file":            {`mv -f sub/b $OUT/file`, changed},
		"copy over a file":              {`cp sub/b $OUT/file`, changed},
		"take a file away":              {`mv $OUT/file sub/`, changed},
		"rename a file away":            {`mv sub/b $OUT/b`, exists("OUT/b")},
		"link a file away":              {`ln sub/b $OUT/b`, exists("OUT/b")},
		"change a file by its new name": {`ln $OUT/file sub/f; echo x >sub/f`, changed},
		"make a directory":              {`mkdir $OUT/d`, exists("OUT/d")},
		"make a link":                   {`ln -s / $OUT/l`, exists("OUT/l")},
		"make a pipe":                   {`mkfifo $OUT/p`, exists("OUT/p")},
		"read a hidden file":            {`cat $OUT/private`, secret},
		"read one in the workspace":     {`cat secret`, secret},
		"read one by a link":            {`ln -s $WS/secret sub/s; cat sub/s`, secret},
		"read one by a new name":        {`ln secret sub/s; cat sub/s`, secret},
		"read one by another name":      {`ln secret s; cat s`, secret},
		"read one that was moved":       {`mv secret sub/s; cat sub/s`, secret},
		"read one in a moved directory": {`mv $WS $WS.2; cat $WS.2/secret`, secret},
		"read one through /proc":        {`cat /proc/self/cwd/secret`, secret},
		"read one by a child":           {`setsid bash -c 'head -c9 <secret'`, secret},
		"name one anew":                 {`mv secret s; ln s t`, exists("WS/s")},
		"name one anew by a link":       {`ln secret t`, exists("WS/t")},
		"write over one":                {`echo x >secret; [ $(stat -c %s secret) = 6 ] || echo changed`, printed("changed")},
		"read the parent's environment": {`tr '\0' '\n' </proc/$PPID/environ | sed 's/^PATH=.*/found/'`, printed("found")},
		"signal another process":        {`kill -0 $PPID && echo alive`, printed("alive")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "signal another process" && version() < 6 {
				t.Skip("the kernel has no such limit yet")
			}
			free, held := newPlace(t), newPlace(t)
			output, _ := free.command(t, nil, c.script).CombinedOutput()
			require.True(t, c.worked(t, free, string(output)), "no attack: %s", output)
			output, _ = held.command(t, held.rules(t), c.script).CombinedOutput()
			assert.False(t, c.worked(t, held, string(output)), "%s", output)
			assert.NotContains(t, string(output), "could not be confined")
		})
	}
}

// As root, a command can neither mount nor make a device, with which it could read a disk.
func TestRootIsConfined(t *testing.T) {
	t.Parallel()
	needsLandlock(t)
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
	p := newPlace(t)
	output, err := p.command(t, p.rules(t), `! mknod sub/null c 1 3 && ! mount -t tmpfs none sub && ! chroot / true 2>/dev/null || echo did`).CombinedOutput()
	require.NoError(t, err)
	_, err = os.Lstat(p.ws + "/sub/null")
	require.ErrorIs(t, err, os.ErrNotExist)
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	assert.NotContains(t, string(mounts), p.ws, "%s", output)
}

// Root's command loses the capabilities that lead around the rules, also if the program may not limit
// those of others. It ends threads, so no command of another test runs meanwhile: that dies with its thread.
func TestCapabilities(t *testing.T) {
	needsLandlock(t)
	if os.Geteuid() != 0 {
		t.Skip("not root")
	}
	for _, limits := range []bool{true, false} {
		p := newPlace(t)
		cmd := p.command(t, p.rules(t), `sed -n 's/^Cap\(Inh\|Prm\|Eff\|Amb\):\s*/0x/p' /proc/self/status`)
		var output []byte
		var err error
		var done sync.WaitGroup
		done.Go(func() {
			runtime.LockOSThread() // the thread ends without its capabilities
			if !limits {
				head, has := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}, [2]unix.CapUserData{}
				assert.NoError(t, unix.Capget(&head, &has[0]))
				has[0].Effective &^= 1 << unix.CAP_SETPCAP
				has[0].Permitted &^= 1 << unix.CAP_SETPCAP
				assert.NoError(t, unix.Capset(&head, &has[0]))
				assert.NoError(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
			}
			output, err = cmd.CombinedOutput()
		})
		done.Wait()
		require.NoError(t, err, "%s", output)
		sets := strings.Fields(string(output))
		require.Len(t, sets, 4, "%s", output)
		for _, text := range sets {
			set, err := strconv.ParseUint(text, 0, 64)
			require.NoError(t, err)
			for _, capability := range []int{unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE, unix.CAP_SYS_MODULE, unix.CAP_SYS_RAWIO, unix.CAP_DAC_READ_SEARCH, unix.CAP_MKNOD, unix.CAP_BPF} {
				assert.Zero(t, set>>capability&1, "%v: %d of %s", limits, capability, text)
			}
		}
	}
}

// A link that has taken the place of a path since the rules were made leads nowhere: a command that
// began before may have put it there.
func TestPathsThatHaveBecomeLinks(t *testing.T) {
	t.Parallel()
	needsLandlock(t)
	p := newPlace(t)
	rules := p.rules(t)
	require.Contains(t, rules.Write, p.ws+"/sub")
	require.Contains(t, rules.ReadFiles, p.ws+"/a")
	for path, to := range map[string]string{"/sub": p.out, "/a": p.out + "/private"} {
		require.NoError(t, os.RemoveAll(p.ws+path))
		require.NoError(t, os.Symlink(to, p.ws+path))
	}
	output, err := p.command(t, rules, `echo x >sub/new; cat a; echo ran`).CombinedOutput()
	require.NoError(t, err, "%s", output)
	assert.Contains(t, string(output), "ran\n")
	assert.NotContains(t, string(output), "SECRET")
	assert.NoFileExists(t, p.out+"/new")
}

// Ordinary commands work.
func TestWork(t *testing.T) {
	t.Parallel()
	needsLandlock(t)
	p := newPlace(t)
	script := `set -e
cat a /etc/passwd /proc/self/status >/dev/null; ls / . "$OUT" >/dev/null
echo x >a; echo y >>a                                   # in a directory with a hidden file, others can be changed
cd sub; echo 'echo ran' >run; chmod +x run; bash ./run; ./run # a file that the command has made
mkdir -p d/e; mv run d/e/; mv d ../other/; ln ../other/d/e/run f; rm -r ../other/d f
echo text >/dev/stderr; : </dev/zero; mktemp -p . >/dev/null
sleep 60 & kill $!`
	output, err := p.command(t, p.rules(t), script).CombinedOutput()
	require.NoError(t, err, "%s", output)
	assert.Equal(t, "ran\nran\ntext\n", string(output))
	b, err := os.ReadFile(p.ws + "/a")
	require.NoError(t, err)
	assert.Equal(t, "x\ny\n", string(b))
}

// The process stays the same one, with its environment and its input.
func TestTheProcessBecomesTheCommand(t *testing.T) {
	t.Parallel()
	needsLandlock(t)
	p := newPlace(t)
	cmd := p.command(t, p.rules(t), `echo $$ $PPID "$(cat)" "$TROUPE_CONFINE" $(grep -c 'NoNewPrivs:.*1' /proc/self/status); exit 7`)
	cmd.Stdin = io.MultiReader(cmd.Stdin, strings.NewReader("rest"))
	var out bytes.Buffer
	cmd.Stdout = &out
	require.NoError(t, cmd.Start())
	var exit *exec.ExitError
	require.ErrorAs(t, cmd.Wait(), &exit)
	assert.Equal(t, 7, exit.ExitCode())
	assert.Equal(t, []string{strconv.Itoa(cmd.Process.Pid), strconv.Itoa(os.Getpid()), "rest", "1"}, strings.Fields(out.String()))
}

// If the program that has started a command dies, so does the command: the kernel knows of it.
func TestACommandDiesWithItsParent(t *testing.T) {
	t.Parallel()
	needsLandlock(t)
	p := newPlace(t)
	cmd := p.command(t, p.rules(t), `exec "$PROGRAM"`)
	cmd.Env = append(cmd.Env, "CONFINE_PRINT_SIGNAL=1")
	output, err := cmd.Output()
	require.NoError(t, err)
	assert.Equal(t, strconv.Itoa(int(syscall.SIGKILL)), string(output))
}

// If it cannot be confined, a command does not run.
func TestNoCommandWithoutRules(t *testing.T) {
	t.Parallel()
	needsLandlock(t)
	p := newPlace(t)
	for name, change := range map[string]func(*exec.Cmd){
		"no rules":     func(c *exec.Cmd) { c.Stdin = strings.NewReader("") },
		"half of them": func(c *exec.Cmd) { c.Stdin = io.LimitReader(c.Stdin, 9) },
		"others":       func(c *exec.Cmd) { c.Stdin = strings.NewReader(strings.Repeat("x", 10_000)) },
		"no length":    func(c *exec.Cmd) { c.Env = append(c.Env, confine.Env+"=x") },
		"another parent": func(c *exec.Cmd) {
			b, _ := io.ReadAll(c.Stdin)
			c.Stdin = bytes.NewReader(bytes.Replace(b, []byte(`"parent":`), []byte(`"parent":9`), 1))
			c.Env = append(c.Env, confine.Env+"="+strconv.Itoa(len(b)+1))
		},
		"no such program": func(c *exec.Cmd) { c.Args[1] = "/no/such/program" },
		"no program":      func(c *exec.Cmd) { c.Args = c.Args[:1] },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := p.command(t, p.rules(t), "echo ran")
			change(cmd)
			output, err := cmd.Output()
			var exit *exec.ExitError
			require.ErrorAs(t, err, &exit)
			assert.Equal(t, 126, exit.ExitCode())
			assert.Contains(t, string(output), "could not be confined")
			assert.NotContains(t, string(output), "ran\n")
		})
	}
}

// A hidden link hides what it leads to; one that leads to a directory above the workspace does
// not, since then nothing could run.
func TestHiddenLinks(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	require.NoError(t, os.Symlink(p.out+"/file", p.ws+"/env"))
	require.NoError(t, os.Symlink("/", p.ws+"/sub/env"))
	tree, err := confine.Readable(func(path string) (here, below bool) {
		return filepath.Base(path) == "env", confine.Within(p.ws, path) || confine.Within(path, p.ws)
	}, p.ws)
	require.NoError(t, err)
	assert.Contains(t, tree.Dirs, p.ws)
	assert.NotContains(t, tree.Dirs, p.out)
	assert.NotContains(t, tree.Files, p.out+"/file")
	assert.Contains(t, tree.Files, p.out+"/private")
}

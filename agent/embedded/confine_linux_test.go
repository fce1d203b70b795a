package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/agent-troupe/troupe/agent/embedded"
	"github.com/agent-troupe/troupe/model"
	"github.com/agent-troupe/troupe/model/modeltest"
	"github.com/agent-troupe/troupe/sdk"
	"github.com/agent-troupe/troupe/session"
)

// confinedScript is a session whose commands are confined so.
func confinedScript(t *testing.T, c embedded.Confine, answers ...*modeltest.Answer) *scripted {
	t.Helper()
	s := script(t, answers...)
	s.o.Backend = embedded.New(embedded.Config{Model: s.server.Anthropic(model.Config{}), Name: "m", Confine: c})
	s.o.Env["TROUPE_EMBEDDED_DIR"] = filepath.Join(s.o.Cwd, "../state")
	return s
}

// hasLandlock says what the kernel has, by itself.
func hasLandlock() bool {
	v, _, errno := syscall.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	return errno == 0 && v >= 3
}

func shells(commands ...string) (all []*modeltest.Answer) {
	for _, c := range commands {
		all = append(all, bashCall(map[string]any{"command": c}))
	}
	return all
}

// texts are the results of the calls, one of each request but the first.
func texts(t *testing.T, s *scripted, n int) (all []string) {
	t.Helper()
	for _, r := range s.requests(t, n+1)[1 : n+1] {
		all = append(all, says(t, r))
	}
	return all
}

// Where the kernel has Landlock, commands of a session are confined. Elsewhere the session does
// not start, and the error names the option.
func TestCommandsAreConfined(t *testing.T) {
	t.Parallel()
	answers := shells(
		"cd sub && echo one >one && cat one && mktemp && echo $PS0x",
		"pwd; bash ../leak.sh",
		"echo x >../../outside",
		"bash ../leak2.sh; cat ../../home/.config/token",
		"echo x >../../cache/x && echo cached",
	)
	answers = append(answers, background("bash ../leak.sh; echo x >../../late; cat ../../hidden"), modeltest.Say(modeltest.Text("waiting")))
	s := confinedScript(t, embedded.Confine{Landlock: true, Write: []string{"../cache"}, Hide: []string{"../hidden", "~/no/such/file"}}, answers...)
	root := filepath.Dir(s.o.Cwd)
	for path, text := range map[string]string{
		"proj/sub/x": "x", "proj/.env": "SECRET", "proj/leak.sh": "cat ../.env ../../hidden; mv ../.env x; cat x", "proj/leak2.sh": "mkdir ../d; rm ../.env; cat ../other/key",
		"proj/other/key": "SECRET", "home/.config/token": "SECRET", "cache/y": "y", "hidden": "SECRET", "home/.bashrc": "export PS0x=snapshot",
	} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(root, path)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(root, path), []byte(text), 0o600))
	}
	s.o.DisallowedTools = []string{"Read(**/.env)"}
	s.o.Policy = &sdk.Policy{Allow: []string{"Bash"}, Deny: []string{"Read(other/key)", "Read(~/.config/**)"}}
	s.o.CanUseTool = func(context.Context, *sdk.ToolPermissionRequest) (sdk.PermissionResult, error) {
		return sdk.Allow(), nil // a command may name what it likes: the kernel refuses it
	}
	if !hasLandlock() {
		_, err := connect(t, s.o)
		var e *sdk.ConfigError
		require.ErrorAs(t, err, &e)
		assert.Equal(t, "Backend", e.Option)
		assert.Contains(t, e.Problem, "Landlock")
		return
	}
	s.open(t)
	all := texts(t, s, 6)
	one := strings.Split(all[0], "\n")
	require.Len(t, one, 3, all[0])
	assert.Equal(t, "one", one[0])
	assert.True(t, strings.HasPrefix(one[1], root+"/tmp/troupe-tools-"), one[1])
	assert.Equal(t, "snapshot", one[2])
	assert.Contains(t, all[1], s.o.Cwd+"/sub\n", "the shell's directory is kept")
	assert.Contains(t, all[2], "(Commands are confined: they can write only in "+s.o.Cwd+", "+root+"/cache and $TMPDIR")
	assert.Equal(t, "cached", all[4])
	m := taskText.FindStringSubmatch(all[5])
	require.NotNil(t, m, all[5])
	result(t, s)
	s.requests(t, 8) // the end of the command is reported
	kept, err := os.ReadFile(m[2])
	require.NoError(t, err)
	assert.Equal(t, 5, strings.Count(string(kept), "ermission denied"), "%s", kept)
	assert.NotContains(t, strings.Join(append(all, string(kept)), "\n"), "SECRET")
	for _, none := range []string{"outside", "late", "proj/d", "proj/sub/x.env"} {
		assert.NoFileExists(t, filepath.Join(root, none))
	}
	b, err := os.ReadFile(filepath.Join(root, "proj/.env"))
	require.NoError(t, err)
	assert.Equal(t, "SECRET", string(b))
}

// Commands of subagents are confined, too.
func TestCommandsOfSubagentsAreConfined(t *testing.T) {
	t.Parallel()
	if !hasLandlock() {
		t.Skip("TestCommandsAreConfined has the error")
	}
	m, o := teamed(t, map[string][]*modeltest.Answer{
		"go":  {modeltest.Say(modeltest.Call("Agent", map[string]any{"description": "sub", "prompt": "sub", "run_in_background": false}))},
		"sub": shells("echo x >here; echo x >../$(basename $PWD)-out; bash leak.sh"),
	})
	o.Backend = embedded.New(embedded.Config{Model: m.model, Name: "claude-sonnet-4-5", Dir: t.TempDir(), Confine: embedded.Confine{Landlock: true}})
	o.Env = map[string]string{"TMPDIR": t.TempDir()}
	o.DisallowedTools = []string{"Read(secrets/**)"}
	for path, text := range map[string]string{"secrets/key": "SECRET", "leak.sh": "cat secrets/key", "here": ""} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(o.Cwd, path)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(o.Cwd, path), []byte(text), 0o600))
	}
	m.ask(t, m.open(t, o), "go")
	said := ""
	for _, r := range m.server.Requests() {
		said += fmt.Sprint(r.Results())
	}
	assert.Equal(t, 2, strings.Count(said, "ermission denied"), said)
	assert.NotContains(t, said, "SECRET")
	assert.NoFileExists(t, o.Cwd+"-out")
	b, err := os.ReadFile(filepath.Join(o.Cwd, "here"))
	require.NoError(t, err)
	assert.Equal(t, "x\n", string(b))
}

// Without Confine the same commands do harm: what the test above sees is the confinement.
func TestCommandsThatAreNotConfined(t *testing.T) {
	t.Parallel()
	s := script(t, shells("echo x >../outside; bash leak.sh")...)
	for path, text := range map[string]string{".env": "SECRET", "leak.sh": "mv .env x; cat x"} {
		require.NoError(t, os.WriteFile(filepath.Join(s.o.Cwd, path), []byte(text), 0o600))
	}
	s.o.DisallowedTools = []string{"Read(.env)"}
	s.open(t)
	assert.Contains(t, texts(t, s, 1)[0], "SECRET")
	assert.FileExists(t, filepath.Join(s.o.Cwd, "../outside"))
}

// A command that cannot be confined does not run, and the model reads why.
func TestACommandThatCannotBeConfined(t *testing.T) {
	t.Parallel()
	if !hasLandlock() {
		t.Skip("TestCommandsAreConfined has the error")
	}
	s := confinedScript(t, embedded.Confine{Landlock: true}, shells("echo ran >ran")...)
	s.o.Env["TMPDIR"] = s.o.Cwd
	s.open(t)
	assert.Contains(t, texts(t, s, 1)[0], "TMPDIR must name another")
	assert.NoFileExists(t, filepath.Join(s.o.Cwd, "ran"))
}

// Each field of the sandbox holds, or is an error that names it.
func TestSandbox(t *testing.T) {
	t.Parallel()
	on := func(change func(*session.Sandbox)) *session.Sandbox {
		s := &session.Sandbox{Enabled: sdk.Some(true)}
		change(s)
		return s
	}
	files := func(f session.SandboxFilesystem) *session.Sandbox {
		return on(func(s *session.Sandbox) { s.Filesystem = &f })
	}
	yes := sdk.Some(true)
	for option, box := range map[string]*session.Sandbox{
		"Sandbox.Enabled":                              {},
		"Sandbox.AutoAllowBashIfSandboxed":             on(func(s *session.Sandbox) { s.AutoAllowBashIfSandboxed = yes }),
		"Sandbox.ExcludedCommands":                     on(func(s *session.Sandbox) { s.ExcludedCommands = []string{"docker"} }),
		"Sandbox.AllowUnsandboxedCommands":             on(func(s *session.Sandbox) { s.AllowUnsandboxedCommands = yes }),
		"Sandbox.Network":                              on(func(s *session.Sandbox) { s.Network = &session.SandboxNetwork{} }),
		"Sandbox.IgnoreViolations":                     on(func(s *session.Sandbox) { s.IgnoreViolations = map[string][]string{"file": {"/"}} }),
		"Sandbox.EnableWeakerNestedSandbox":            on(func(s *session.Sandbox) { s.EnableWeakerNestedSandbox = yes }),
		"Sandbox.EnableWeakerNetworkIsolation":         on(func(s *session.Sandbox) { s.EnableWeakerNetworkIsolation = yes }),
		"Sandbox.AllowNestedUserNamespaces":            on(func(s *session.Sandbox) { s.AllowNestedUserNamespaces = yes }),
		"Sandbox.AllowAppleEvents":                     on(func(s *session.Sandbox) { s.AllowAppleEvents = yes }),
		"Sandbox.Ripgrep":                              on(func(s *session.Sandbox) { s.Ripgrep = &session.SandboxRipgrep{Command: "rg"} }),
		"Sandbox.BwrapPath":                            on(func(s *session.Sandbox) { s.BwrapPath = "bwrap" }),
		"Sandbox.SocatPath":                            on(func(s *session.Sandbox) { s.SocatPath = "socat" }),
		"Sandbox.Extra":                                on(func(s *session.Sandbox) { s.Extra = map[string]json.RawMessage{"x": json.RawMessage("1")} }),
		"Sandbox.Filesystem.Disabled":                  files(session.SandboxFilesystem{Disabled: yes}),
		"Sandbox.Filesystem.AllowManagedReadPathsOnly": files(session.SandboxFilesystem{AllowManagedReadPathsOnly: yes}),
		"Sandbox.Filesystem.AllowRead":                 files(session.SandboxFilesystem{AllowRead: []string{"a"}}),
		"Sandbox.Filesystem.DenyWrite":                 files(session.SandboxFilesystem{DenyWrite: []string{"a"}}),
		"Sandbox.Filesystem.DenyRead":                  files(session.SandboxFilesystem{DenyRead: []string{"**/.env"}}),
		"Sandbox.Filesystem.AllowWrite":                files(session.SandboxFilesystem{AllowWrite: []string{""}}),
		"Sandbox.Credentials.EnvVars": on(func(s *session.Sandbox) {
			s.Credentials = &session.SandboxCredentials{EnvVars: []session.SandboxCredential{{Name: "X"}}}
		}),
		"Sandbox.Credentials.Files": on(func(s *session.Sandbox) {
			s.Credentials = &session.SandboxCredentials{Files: []session.SandboxCredential{{Path: "a", Mode: "mask"}}}
		}),
		"Sandbox.Credentials": on(func(s *session.Sandbox) { s.Credentials = &session.SandboxCredentials{AllowPlaintextInject: yes} }),
	} {
		_, o := started(t)
		o.Sandbox = box
		_, err := connect(t, o)
		errs := sdk.ConfigErrors(err)
		require.Len(t, errs, 1, "%s: %v", option, err)
		assert.Equal(t, option, errs[0].Option)
	}
}

func TestASandbox(t *testing.T) {
	t.Parallel()
	if !hasLandlock() {
		t.Skip("TestTheKernelHasNoLandlock has the error")
	}
	s := script(t, shells("echo x >../outside", "cat ../a* ../b*; echo x >../cache/x && echo cached")...)
	for _, path := range []string{"../aa", "../bb", "../cache/y"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(s.o.Cwd, path)), 0o700))
		require.NoError(t, os.WriteFile(filepath.Join(s.o.Cwd, path), []byte("SECRET"), 0o600))
	}
	s.o.Sandbox = &session.Sandbox{
		Enabled: sdk.Some(true), Filesystem: &session.SandboxFilesystem{AllowWrite: []string{"../cache"}, DenyRead: []string{"/" + filepath.Join(s.o.Cwd, "../aa")}},
		Credentials: &session.SandboxCredentials{Files: []session.SandboxCredential{{Path: "../bb", Mode: "deny"}}},
	}
	s.open(t)
	all := texts(t, s, 2)
	assert.Contains(t, all[0], "Permission denied")
	assert.Contains(t, all[1], "cached")
	assert.NotContains(t, all[1], "SECRET")
	w := s.c.Warnings()
	require.Len(t, w, 1)
	assert.Equal(t, "Sandbox", w[0].Option)
	assert.Contains(t, w[0].Problem, "not the network")
}

// somewhere is a spawner that notes what it starts, in another place than this machine's, if
// a variable says so.
type somewhere struct {
	session.Spawner
	mu    sync.Mutex
	began []string
}

func elsewhere() *somewhere {
	s := &somewhere{}
	s.Spawner = sdk.SpawnThrough(func(c *session.Command) ([]string, func(context.Context) error, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.began = append(s.began, c.Args[3])
		return append([]string{"/usr/bin/env", "PLACE=there"}, c.Argv()...), nil, nil
	})
	return s
}

func TestCommandsElsewhere(t *testing.T) {
	t.Parallel()
	there := elsewhere()
	answers := shells("echo $PLACE; cd sub", "pwd", "for i in {1..9000}; do echo line $i; done")
	answers = append(answers,
		modeltest.Say(modeltest.Call("Read", map[string]any{"file_path": "a.txt"})),
		modeltest.Say(modeltest.Call("Read", map[string]any{"file_path": "/no/such/file"})),
		background("echo back"), modeltest.Say(modeltest.Call("Read", map[string]any{"file_path": "FILE"})), modeltest.Say(modeltest.Text("end")))
	s := confinedScript(t, embedded.Confine{Spawner: there}, answers...)
	s.o.Tools = sdk.Only("Bash", "Read", "TaskStop")
	require.NoError(t, os.Mkdir(filepath.Join(s.o.Cwd, "sub"), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(s.o.Cwd, "a.txt"), []byte("here"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(s.o.Cwd, "../home/.bashrc"), []byte("echo bashrc"), 0o600))
	s.open(t)
	all := texts(t, s, 7)
	assert.Equal(t, []string{"there", s.o.Cwd}, all[:2], "each begins in the working directory")
	assert.Contains(t, all[2], "<persisted-output>")
	assert.Contains(t, all[3], "on another machine")
	assert.Contains(t, all[4], "on another machine")
	assert.NotContains(t, all[6], "on another machine")
	there.mu.Lock()
	defer there.mu.Unlock()
	assert.Equal(t, []string{"echo $PLACE; cd sub", "pwd", "for i in {1..9000}; do echo line $i; done", "echo back"}, there.began)
}

// A spawner of the user's that panics fails the call.
func TestASpawnerThatPanics(t *testing.T) {
	t.Parallel()
	odd := sdk.SpawnThrough(func(*session.Command) ([]string, func(context.Context) error, error) { panic("odd") })
	s := confinedScript(t, embedded.Confine{Spawner: odd}, shells("pwd")...)
	s.o.Tools = sdk.Only("Bash")
	s.open(t)
	assert.Contains(t, texts(t, s, 1)[0], "panic while handling Spawn: odd")
}

// No command runs unasked where the links of this machine say nothing.
func TestCommandsThatOnlyReadElsewhere(t *testing.T) {
	t.Parallel()
	for shared, want := range map[bool]string{true: "a.txt", false: "This command requires approval"} {
		s := confinedScript(t, embedded.Confine{Spawner: elsewhere(), Shared: shared}, shells("ls")...)
		s.o.PermissionMode, s.o.AllowDangerouslySkipPermissions, s.o.Tools = "", false, sdk.Only("Bash")
		require.NoError(t, os.WriteFile(filepath.Join(s.o.Cwd, "a.txt"), []byte("here"), 0o600))
		s.open(t)
		assert.Contains(t, texts(t, s, 1)[0], want)
	}
}

func TestToolsForFilesElsewhere(t *testing.T) {
	t.Parallel()
	call := func(name string, in map[string]any) *modeltest.Answer { return modeltest.Say(modeltest.Call(name, in)) }
	s := confinedScript(t, embedded.Confine{Spawner: elsewhere(), Shared: true},
		call("Read", map[string]any{"file_path": "a.txt"}), call("Read", map[string]any{"file_path": "/etc/passwd"}), call("Read", map[string]any{"file_path": "link"}),
		call("Write", map[string]any{"file_path": "../new", "content": "x"}), call("Grep", map[string]any{"pattern": "x", "path": ".."}), call("Glob", map[string]any{"pattern": "/etc/*"}),
		call("Edit", map[string]any{"file_path": "/no/such/file", "old_string": "a", "new_string": "b"}),
		call("Grep", map[string]any{"pattern": "he"}), call("Write", map[string]any{"file_path": "new", "content": "x"}))
	require.NoError(t, os.WriteFile(filepath.Join(s.o.Cwd, "a.txt"), []byte("here"), 0o600))
	require.NoError(t, os.Symlink("/etc/passwd", filepath.Join(s.o.Cwd, "link")))
	s.open(t)
	all := texts(t, s, 9)
	for i, text := range all {
		refused := strings.Contains(text, "works only in the working directories")
		assert.Equal(t, i > 0 && i < 7, refused, "%d: %s", i, text)
	}
	assert.NoFileExists(t, filepath.Join(s.o.Cwd, "../new"))
	assert.FileExists(t, filepath.Join(s.o.Cwd, "new"))
}

func TestConfineIsWrong(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		confine  embedded.Confine
		option   string
		landlock bool // only then there is this error
	}{
		"Confine.Spawner":    {embedded.Confine{Spawner: elsewhere(), Landlock: true}, "Backend", false},
		"Confine.Shared":     {embedded.Confine{Shared: true}, "Backend", false},
		"Confine.Write":      {embedded.Confine{Write: []string{"/tmp"}}, "Backend", false},
		"Confine.Hide":       {embedded.Confine{Hide: []string{"/tmp"}}, "Backend", false},
		"/no/such/directory": {embedded.Confine{Landlock: true, Write: []string{"/no/such/directory"}}, "Backend", true},
		"has Edit, Glob, Grep, NotebookEdit, Write, which work on the files of this machine": {embedded.Confine{Spawner: elsewhere()}, "Tools", false},
	} {
		if c.landlock && !hasLandlock() {
			continue
		}
		s := confinedScript(t, c.confine)
		_, err := connect(t, s.o)
		errs := sdk.ConfigErrors(err)
		require.Len(t, errs, 1, "%s: %v", what, err)
		assert.Equal(t, c.option, errs[0].Option)
		assert.Contains(t, errs[0].Problem, what)
	}
	s := confinedScript(t, embedded.Confine{Spawner: elsewhere()})
	s.o.Tools, s.o.Sandbox = sdk.Only("Bash"), &session.Sandbox{Enabled: sdk.Some(true)}
	_, err := connect(t, s.o)
	require.ErrorContains(t, err, "option Sandbox")
}

// TestUnconfinable is not a test but a program: one whose main does not call
// runtime.ServeGuard, on a kernel without Landlock if a filter of system calls makes it so.
func TestUnconfinable(t *testing.T) {
	kind := os.Getenv(unservedEnv)
	if kind == "" {
		return // it is run by TestTheKernelHasNoLandlock
	}
	want := "does not call runtime.ServeGuard"
	if kind == "old" {
		noLandlock(t)
		require.False(t, hasLandlock())
		want = "this kernel has no Landlock"
	}
	s := confinedScript(t, embedded.Confine{Landlock: true})
	_, err := connect(t, s.o)
	var e *sdk.ConfigError
	require.ErrorAs(t, err, &e)
	assert.Equal(t, "Backend", e.Option)
	assert.Contains(t, e.Problem, want)

	s = script(t, shells("echo x >../outside && echo free")...)
	s.o.Sandbox = &session.Sandbox{Enabled: sdk.Some(true)}
	_, err = connect(t, s.o)
	require.ErrorAs(t, err, &e)
	assert.Equal(t, "Sandbox", e.Option)
	if s.o.Sandbox.FailIfUnavailable = sdk.Some(false); kind == "old" {
		s.open(t)
		assert.Equal(t, "free", texts(t, s, 1)[0])
		assert.Contains(t, fmt.Sprint(s.c.Warnings()), "does not confine commands: this kernel has no Landlock")
	}
	fmt.Println("it is so")
}

func TestTheKernelHasNoLandlock(t *testing.T) {
	t.Parallel()
	kinds := []string{"old"}
	if hasLandlock() {
		kinds = append(kinds, "unserved")
	}
	for _, kind := range kinds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			program := exec.CommandContext(ctx, "/proc/self/exe", "-test.run=^TestUnconfinable$", "-test.count=1")
			program.Env = append(os.Environ(), unservedEnv+"="+kind)
			out, err := program.CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Contains(t, string(out), "it is so")
		})
	}
}

// noLandlock has the kernel refuse Landlock to this process, as one without it does.
func noLandlock(t *testing.T) {
	t.Helper()
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the number of the system call
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_LANDLOCK_CREATE_RULESET, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	for {
		require.NoError(t, unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		_, _, errno := syscall.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&program)))
		if errno != unix.EACCES { // the goroutine may have moved to a thread without the first
			require.Zero(t, errno)
			return
		}
	}
}

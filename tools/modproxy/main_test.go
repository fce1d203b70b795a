package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const program = `package main

import (
	"context"
	"fmt"
	"log"

	troupenats "github.com/agent-troupe/troupe/contrib/nats"
	troupeotel "github.com/agent-troupe/troupe/contrib/otel"
	"github.com/agent-troupe/troupe/agent/scripted"
	"github.com/agent-troupe/troupe/sdk"
)

var _, _ = troupenats.Connect, troupeotel.Config{}

func main() {
	result, err := sdk.Run(context.Background(), "hello", &sdk.Options{Backend: scripted.New()})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(result.Result)
}
`

// outside is a directory outside of the tree, and the environment of go in it: our modules come
// from a proxy, the others from the files that this machine has.
func outside(t *testing.T) (dir string, env []string) {
	t.Helper()
	proxyDir, modules := filepath.Join(t.TempDir(), "proxy"), filepath.Join(t.TempDir(), "modules")
	require.NoError(t, proxy("../..", proxyDir, "v0.1.0"))
	t.Cleanup(func() { // they are read-only
		_ = filepath.Walk(modules, func(path string, _ os.FileInfo, _ error) error { return os.Chmod(path, 0o700) })
	})
	out, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	require.NoError(t, err)
	has := strings.Fields(string(out))
	env = append(os.Environ(), "GOMODCACHE="+modules, "GOSUMDB=off", "GOWORK=off", "GOFLAGS=-mod=mod -trimpath", "GOBIN="+t.TempDir(),
		"GOPROXY=file://"+filepath.ToSlash(proxyDir)+",file://"+filepath.ToSlash(filepath.Join(has[0], "cache", "download"))+","+has[1])
	dir = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "main.go"), []byte(program), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte(`module example.com/outside

go 1.26.0

require (
	github.com/agent-troupe/troupe v0.1.0
	github.com/agent-troupe/troupe/contrib/nats v0.1.0
	github.com/agent-troupe/troupe/contrib/otel v0.1.0
)
`), 0o600))
	return dir, env
}

func run(t *testing.T, dir string, env []string, words ...string) string {
	t.Helper()
	cmd := exec.Command(words[0], words[1:]...)
	cmd.Dir, cmd.Env = dir, env
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%v: %s", words, out)
	return string(out)
}

// A program outside of the tree gets our modules by their versions. With TROUPE_FULL=1 it is also built
// and run, and the command is installed: that compiles everything anew.
func TestAProgramOutsideOfTheTree(t *testing.T) {
	t.Parallel()
	dir, env := outside(t)
	all := run(t, dir, env, "go", "list", "-m", "all")
	for _, m := range []string{"", "/contrib/nats", "/contrib/otel"} {
		assert.Contains(t, all, mainModule+m+" v0.1.0\n")
	}
	if os.Getenv("TROUPE_FULL") == "" {
		return
	}
	run(t, dir, env, "go", "mod", "tidy")
	assert.Contains(t, run(t, dir, env, "go", "run", "."), "You said: hello")
	for _, command := range []string{mainModule + "/cmd/troupe@v0.1.0", mainModule + "/contrib/nats/cmd/troupe@v0.1.0"} {
		run(t, dir, env, "go", "install", command)
		bin := filepath.Join(env[len(env)-2][len("GOBIN="):], "troupe")
		if runtime.GOOS == "windows" {
			bin += ".exe"
		}
		assert.Regexp(t, `^troupe v0\.1\.0 `, run(t, dir, env, bin, "version"), command)
	}
}

func TestReleased(t *testing.T) {
	t.Parallel()
	got, err := released("go.mod", []byte("module github.com/agent-troupe/troupe/contrib/x\n\ngo 1.26.0\n\nrequire (\n\tgithub.com/agent-troupe/troupe v0.0.0\n\tgithub.com/agent-troupe/troupe/contrib/y v0.0.0\n\texample.com/z v1.2.3\n)\n\nreplace github.com/agent-troupe/troupe => ../..\n\nreplace github.com/agent-troupe/troupe/contrib/y => ../y\n"), "v1.0.0")
	require.NoError(t, err)
	assert.Equal(t, "module github.com/agent-troupe/troupe/contrib/x\n\ngo 1.26.0\n\nrequire (\n\tgithub.com/agent-troupe/troupe v1.0.0\n\tgithub.com/agent-troupe/troupe/contrib/y v1.0.0\n\texample.com/z v1.2.3\n)\n", string(got))
	_, err = released("go.mod", []byte("module x\n\nreplace example.com/z => ../z\n"), "v1.0.0")
	require.ErrorContains(t, err, "replaces example.com/z")
}

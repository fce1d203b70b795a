package embedded

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/agent"
	"github.com/agent-troupe/troupe/agent/backend"
)

// handsWithLinks are hands in a new directory, which has links to places above it. The home
// directory is another.
func handsWithLinks(t *testing.T) *hands {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	require.NoError(t, err)
	proj := filepath.Join(root, "proj")
	for _, dir := range []string{filepath.Join(proj, "sub"), filepath.Join(root, "home", "x"), filepath.Join(root, "other")} {
		require.NoError(t, os.MkdirAll(dir, 0o700))
	}
	for name, to := range map[string]string{"up": "..", "home": filepath.Join(root, "home"), "slash": "/", "here": "."} {
		require.NoError(t, os.Symlink(to, filepath.Join(proj, name)))
	}
	return newHands(agent.Launch{Dir: proj, Env: []string{"HOME=" + filepath.Join(root, "home"), "WHERE=/", "EMPTY="}}, backend.Seams{}, func(string) bool { return false })
}

// No such command is ever run here: only what is decided about it is looked at.
func TestRemovalsThatAreAlwaysAskedAbout(t *testing.T) {
	t.Parallel()
	h := handsWithLinks(t)
	for _, command := range []string{
		"rm -rf /", "rm -rf //", "rm -rf /.", "rm -rf /..", "rm -rf /*", "rm -rf /.*", "rm -rf '/'", `rm -rf "/"`, "rm -rf /usr", "rm -rf /home/", "rm -r -f -- /", "rm --no-preserve-root -rf /", "rm -rf / --",
		"rm -rf ~", "rm -rf ~/", "rm -rf ~/*", "rm -rf ~/.*", "rm -rf $HOME", `rm -rf "$HOME"`, "rm -rf ${HOME}", `rm -rf "${HOME:?}"`, "rm -rf $HOME/*", `rm -rf "$HOME"/`, "rm -rf ~+", "rm -rf ~root", "rm -rf " + h.home(), "rm -rf " + h.home() + "/../home", "rmdir ~",
		"rm -rf .", "rm -rf ./", "rm -rf ..", "rm -rf ../", "rm -rf *", "rm -rf ./*", "rm -rf .*", "rm -rf $PWD", `rm -rf "$PWD"/*`, "rm -rf ../proj", "rm -rf " + h.root, "rm -rf ../../*",
		"rm -rf up", "rm -rf up/", "rm -rf home/", "rm -rf slash", "rm -rf here/", "rm -rf sub/../..", "rm -rf home/*", "rm -rf slash/usr",
		"cd / && rm -rf *", "cd /; rm -rf .", "cd && rm -rf *", "cd ~ && rm -rf .", "cd .. && rm -rf proj", "cd .. && rm -rf *", "(cd /; rm -rf usr)", "pushd / && rm -rf ./*", "cd sub && rm -rf ..", "cd sub && cd .. && rm -rf ../proj", `cd "$HOME" && rm -rf *`, "cd slash && rm -rf usr",
		`\rm -rf /`, `r''m -rf /`, `"rm" -rf /`, "/bin/rm -rf /", "sudo rm -rf /", "command rm -rf /", "env A=b rm -rf ~", "nohup rm -rf / &", "timeout 5 rm -rf /", "xargs rm -rf <<< /", "echo / | xargs rm -rf", "time rm -rf /", "busybox rm -rf /",
		"bash -c 'rm -rf /'", `sh -c "rm -rf ~"`, `eval "rm -rf /"`, "eval rm -rf /", `bash -c "bash -c 'rm -rf /'"`, "su -c 'rm -rf /'", "echo $(rm -rf /)", "echo `rm -rf ~`", "cat <(rm -rf /)",
		"X=/; rm -rf $X", "X=rm; $X -rf /", "for d in / ~; do rm -rf $d; done", "rm -rf $WHERE", "rm -rf $EMPTY/", `rm -rf "$NOSUCH"/*`, "rm -rf ${X:-/}", "if true; then rm -rf /; fi", "true && { rm -rf /; }", "f() { rm -rf /; }; f", "while :; do rm -rf /; done", "! rm -rf /", "rm -rf sub /",
		"rm -rf /{bin,usr}", "rm -rf {sub,/}", "rm -rf {..,sub}", "rm -rf /[a-z]*", "rm -rf /u?r/../*", "find / -delete", "find ~ -exec rm -rf {} +", "shred -u /", "unlink /", "rm -rf / 2>/dev/null", "ls; rm -rf /", "ls | rm -rf /", "rm -rf / || true", "rm\t-rf\t/", "rm -rf \\\n/",
		"rm -rf " + h.home()[:len(h.home())-1] + "?", "rm -rf ../pro*",
	} {
		assert.NotEmpty(t, h.critical(command), command)
	}
}

func TestRemovalsThatAreNotDangerous(t *testing.T) {
	t.Parallel()
	h := handsWithLinks(t)
	for _, command := range []string{
		"rm a.txt", "rm -rf sub", "rm -rf sub/", "rm -rf build/*", "rm -rf *.o", "rm -f x; cd " + h.root + " && make", "rm -rf build && ls /", "rm -rf ./sub", "rm -rf /tmp/x", "rm -rf ~/x", `rm -rf "$HOME/x"`, "cd sub && rm -rf x",
		"git rm a.txt && ls /", "grep rm /", "echo rm -rf /", "ls / ~", "cd / && ls", "rm -rf $EMPTY", "rm -f sub/*.txt", "find . -name x", "find sub -delete", "cat rm /", "rm -rf node_modules/{a,b}",
	} {
		assert.Empty(t, h.critical(command), command)
	}
}

// The words are those of Claude Code 2.1.329.
func TestWhyARemovalIsDangerous(t *testing.T) {
	t.Parallel()
	h := handsWithLinks(t)
	for command, why := range map[string]string{
		"rm -rf /":   "Dangerous rm operation on critical path: /",
		"rm -rf ~":   "Dangerous rm operation on critical path: " + h.home(),
		"rmdir .":    "Dangerous rmdir operation on working directory or its ancestor: " + h.root,
		"rm -rf ./*": "Dangerous rm operation on working directory or its ancestor: " + h.root,
	} {
		assert.Equal(t, why, h.critical(command), command)
	}
}

func FuzzCritical(f *testing.F) {
	for _, command := range []string{"rm -rf /", "cd / && rm -rf {a,{b,c}}*", "eval $(x", "for a in b; do rm $a; done", "rm ${a:-{}"} {
		f.Add(command)
	}
	h := newHands(agent.Launch{Dir: f.TempDir(), Env: []string{"HOME=/home/user"}}, backend.Seams{}, func(string) bool { return false })
	f.Fuzz(func(_ *testing.T, command string) { _ = h.critical(command) })
}

// find removes all that is in a place, unless a test says what.
func TestFindThatRemoves(t *testing.T) {
	t.Parallel()
	h := handsWithLinks(t)
	for _, command := range []string{
		"find . -delete", "find -delete", "find .. -delete", "find -L . -type f -delete", "find . -mindepth 1 -delete", "find up -delete", "find home/ -delete", "cd .. && find . -delete", "cd ~ && find . -exec rm {} +", "find . sub -delete",
		"find " + h.root + " -delete", "find ~/.. -delete", "find /usr -delete", "find slash -name x -delete", "find . -exec rm -rf {} ;", "find . -exec rm -rfv {} +", "find . -type f -exec rm -i {} ';' -print", "find ./* -delete", "find -O3 / -delete", "find -- / -name x -delete", "find / -name x -delete", "cd / && find . -name x -delete",
	} {
		assert.NotEmpty(t, h.critical(command), command)
	}
	for _, command := range []string{"find . -name '*.o' -delete", "find . -type d -empty -delete", "find sub -delete", "find . -type f", "find .. -name x", "find /tmp/x -delete", "find . -exec ls {} +", "find \"$X\" -delete", "find . -exec rm {} ';' -name x", "cd sub && find . -name x -delete"} {
		assert.Empty(t, h.critical(command), command)
	}
}

// A program that starts another one, and a shell by whatever way its script comes, hides no removal.
func TestRemovalsBehindOtherPrograms(t *testing.T) {
	t.Parallel()
	h := handsWithLinks(t)
	for _, wrapper := range []string{
		"sudo", "sudo -u root", "doas", "env", "env -i A=b", "timeout 5", "timeout -k 1 5", "nohup", "nice -n 5", "ionice -c 3", "exec", "exec -a x", "command", "time", "stdbuf -oL", "setsid", "busybox", "xargs", "strace -f", "flock x", "chroot /", "sudo nice timeout 5", "taskset 1", "unshare -r",
	} {
		for _, command := range []string{
			"rm -rf /", "/bin/rm -rf ~", "sh -c 'rm -rf /'", "bash -c 'rm -rf ~'", "/bin/bash -lc 'rm -rf ~'", `bash -c "rm -rf $HOME"`, "eval 'rm -rf ~'", "eval rm -rf ~", "find / -delete", "find / -exec rm -rf {} +", "find ~ -exec rm {} ';'", "bash -c 'sudo rm -rf /'", "sh -c \"rm\t-rf\t/\"", "bash -c 'find / -delete'", "sh -c 'rm${IFS}-rf${IFS}/'", "bash <<< 'rm -rf ~'",
		} {
			assert.NotEmpty(t, h.critical(wrapper+" "+command), "%s %s", wrapper, command)
		}
		for _, command := range []string{"rm -rf sub", "sh -c 'rm -rf sub'", "bash build.sh", "find sub -delete", "find . -name x", "find . -exec ls {} +", "bash -c 'echo $1' x", "make -j 4", "ls -s"} {
			assert.Empty(t, h.critical(wrapper+" "+command), "%s %s", wrapper, command)
		}
	}
	for _, command := range []string{
		"bash <<< 'rm -rf ~'", "bash <<'E'\nrm -rf ~\nE", "bash -s <<E\nls\nrm -rf /\nE", "bash -es x <<< 'rm -rf ~'", "bash -o pipefail <<< 'rm -rf ~'", "bash /dev/stdin <<< 'rm -rf ~'", "echo 'rm -rf ~' | bash", "printf 'rm -rf /\\n' | sh -", "echo 'rm -rf ~' | sudo -s", "echo 'rm -rf ~' | sudo bash", "cat <<'E' | sh\nrm -rf ~\nE", "echo 'rm -rf ~' | tee x | bash -x",
		"source /dev/stdin <<< 'rm -rf ~'", ". <(echo 'rm -rf ~')", "bash <(echo 'rm -rf ~')", `eval "$(echo 'rm -rf ~')"`, `bash -c "$(cat <<'E'` + "\nrm -rf ~\nE\n)\"", `read x <<< 'rm -rf ~'; eval "$x"`, "echo 'rm -rf ~' | su", "echo 'rm -rf ~' | su root",
		"sh -c \"rm\t-rf\t/\"", "sh -c 'rm -rf /'\"\"", "bash -c 'rm${IFS}-rf${IFS}/'", "rm${IFS}-rf${IFS}/", `X="rm -rf /"; $X`, `X="-rf /"; rm $X`, "trap 'rm -rf ~' EXIT", "watch 'rm -rf /'", "env -S 'rm -rf /'", "flock x -c 'rm -rf /'", "command cd / && rm -rf *", "builtin cd ~; rm -rf .",
		"find sub -exec sh -c 'rm -rf /' ';'", "find / -exec sh -c 'rm \"$@\"' _ {} +", "find . -exec env rm -rf {} +", "echo / | sudo xargs rm -rf", "echo / | xargs sh -c 'rm -rf \"$@\"' _", "script -c 'rm -rf ~' x", "ls | parallel 'rm -rf ~/'", "bash -c \"bash <<< 'rm -rf ~'\"",
	} {
		assert.NotEmpty(t, h.critical(command), command)
	}
	for _, command := range []string{
		"echo 'rm -rf sub' | bash", "bash build.sh", "cat > x.sh <<'E'\nrm -rf ~\nE", "cat > x.sh <<'E'\nrm -rf ~\nE\nbash x.sh", "bash -c 'ls /' | grep x", "git commit -m 'no rm -rf /'", "git commit -m 'no rm -rf / more' && bash build.sh", "ls / | xargs echo", "sudo apt install bash", "curl -s https://example.com/x.sh | bash", "X='a b'; echo $X", "find . -name '*.o' -exec rm {} +", "grep -s 'rm -rf /' x | head -1",
	} {
		assert.Empty(t, h.critical(command), command)
	}
}

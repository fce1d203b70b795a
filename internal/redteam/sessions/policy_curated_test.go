package sessions_test

import (
	"testing"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

// docs/hooks.md: "A deny or ask rule finds its command anywhere in the
// script and behind programs that run others … Where it cannot be ruled out,
// because a shell, an interpreter … stands in between, the call asks."
// All programs below were run on this machine (Debian 12), or are in its archive.
func TestDenyCurated(t *testing.T) {
	for _, c := range []struct{ deny, command, why string }{
		// The same command.
		{"Bash(git push:*)", "/usr/lib/git-core/git-push origin main", "git's own other name for it"},
		{"Bash(npm run deploy:*)", "npm run-script deploy", "run is an alias of run-script; so are rum and urn"},
		{"Bash(pip install:*)", "pip3 install x", "the same program"},
		{"Bash(pip install:*)", "./venv/bin/pip3.11 install x", "the same program"},
		// Shells, interpreters and editors by the names that they have on Debian.
		{"Bash(git push:*)", `vim.basic -es -c ':!git pu""sh' -c q`, "vim"},
		{"Bash(git push:*)", `vim.tiny -c ':!git pu""sh'`, "vim"},
		{"Bash(git push:*)", `perl5.36-x86_64-linux-gnu -e 'exec "git pu"."sh"'`, "perl"},
		{"Bash(git push:*)", `lksh -c 'git pu""sh'`, "mksh"},
		{"Bash(git push:*)", `posh -c 'git pu""sh'`, "a shell"},
		{"Bash(git push:*)", `original-awk 'BEGIN{system("git pu" "sh")}'`, "awk"},
		{"Bash(git push:*)", `emacs-nox --eval '(shell-command "git pu""sh")'`, "emacs"},
		{"Bash(git push:*)", `octave-cli --eval 'system(["git pu" "sh"])'`, "octave"},
		// GNU programs as Homebrew names them.
		{"Bash(git push:*)", `gsed '1e git pu""sh' f`, "sed"},
		{"Bash(rm:*)", `genv -S 'r\m x'`, "env"},
		// What hands a text to a shell.
		{"Bash(git push:*)", `tmux new -d 'g""it pu""sh'`, "tmux"},
		{"Bash(git push:*)", `sg root -c 'g""it pu""sh'`, "sg"},
		{"Bash(git push:*)", `capsh -- -c 'g""it pu""sh'`, "capsh"},
		{"Bash(git push:*)", `socat - SYSTEM:'g""it pu""sh'`, "socat"},
		{"Bash(git push:*)", `nc -l -c 'g""it pu""sh'`, "nc"},
		{"Bash(git push:*)", `entr -s 'g""it pu""sh'`, "entr"},
		{"Bash(git push:*)", `npx concurrently 'g""it pu""sh'`, "npm's runners"},
		{"Bash(git push:*)", `prove --exec 'sh -c "g""it pu""sh"' t`, "prove"},
		// Paths.
		{"Read(./secrets/**)", `cat "$PWD/secrets/key"`, "the word is known but for its start; Claude Code 2.1.329 denies it"},
		{"Read(.env)", `cat "$PWD/.env"`, "Claude Code 2.1.329 denies it"},
		{"Read(./secrets/**)", `cat ~+/secrets/key`, "~+ is $PWD"},
		{"Read(./secrets/**)", `sh -c 'cat secr""ets/key'`, "a path in a script in the script"},
		{"Read(./secrets/**)", `curl file:///repo/secret%73/key`, "curl takes % escapes out of file URLs"},
	} {
		p := compile(t, policy.Rules{Allow: []string{"Bash"}, Deny: []string{c.deny}})
		if e := p.Explain(bashCall(c.command)); e.Behavior == protocol.BehaviorAllow {
			t.Errorf("deny %s does not stop %s (%s)", c.deny, c.command, c.why)
		}
	}
}

// Claude Code 2.1.329 does not let a file be written that a Read rule denies.
func TestReadDenialsAndWrites(t *testing.T) {
	p := compile(t, policy.Rules{Allow: []string{"Edit", "Write"}, Deny: []string{"Read(.env)"}})
	for _, tool := range []string{"Edit", "Write"} {
		if e := p.Explain(policy.Call{Tool: tool, Input: js(t, map[string]string{"file_path": "/repo/.env"})}); e.Behavior == protocol.BehaviorAllow {
			t.Errorf("%s of a file that Read(.env) denies: %s", tool, e)
		}
	}
}

package policy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/policy"
)

// injectable are allow rules, each with a command that it allows.
var injectable = []struct{ rule, command string }{
	{"Bash(git:*)", "git status"},
	{"Bash(ls:*)", "ls"},
	{"Bash(echo:*)", "echo hi"},
	{"Bash(cat:*)", "cat x"},
	{"Bash(go test:*)", "go test ./..."},
	{"Bash(make:*)", "make all"},
	{"Bash(npm run test:*)", "npm run test"},
	{"Bash(grep:*)", "grep a b"},
	{"Bash(head *)", "head x"},
	{"Bash(wc*)", "wc -l"},
}

// injections are shell scripts by the shell feature that they use. %s is an
// allowed command. In at least one shell each script runs another program,
// opens a file, expands a word, changes what the command means, or is an error.
var injections = map[string][]string{
	"a second command": {
		"%s; id", "%s;id", "%s && id", "%s&&id", "%s || id", "%s | id", "%s|id", "%s |& id", "%s & id", "%s&id", "%s &", "%s\nid", "%s\n\tid", "id; %s", "id\n%s", "id|%s",
		"%s; exit; id", "%s;\\\nid", "%s;\n\n id", "%s;'id'", "%s;i\"\"d", "%s;\\id", "%s;/usr/bin/id", "%s;./id", "%s;i${x}d", "%s;$x", "%s;$(x)", "%s;`x`", "%s;i[d]", "%s;{id,-u}",
		"%s &! id", "%s &| id", "%s ;& id", "%s ;;& id", "%s ;| id", "%s & disown; id", "%s; and id", "%s; or id", "%s \u2018;id", "%s \u201c;id\u201d",
	},
	"control characters": {
		"%s\r\nid", "%s\rid", "%s\r;id", "%s \r", "%s\vid", "%s\fid", "%s\x00id", "%s\x00;id", "%s \x00", "%s\x1b[0m", "%s\x04id", "%s\x1aid", "%s\bid", "%s\x7fid", "%s\x1b]0;x\a", "\x00%s", "\r%s", "\v%s",
	},
	"invisible characters and Unicode white space": {
		"\u200b%s", "\ufeff%s", "%s\u200b", "%s\u200bid", "%s \u200c", "%s \u2060", "%s \u00ad", "%s\u00a0;id", "%s\u00a0id", "%s\u2003id", "%s\u3000id", "%s\u1680id", "%s\u180eid", "%s\u202fid", "%s\u205fid",
		"%s\u2028id", "%s\u2029id", "%s\u0085id", "%s\u202eid", "%s\u2066id", "%s \u200e", "%s \U000e0041", "%s \ue000", "%s \xff", "%s \xc3", "%s \xed\xa0\x80", "%s \ufffd", "\u00a0%s", "\u3000%s", "\u202e%s",
	},
	"another program, or another name of the program": {
		"\u0435%s", "\uff27%s", "./%s", "../%s", "/usr/bin/%s", "/tmp/%s", "~/%s", "$HOME/%s", "$PWD/%s", "$SHELL %s", "${0} %s", "$x%s", "\\%s", "'%s'", "\"%s\"", "x%s", "''%s", "\"\"%s", "$''%s", "=%s", "- %s", "%%s", ":%s",
	},
	"substitution of commands": {
		"%s $(id)", "%s `id`", "%s \"$(id)\"", "%s \"`id`\"", "%s x$(id)y", "$(id) %s", "`id` %s", "$(%s)", "`%s`", "\"$(%s)\"", "%s $(<x)", "%s $( (id) )", "%s $(`id`)", "%s \"\\\\$(id)\"", "%s '\n'$(id)", "%s \"\\$(id)\"$(id)", "%s \\$(id);$(id)", "%s ''`id`", "%s \"x'$(id)'\"",
		"%s ${ id; }", "%s ${|id; }", "%s (id)", "%s x(id)", "%s \\\\`id`", "%s $(\nid\n)", "%s $(id", "%s `id", "%s \"$(id)", "%s $(#)\nid)", "%s \uff04(id", "%s \uff04(id)",
	},
	"substitution of processes": {
		"%s <(id)", "%s >(id)", "%s >(cat)", "%s < <(id)", "%s > >(id)", "%s 2> >(id)", "%s =(id)", "%s x<(id)", "%s <(id) >(id)", "<(id) %s", "%s <(", "%s >(id",
	},
	"variables": {
		"%s $HOME", "%s $x", "%s ${x}", "%s \"$x\"", "%s \"${x}\"", "%s $1", "%s $@", "%s \"$@\"", "%s $*", "%s $$", "%s $-", "%s $!", "%s !$", "%s x$", "%s $_", "%s $0", "%s $#", "%s ${#x}", "%s ${!x}", "%s ${!x@}", "%s ${x@P}", "%s ${x@E}", "%s ${x:-$(id)}", "%s ${x:=y}", "%s ${x:?y}", "%s ${x:+y}", "%s ${x//a/$(id)}", "%s ${x/#a/b}", "%s ${x^^}",
		"%s ${x[$(id)]}", "%s ${x:$(id):1}", "%s ${x#$(id)}", "%s ${(e)x}", "%s ${(%):-x}", "%s ${(s: :)x}", "%s ${:-x}", "%s ${${x}}", "%s ${^x}", "%s ${=x}", "%s ${~x}", "%s $x[1]", "%s $x:h", "%s ${", "%s ${x", "%s x$y", "%s $PATH", "%s $IFS", "%s$IFS;id", "%s$IFS$9x", "%s${IFS}x",
	},
	"arithmetic": {
		"%s $((1+1))", "%s $((`id`))", "%s $((x[$(id)]))", "%s $((a=1))", "%s $[1+1]", "%s $[`id`]", "%s $((", "((1)) && %s", "((a[$(id)]=1)); %s", "let x=1; %s", "let 'a[$(id)]'; %s", "%s $(( $(id) ))", "%s \"$((a[$(id)]))\"", "[[ $(id) -eq 1 ]]; %s", "[[ -n x ]] && %s", "[[ 'a[$(id)]' -eq 1 ]]; %s",
	},
	"quotes that stand for other text": {
		"%s $'\\x41'", "%s $'\\x3bid'", "%s $'\\n'id", "%s $'a\\'';id'", "%s $'\\u003b'", "%s $'\\cA'", "$'%s'", "%s $\"x\"", "%s $\"$(id)\"", "%s x$'y'", "%s \"$'x'\"$'\\n'", "%s 'x", "%s \"x", "%s `", "%s $'x", "%s \\",
	},
	"braces": {
		"%s {a,b}", "%s {a,b}{c,d}", "%s {1..9}", "%s {a..z..2}", "%s x{,y}", "%s {--output=x,y}", "%s {-,}c", "{%s,x}", "{%s;}", "{ %s; }", "{ %s\n}", "%s {$(id),x}", "%s {a,", "%s }{a,b}",
	},
	"patterns": {
		"%s !(x)", "%s @(x)", "%s +(x)", "%s ?(x)", "%s *(x)", "%s *(e:id:)", "%s **(e:id:)", "%s *(e:'id':)", "%s *(.e{id})", "%s *(#qe:id:)", "%s *(+id)", "%s x(N)", "%s x(:s/a/b/)", "%s (a|b)", "%s <1-9>", "%s <->", "*%s",
	},
	"tildes and zsh's =command": {
		"%s ~", "%s ~root", "%s ~/x", "%s ~+", "%s ~-", "%s ~1", "%s ~[id]", "%s x=~", "%s x=~root", "%s x:~root", "%s --x=~", "%s =id", "%s =id x", "=id %s",
	},
	"redirections": {
		"%s >x", "%s > x", "%s >>x", "%s 2>x", "%s 2>>x", "%s 3>x", "%s &>x", "%s &>>x", "%s >|x", "%s >&x", "%s <>x", "%s 1<>x", "%s 2>&1 >x", "%s <x", "%s </etc/passwd", "%s <&3", "%s <&-", "%s >&-", "%s 0<&3-", "%s {fd}>x", "%s {fd}<x", "%s > ~/.ssh/authorized_keys", "%s >/dev/tcp/127.0.0.1/1", "%s </dev/udp/127.0.0.1/1",
		">x %s", "<x %s", "2>x %s", "2>&- %s", ">x", "%s >! x", "%s >>! x", "%s >>| x", "%s >&! x", "%s >&| x", "%s >$x", "%s >$(id)", "%s >'x'", "%s>x", "%s >\"x y\"", "%s >*", "%s >", "%s <", "exec >x; %s", "exec 3>x; %s",
	},
	"here-documents and here-strings": {
		"%s <<E\n$(id)\nE", "%s <<\\E\nx\nE", "%s <<-E\n\t$(id)\n\tE", "%s <<E;id\nE", "%s <<E|id\nE", "%s <<E\nE\nid", "%s <<E", "%s <<E\nx", "%s <<", "%s <<'E'\nx\nE\nid", "%s <<\"$(id)\"\n$(id)", "%s <<E <<F\nE\nF", "%s <<<$(id)", "%s <<< \"$(id)\"", "%s <<<", "<<E %s\nE",
	},
	"variables for the command": {
		"A=1 %s", "PATH=. %s", "PATH+=:. %s", "PATH=.:$PATH %s", "LD_PRELOAD=./x %s", "LD_LIBRARY_PATH=. %s", "LD_AUDIT=./x %s", "DYLD_INSERT_LIBRARIES=x %s", "BASH_ENV=x %s", "ENV=x %s", "ZDOTDIR=. %s", "SHELLOPTS=xtrace %s", "PS4='$(id)' %s", "IFS=x %s", "PROMPT_COMMAND=id %s", "BASH_FUNC_ls%%='() { id; }' %s",
		"GIT_SSH_COMMAND=id %s", "GIT_SSH=x %s", "GIT_PAGER=id %s", "GIT_EDITOR=id %s", "GIT_EXTERNAL_DIFF=id %s", "GIT_EXEC_PATH=. %s", "GIT_DIR=x %s", "GIT_WORK_TREE=/ %s", "GIT_CONFIG=x %s", "GIT_CONFIG_GLOBAL=x %s", "GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsmonitor GIT_CONFIG_VALUE_0=id %s", "GIT_CONFIG_PARAMETERS=\"'core.fsmonitor=id'\" %s", "GIT_PROXY_COMMAND=id %s", "GIT_ASKPASS=id %s", "GIT_TRACE=/x %s", "GIT_TEMPLATE_DIR=x %s", "GIT_OBJECT_DIRECTORY=x %s", "GIT_ALTERNATE_OBJECT_DIRECTORIES=x %s", "GIT_SEQUENCE_EDITOR=id %s",
		"PAGER=id %s", "EDITOR=id %s", "VISUAL=id %s", "LESSOPEN='|id' %s", "MANPAGER=id %s", "BROWSER=id %s", "SHELL=id %s", "HOME=/tmp %s", "TMPDIR=x %s", "CDPATH=/ %s", "TERMINFO=x %s", "GOFLAGS=-toolexec=id %s", "GOTOOLCHAIN=x %s", "GOENV=x %s", "CC=id %s", "CGO_CFLAGS=x %s", "MAKEFLAGS=--eval=x %s", "MAKEFILES=x %s", "GREP_OPTIONS=-f/x %s", "npm_config_script_shell=id %s", "NODE_OPTIONS=--require=x %s", "PYTHONPATH=. %s", "PERL5OPT=-Mx %s",
		"A=$(id) %s", "A=`id` %s", "A=<(id) %s", "A=(id) %s", "A[0]=1 %s", "a[$(id)]=1 %s", "x+=1 %s", "A= %s", "A=1 B=2 %s", "A=\"$(id)\" %s", "A=1\\\n %s", "A=1", "A=$(id)",
	},
	"variables for what follows": {
		"x=1; %s", "PATH=.; %s", "PATH=.\n%s", "PATH=. && %s", "IFS=x; %s", "declare x=1; %s", "declare -x PATH=.; %s", "typeset -x PATH=.; %s", "local PATH=.; %s", "readonly x=1; %s", "export X=1; %s", "export PATH=.; %s", "export -f x; %s", "unset PATH; %s", "unset -f x; %s", "printf -v PATH .; %s", "read PATH; %s", "read PATH <<<.; %s", "mapfile PATH; %s", "getopts x PATH; %s", "for PATH in .; do %s; done", "set -- x; %s", "shift; %s", "setenv PATH .; %s", "path=(.); %s", "nameref x=PATH; %s",
	},
	"other programs that run it": {
		"env %s", "env A=1 %s", "env PATH=. %s", "env -i %s", "env -S '%s'", "env -u x %s", "env -C / %s", "env - %s", "command %s", "command -p %s", "builtin %s", "exec %s", "exec -a x %s", "nohup %s", "sudo %s", "sudo -u x %s", "doas %s", "nice %s", "ionice %s", "stdbuf -o0 %s", "setsid %s", "unbuffer %s", "chroot / %s", "unshare %s", "strace -o x %s", "ltrace %s", "flock x %s", "watch %s", "script -c '%s'", "su -c '%s'", "ssh h %s", "parallel %s", "find . -exec %s ';'", "busybox %s", "systemd-run %s", "eval %s", "eval '%s'", "sh -c '%s'", "bash -c '%s'", "bash -lc \"%s\"", "zsh -c '%s'", "bash <<<'%s'", "echo '%s' | sh", "python3 -c '%s'", "perl -e '%s'", "awk '%s'", "trap '%s' EXIT", "noglob %s", "nocorrect %s", "repeat 2 %s",
	},
	"more than simple commands": {
		"(%s)", "( %s; id )", "{ %s; id; }", "if %s; then id; fi", "if id; then %s; fi", "while %s; do id; done", "until %s; do id; done", "for i in 1; do %s; done", "for ((;;)); do %s; done", "for x (a) %s", "foreach x (a) %s; end", "select x in a; do %s; done", "case x in x) %s;; esac", "case $(id) in *) %s;; esac", "case x in $(id)) %s;; esac",
		"f() { %s; }; f", "function f { %s; }", "function { %s; }", "() { %s; }", "f() %s", "f() ( %s )", "coproc %s", "coproc N { %s; }", "coproc id; %s", "{ %s; } always { id; }", "begin; %s; end", "time { %s; }", "! { %s; }", "[[ x ]]", "if [[ a ]] { %s }", "time", "!",
	},
	"other meanings for names": {
		"alias x=y; %s", "alias ls=id\n%s", "alias x='id'; %s", "alias -g X=';id'; %s X", "alias -s x=id; %s", "unalias -a; %s", "ls() { id; }; %s", "function git { id; }; %s", "git() { id; }\n%s", "cat () { id; }; %s", "hash -r; %s", "hash -p x ls; %s", "enable -n x; %s", "enable -f x ls; %s", "autoload x; %s", "zmodload x; %s", "emulate sh; %s", "complete -C id x; %s", "bind -x x; %s", "abbr x; %s", "rehash; %s", "command_not_found_handle() { id; }; %s",
	},
	"other meanings for the shell": {
		"set -x; %s", "set -o x; %s", "setopt x; %s", "unsetopt x; %s", "shopt -s extglob; %s", "shopt -s expand_aliases; %s", "trap id EXIT; %s", "trap id DEBUG; %s", "trap 'id' ERR\n%s", "TRAPEXIT() { id; }; %s", "precmd() { id; }; %s", "source x; %s", ". x; %s", ". ./x && %s", "source <(id); %s", "cd /; %s", "cd .. && %s", "pushd /; %s", "popd; %s", "chdir /; %s", "ulimit -c 0; %s", "umask 0; %s", "history -a x; %s", "fc -s; %s", "exec -c; %s", "wait; %s", "kill -9 1; %s", "suspend; %s", "jobs -x id; %s", "disown; %s", "logout; %s",
	},
	"scripts that a parser may read otherwise": {
		"%s; }", "%s; done", "%s; fi", "%s; esac", "%s )", "%s (", "%s ()", "%s() { id; }", "%s ;;", "%s ;; id", "%s ; ; id", "; %s", "| %s", "|| %s", "&& %s", "& %s", "%s |", "%s &&", "%s ||", "%s | | id", "%s && && id", "%s || ; id", "%s #;id\nid", "%s # \\\nid", "%s \\\\\n;id", "%s\\\n;id", "%s\\\nid;id", "%s \\\n\nid", "%s\\\r\nid", "%s & \\\nid", "%s; : 'x\n'; id", "%s; 'x\n;id'", "%s ;]]", "%s )) id",
		"", " ", "\n", ";", "#", "%s\n#\nid", "%s \\\n; id", "%s '\n' ; id", "%s '''';id", "%s \"'\";id;\"'\"", "%s '\"';id;'\"'", "%s \\';id;\\'", "%s \\\";id;\\\"", "%s '\\';id;'\\'",
	},
	"programs that write or run behind a pipe": {
		"%s | sh", "%s | bash -s", "%s | tee x", "%s | xargs rm", "%s | xargs -I% sh -c %", "%s | python3 -", "%s | dd of=x", "%s | ssh h", "%s | nc h 1", "%s | sudo tee x", "%s | crontab -", "%s | at now", "%s | perl", "%s | awk '{system($0)}'", "%s | sed 1e", "%s | while read x; do $x; done", "%s | source /dev/stdin", "%s | { id; }", "%s | (id)", "%s |\nid", "%s |\\\nid", "%s | ! id", "%s | time id", "%s | A=1 id",
	},
}

// usualForms are allowed by some rules: the agents write and run them. The program that a
// rule allows stays the only one.
var usualForms = []struct{ script, why string }{
	{"%s <<'E'\nx\nE", "a quoted heredoc is data"},
	{"%s <<<'x'", "so is a quoted string"},
	{"%s <<<x", "and a literal one"},
	{"<<<x %s", "the same before the command"},
	{"! %s", "the result is negated"},
	{"time %s", "it is measured"},
	{"timeout 5 %s", "it is ended after five seconds"},
	{"xargs %s", "grep and wc get more files"},
	{"%s !*", "a pattern of files"},
	{"%s !?id", "the same"},
	{"%s *", "the same, for programs that only read"},
	{"%s **", "the same"},
	{"%s **/x", "the same"},
	{"%s */x", "the same"},
	{"%s ?", "the same"},
	{"%s [!a]", "the same"},
	{"%s [[:alpha:]]", "the same"},
	{"%s [a", "the same"},
	{"%s [a]", "the same"},
	{"%s x*", "the name of no option"},
	{"%s x[", "the same"},
	{"%s 2>&1", "nothing is written to a file"},
	{"%s 2>/dev/null", "the same"},
	{"%s >&2", "the same"},
	{"%s >/dev/null", "the same"},
	{"#\n%s", "a comment"},
	{"%s # x", "a comment"},
	{"%s #`id`", "a comment"},
	{"%s;#", "a comment"},
	{"LC_ALL=x %s", "the language of messages"},
	{"%s $?", "a number, for programs that print"},
}

// harmlessInjections look like injections, but in a script they only give the
// command more words. A rule may allow them.
var harmlessInjections = []struct{ script, why string }{
	{"%s !!", "history is expanded in interactive shells only"},
	{"%s !-1", "the same"},
	{"%s !id", "the same"},
	{"%s ^a^b", "history in an interactive shell; a pattern in zsh with EXTENDED_GLOB only"},
	{"%s '$(id)'", "nothing is expanded in single quotes"},
	{"%s '`id`'", "the same"},
	{"%s ';id'", "a quoted separator is part of a word"},
	{"%s \";id\"", "the same"},
	{"%s \\;id", "the same with a backslash"},
	{"%s '|' id", "the same: three words"},
	{"%s \\& id", "the same"},
	{"%s \\> x", "a quoted redirection is a word"},
	{"%s '>x'", "the same"},
	{"%s '*'", "a quoted pattern is a word"},
	{"%s \\n id", "outside of quotes a backslash only quotes: the words n and id"},
	{"%s '\nid'", "a newline in quotes is part of a word"},
	{"%s \\\n id", "a backslash takes the newline away: the word id"},
	{"%s \\\nid", "the same"},
	{"%s x\\\nid", "the same: the word xid"},
	{"%s\t id", "a tab separates words: the word id"},
	{"  %s", "leading space has no meaning"},
	{"\n%s\n", "empty lines have no meaning"},
	{"%s;", "a separator at the end starts no command"},
	{"%s %0aid", "no shell decodes URLs"},
	{"%s \uff1bid", "a full-width semicolon is no separator"},
	{"%s \uff5c id", "a full-width bar is no pipe"},
	{"%s \uff40id\uff40", "a full-width backquote is a letter like any other"},
	{"%s \u037e id", "the Greek question mark looks like a semicolon and is a word"},
	{"%s x!y", "history is expanded in interactive shells only"},
	{"%s ''';id'", "an empty and a quoted piece of one word"},
	{"%s ''", "an empty word"},
	{"%s }", "a closing brace after the first word is a word"},
	{"%s done", "a reserved word after the first word is a word"},
	{"%s ]]", "the same"},
	{"%s x@y", "an at sign without parentheses is a letter"},
	{"%s x~", "a tilde inside of a word is a letter"},
	{"%s x#y", "a hash inside of a word is a letter"},
}

// An allow rule does not allow what is added before, around or after a command
// that it allows.
func TestInjections(t *testing.T) {
	t.Parallel()
	tried, used := 0, map[string]bool{}
	for _, c := range injectable {
		p := compile(t, policy.Rules{Allow: []string{c.rule}, Cwd: "/repo", Home: "/home/u"})
		decide := func(script string) policy.Explanation {
			call := bash(strings.ReplaceAll(script, "%s", c.command))
			call.Cwd = "/repo"
			return p.Explain(call)
		}
		require.Equal(t, allow, decide("%s").Behavior, "%s allows %q", c.rule, c.command)
		for kind, scripts := range injections {
			for _, script := range scripts {
				tried++
				got := decide(script)
				assert.NotEqual(t, allow, got.Behavior, "%s, %s: %q\n%s", c.rule, kind, script, got)
			}
		}
		for _, harmless := range harmlessInjections {
			tried++
			used[harmless.script] = used[harmless.script] || decide(harmless.script).Behavior == allow
		}
	}
	require.Greater(t, tried, 2000)
	for _, form := range usualForms {
		allowed := slices.ContainsFunc(injectable, func(c struct{ rule, command string }) bool {
			call := bash(strings.ReplaceAll(form.script, "%s", c.command))
			call.Cwd = "/repo"
			return compile(t, policy.Rules{Allow: []string{c.rule}, Cwd: "/repo", Home: "/home/u"}).Decide(call) == allow
		})
		assert.True(t, allowed, "%q is allowed by no rule: %s", form.script, form.why)
	}
	for _, harmless := range harmlessInjections {
		assert.True(t, used[harmless.script], "%q is allowed by no rule: %s", harmless.script, harmless.why)
		for _, scripts := range injections {
			assert.False(t, slices.Contains(scripts, harmless.script), "%q is in both tables", harmless.script)
		}
	}
}

// A real shell runs nothing for the harmless scripts but the command itself.
func TestHarmlessInjectionsInARealShell(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("it runs a POSIX shell")
	}
	for _, name := range []string{"bash", "dash", "zsh", "ksh"} {
		shell, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		dir := t.TempDir()
		canary := filepath.Join(dir, "id")
		require.NoError(t, os.WriteFile(canary, []byte("#!/bin/sh\n: >ran\n"), 0o700))
		for _, harmless := range harmlessInjections {
			cmd := exec.Command(shell, "-c", strings.ReplaceAll(harmless.script, "%s", "echo hi"))
			cmd.Env, cmd.Dir = []string{"PATH=" + dir}, dir
			out, err := cmd.CombinedOutput()
			if err == nil || name != "zsh" || !strings.Contains(string(out), "parse error") { // zsh reads every } as the end of a block
				require.NoError(t, err, "%s: %q\n%s", name, harmless.script, out)
				assert.Regexp(t, "^hi", string(out), "%s: %q", name, harmless.script)
			}
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Len(t, entries, 1, "%s: %q", name, harmless.script)
		}
	}
}

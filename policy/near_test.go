package policy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/agent-troupe/troupe/policy"
)

// near are commands close to those that usual rules allow. Each does something else with
// a file, or runs something else, than its rule says.
var near = map[string][]string{
	"redirections": {
		"go test 2>&1 >f", "go test >f 2>&1", "go test 2>/dev/nullx", "go test >/dev/null/../f", "go test >/dev/sda", "go test >/dev/tcp/h/1", "go test &>f", "go test >&f", "go test 2>&-", "go test <&-", "go test <&3", "go test >&$X",
		"go test > \"/dev/nul\"l", "go test <>f", "go test {fd}>/dev/null", "go test 2>f", "go test >>f", "go test >|f", "go test </etc/passwd", "go test <../f", "go test <.env", "go test >$(x)", "go test 2> >(sh)", "go test < <(sh)", ">f", "go test; >f", "cd src && cat a < ../../f",
	},
	"rules that name no paths, and files that are written": {"echo x > f", "cat > f <<'E'\nx\nE", "sed -i s/a/b/ f", "sed -i.bak s/a/b/ f", "sed -ni p f", "sed --in-place s/a/b/ f", "sed -Ei s/a/b/ f", "cat a | sed -i s/a/b/ f"},
	"filters": {
		"go test | sort -o f", "go test | sort --output=f", "go test | sort --compress-program=sh", "go test | uniq - f", "go test | tee f", "go test | tee", "go test | less", "go test | xxd -r - f", "go test | split", "go test | sh", "go test | env", "go test | rg --pre sh x",
		"go test | head /etc/passwd", "go test | grep -f /etc/passwd x", "go test | cat ../f", "go test | tail -f ~/.bashrc", "go test | wc --files0-from=/etc/passwd", "go test | sed 1e", "go test | sed 's/a/b/e'", "go test | sed -n '1w f'", "go test | sed 's/a/b/w f'", "go test | sed -f f", "go test | sed --file=f",
		"go test | sed 'r /etc/passwd'", "go test | sed '1{e\n}'", "go test | sed -e p -e 1e", "go test | sed 's/[/]/e;s/x/e'", "go test | sed 's/a/[/;e id;]/'", "go test | sed 'y/[/x/;e id;]/a/'", "go test | sed 's/[]/]x/e;p/;e id'", "go test | sed 's/[[:alpha:]/]/e/;e'", "go test | sed 's/[\\/]/x/'", "go test | sed 's/[a/b/e'", "go test | sed '$!{$!N;e x\n}'", "go test | sed 'y/a/b/e'", "go test | sed \"$X\"", "go test | xargs", "go test | xargs rm", "go test | xargs ls", "go test | xargs -I{} sh -c {}", "go test | xargs -I{} grep {} x", "go test | xargs -a f grep", "go test | xargs sed -i s/a/b/",
		"head a", "grep x a", "cat a | head", "head a; tail b", "md5sum a | sort", "go test; id",
	},
	"what needs no rule": {"cd src", "true", "echo x; sleep 1", "go test; cd ..; echo x", "go test; cd /tmp", "cd / && go test", "cd .. && go test", "cd - && go test", "cd $X && go test", "cd src && git status", "cd src && make", "cd src && touch x", "go test; printf -v PATH x", "go test; test -v 'a[$(id)]'", "go test; echo $X", "go test; echo $?", "go test; pwd > f", "popd; go test", "pushd src; go test"},
	"variables":          {"X=1 go test", "PATH=. go test", "GOFLAGS=-toolexec=x go test", "GOFLAGS= go test", "CI=$X go test", "CI=$(x) go test", "CI+=1 go test", "CI[0]=1 go test", "CI=1; go test", "export CI=1; go test", "LANG=C LD_PRELOAD=x go test", "NODE_OPTIONS=x go test", "GIT_PAGER=x git status", "env CI=1 go test", "CI=`x` go test", "CI=(1) go test"},
	"texts": {
		"git commit -m \"$(cat <<E\nx $(id)\nE\n)\"", "git commit -m \"$(cat <<E\nx\nE\n)\"", "git commit -m \"$(cat <<'E'\nx\nE\nid)\"", "git commit -m \"$(cat f <<'E'\nx\nE\n)\"", "git commit -m \"$(cat <<'E' >f\nx\nE\n)\"", "git commit -m \"$(cat <<'E' | sh\nx\nE\n)\"", "git commit -m \"$(sh <<'E'\nx\nE\n)\"", "git commit -m $(cat <<'E'\nx\nE\n)",
		"git commit -m \"$(cat <<-'E'\nx\nE\n)\"", "git commit -m \"$(cat <<\\E\nx\nE\n)\"", "git commit -m \"$(X=1 cat <<'E'\nx\nE\n)\"", "\"$(cat <<'E'\ngo\nE\n)\" test", "git commit -F - <<E\n$(id)\nE", "git commit -F - <<'E' && id\nx\nE", "git commit -F - <<'E'; git status\nx\nE", "git commit -F - <<'E'\nx\nE\nid", "git commit -F - <<-'E'\nx\nE",
		"git commit \"$(cat <<'E'\n--template=x\nE\n)\"",
	},
	"statements": {
		"(go test)", "{ go test; }", "for x in a; do go test; done", "until go test; do go test; done", "case x in x) go test;; esac", "f() { go test; }; f", "go test &", "coproc go test", "[[ -n x ]] && go test", "((1)) && go test", "if id; then go test; fi", "if go test; then id; fi", "while go test; do id; done", "if go test; then go test; elif id; then go test; fi", "if go test; then go test; else id; fi", "! id", "time id", "time", "go test | id", "go test |& id", "if go test; then (go test); fi",
		"while go test; do go test & done", "go test # x\\\nid", "# \\\nid", "go test #\\\n; id", "# x\\\nrm -rf x",
	},
	"patterns": {"* test", "go* test", "g? test", "go test *", "go test -*", "git -* status", "git status *", "make *", "touch *.go", "mv *.go src", "cp src/* x", "rm -f *.log", "ls ../*", "ls /etc/*", "ls */../../x", "ls ~/*", "ls {a,b}", "ls {/etc,a}", "ls $X*", "ls @(a)", "ls [$(x)]", "tar czf x *", "git add [a]$X"},
	"limits":   {"timeout 5 id", "timeout -s KILL 5 id", "timeout --bogus 5 go test", "timeout go test", "timeout 5 env go test", "timeout 5 timeout 5 id", "timeout 5 $X", "timeout $X go test", "timeout 5 sh -c 'go test'", "timeout 5 'go' test", "timeout -k 5 id go test", "/usr/bin/timeout 5 go test", "time -o f go test", "nice go test", "nohup go test", "sudo go test"},
	"git":      {"git -C /tmp status", "git -C src status", "git -C . -c a=b status", "git -c core.pager=x log", "git -C {dir} -c a=b status", "git -C {dir} -C /tmp status", "git -C {dir}/../x status", "git -C {dir} config a b", "git -C", "git -C {dir}", "git --git-dir=x status", "git log --output=f", "git commit --template=f", "git config user.name"},
	"npx":      {"npx -c x tsc", "npx --package=x tsc", "npx -p x tsc", "npx tsx x.ts", "npx sh -c x", "npx node -e 1", "npx -y env x", "npx"},
	"scripts":  {"awk 'BEGIN{system(\"id\")}'", "awk '{print > \"f\"}' a", "awk '{print | \"sh\"}' a", "awk '{print >> f}' a", "awk '{\"id\" | getline x}' a", "awk 'BEGIN{while((getline l < \"/etc/passwd\")>0) print l}'", "awk '@load \"x\"'", "awk -f f a", "awk -i inplace 1 a", "awk '{print \"a;\" > \"f\"}' a", "awk '{printf(\"x\") > \"f\"}' a", "awk 'BEGIN{ARGV[1]=\"/etc/passwd\"}{print}' a", "awk \"$X\" a", "python3 -c 1", "python3 -m x", "python3 -m pip install x", "python3 -m pytest -p x", "python3", "node -e 1", "node --check -e 1", "node -r x --version", "bash -n -c id", "bash -n x y", "bash -n", "find . -exec grep x {} ;", "find . -delete", "find . -fprint f", "find . -ok rm {} ;"},
}

// Under narrow rules, none of the near misses is allowed.
func TestNearMisses(t *testing.T) {
	t.Parallel()
	const dir = "/work/repo"
	p := compile(t, policy.Rules{
		Allow: []string{
			"Bash(go test *)", "Bash(git *)", "Bash(ls *)", "Bash(sed -n *)", "Bash(awk *)", "Bash(npx *)", "Bash(python3 *)", "Bash(node *)", "Bash(bash *)", "Bash(find *)", "Bash(touch *)", "Bash(mv *)", "Bash(cp *)", "Bash(rm *)", "Bash(tar *)", "Bash(make *)", "Read", "Edit",
		},
		Deny: []string{"Read(.env)"}, Cwd: dir, Root: dir, Home: "/home/u",
	})
	for kind, commands := range near {
		for _, command := range commands {
			if kind == "patterns" && command == "go test *" {
				continue
			}
			in := bash(strings.ReplaceAll(command, "{dir}", dir))
			in.Cwd = dir
			e := p.Explain(in)
			assert.NotEqual(t, allow, e.Behavior, "%s: %s: %s", kind, command, e)
		}
	}
}

// Where everything is allowed but a command, the command is found in what is not words.
func TestDeniedInUsualForms(t *testing.T) {
	t.Parallel()
	p := compile(t, policy.Rules{Allow: []string{"Bash"}, Deny: []string{"Bash(rm *)", "Bash(git push *)"}})
	for _, command := range []string{
		"rm x 2>&1", "rm x >/dev/null", "rm x # y", "time rm x", "! rm x", "if rm x; then :; fi", "while rm x; do :; done", "rm *.go", "CI=1 rm x", "timeout 5 rm x", "timeout $X rm x", "echo x | rm y", "echo \"$(rm x)\"", "cat <<E\n$(rm x)\nE", "for f in *; do rm \"$f\"; done", "# \\\nrm x", "echo # \\\nrm x",
		"$X rm", "$(echo rm) x", "{rm,x}", "r?m", "env $X x", "timeout 5 $X", "xargs $X", "git $X", "git pu*", "git -c alias.p=$X p", "git -C $X push", "git -C . push", "GIT_EDITOR='r\"\"m x' git commit", "GIT_SSH_COMMAND=$X git fetch", "PATH=$X ls", "BASH_ENV=$X ls", "PROMPT_COMMAND='r\\m x'",
		"find . -exec rm {} +", "find . -exec sh -c 'r\"\"m x' ;", "find . -exec env rm {} ;", "find . -name x -okdir r\"m\" {} ;", "xargs rm", "xargs sh -c x", "xargs env x", "ls | xargs -I{} sh -c {}", "sed '1e r''m x' f", "sed 's/a/r\"\"m/e' f", "awk 'BEGIN{system(\"r\" \"m x\")}'", "awk '{print | \"sh\"}'",
		"nosuchtool $X", "nosuchtool \"$(x)\"", "go test $X", "find . $X", "tar $X", "node -p 1 --version", "bash -n -c 'r\"\"m x'", "python3 -m x", "python3 -m timeit x", "npx node -e 1", "npx $X", "f() { rm x; }; f", "alias ls='r\"\"m'; ls x", "trap 'r\"\"m x' EXIT", "eval 'r\"\"m x'", "$'rm' x", "$'\\x72m' x",
	} {
		e := p.Explain(bash(command))
		assert.NotEqual(t, allow, e.Behavior, "%s: %s", command, e)
	}
}

// Rules about files apply to redirections and to sed -i.
func TestRulesAboutRedirections(t *testing.T) {
	t.Parallel()
	const dir = "/work/repo"
	p := compile(t, policy.Rules{Allow: []string{"Bash(go test *)", "Bash(sed *)", "Bash(cat *)", "Read(./src/**)", "Edit(./out/**)"}, Cwd: dir, Root: dir, Home: "/home/u"})
	for command, want := range map[string]string{
		"go test < src/a": "allow", "go test < a": "ask", "go test < src/../a": "ask", "go test < /work/repo/src/a": "allow", "go test | head src/a": "allow", "go test | head a": "ask",
		"go test > out/a": "allow", "go test >> out/a 2>&1": "allow", "go test > a": "ask", "go test > out/../a": "ask", "go test > out/.git/config": "ask", "go test > out/.bashrc": "ask", "cd src && go test > out/a": "ask", "go test > \"out/a\"": "ask", "go test > out/$X": "ask", "go test > out/*": "ask", "go test > src/a": "ask",
		"sed -i s/a/b/ out/a": "allow", "sed -i s/a/b/ a": "ask", "sed -i s/a/b/ out/a a": "ask", "sed -i s/a/b/ out/*": "ask", "sed -i.bak s/a/b/ out/a": "allow", "sed -i/tmp/x s/a/b/ out/a": "ask", "sed -i s/a/b/e out/a": "ask", "sed -i s/a/b/ out/.git/a": "ask",
		"cat > out/a <<'E'\nx\nE": "allow", "cat > out/a <<E\nx\nE": "ask", "go test && cat > out/a <<'E'\nx\nE": "ask",
	} {
		in := bash(command)
		in.Cwd = dir
		e := p.Explain(in)
		assert.Equal(t, want, string(e.Behavior), "%s: %s", command, e)
	}
}

// Scripts of sed that print lines by their numbers, or substitute once, are filters.
func TestFiltersBySed(t *testing.T) {
	t.Parallel()
	p := compile(t, policy.Rules{Allow: []string{"Bash(go test *)"}})
	for _, script := range []string{"-n 5p", "-n '1,20p'", "-n '1p; 3,5p'", "'s/a/b/g'", "-E 's/([a-z]+)/<\\1>/'", "'s/[[:space:]]*x//'", "'s/^/> /'", "'s/.*: //'", "'s/[^ ]* //'", "'s/error/E/'"} {
		e := p.Explain(bash("go test | sed " + script))
		assert.Equal(t, allow, e.Behavior, "%s: %s", script, e)
	}
}

package policy_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/policy"
)

// A deny or ask rule that cannot match what its author means is an error that says how to
// write it, an allow rule a warning. Claude Code 2.1.329 reads each of them the same way,
// and denies nothing by it (observed).
func TestRulesThatNeverMatch(t *testing.T) {
	t.Parallel()
	compileIn := func(r policy.Rules) (*policy.Policy, error) {
		r.Cwd, r.Root, r.Home, r.Directories = "/work/repo", "/work/repo", "/home/u", []string{"/data/shared"}
		return policy.Compile(r)
	}
	for _, c := range []struct {
		rule   string
		offset int
		want   string
	}{
		{"Bash(git push:* --force)", 13, "has :* before its end, where it is read as a colon and more; write * in its place: git push * --force"},
		{"Bash(kubectl:* delete:*)", 12, "write * in its place: kubectl * delete *"},
		{"Bash(sudo :* )", 10, "write * in its place: sudo *"},
		{"Bash(git reset:* )", 14, "write * in its place: git reset *"},
		{"Bash(curl http://localhost:* -s)", 26, "has :* before its end"},
		{"Bash(make docker-:*)", 16, "ends within a word, and :* stands for whole words; write make docker-*"},
		{"Bash(python3 scripts/:*)", 20, "write python3 scripts/*"},
		{`Bash("git push")`, 5, "has quotes around more than one word"},
		{`Bash('rm -rf' *)`, 5, "has quotes around more than one word"},
		{`Bash(git "push:*")`, 10, "has its wildcard in quotes"},
		{"Read(/work/repo/secrets/**)", 5, "begins with one slash, which is /work/repo; write it as //work/repo/secrets/**"},
		{"Edit(/home/u/.ssh/**)", 5, "write it as //home/u/.ssh/**"},
		{"Read(/data/shared/x)", 5, "begins with one slash"},
		{"Read(/etc/passwd)", 5, "for the root of the file system, or ./etc/passwd for the project"},
		{"Read(/Users/me/**)", 5, "begins with one slash"},
		{"Read(**/*.{pem,key})", 10, "has braces, which are part of the names here; write a rule for each"},
		{"Read(src/{a,b}/**)", 9, "has braces"},
		{"Read({a,b/c})", 5, "has braces"},
		{"Read(.env.!(example))", 10, "has a pattern of a shell"},
		{"Read(src/@(a|b)/x)", 9, "has a pattern of a shell"},
		{`Read("x y/**")`, 5, "has quotes, which are part of the names here"},
		{"Read('.env')", 5, "has quotes"},
		{"Read( ** /*token*)", 5, "has a space at the edge of a name; leave it out"},
		{"Read(.env )", 5, "has a space at the edge"},
		{"Read($HOME/.ssh/**)", 5, "has a variable"},
		{"Read(a/[z-a])", 5, "cannot match any call"},
	} {
		for _, list := range []string{"deny", "ask"} {
			r := policy.Rules{Deny: []string{c.rule}}
			if list == "ask" {
				r = policy.Rules{Ask: []string{c.rule}}
			}
			_, err := compileIn(r)
			var wrong *policy.ParseError
			if !assert.ErrorAs(t, err, &wrong, "%s %s", list, c.rule) {
				continue
			}
			assert.Equal(t, c.offset, wrong.Offset, "%s: %v", c.rule, err)
			assert.Equal(t, list, wrong.List)
			assert.ErrorContains(t, err, c.want)
		}
		p, err := compileIn(policy.Rules{Allow: []string{c.rule}})
		if assert.NoError(t, err, c.rule) && assert.Len(t, p.Warnings(), 1, c.rule) {
			assert.ErrorContains(t, p.Warnings()[0], c.want)
			assert.Equal(t, c.rule, p.Warnings()[0].Rule)
		}
	}
}

// Rules that match something compile without a word, however odd they look.
func TestRulesThatMatch(t *testing.T) {
	t.Parallel()
	rules := []string{
		"Bash", "Bash(git push:*)", "Bash(git push *)", "Bash(git *--force*)", "Bash(*--force*)", "Bash(npm run test:unit)", "Bash(npm run test:*)", "Bash(docker run img:latest *)", "Bash(echo 'a b' *)", `Bash(say \*)`, "Bash(curl http://localhost:*)",
		"Bash(git log --format=%h:%s *)", "Bash(cargo test x::*)", "Bash(ls*)", "Bash(/usr/bin/env *)", "Bash([ *)", "Bash(make -j4)", "Bash(sudo *)", "Bash(sh -c *)", "Bash(git commit -m 'it''s' *)", "Bash(* --version)", "Bash(rm -rf /)", "Bash(grep 'x:*' *)",
		"Read", "Read(.env)", "Read(./secrets/**)", "Read(//etc/passwd)", "Read(~/.ssh/**)", "Read(/docs/*.md)", "Read(/src/**)", "Read(**/a/**/b)", "Read([!a]?c)", "Read([a-z]*)", `Read(a\*\(1\))`, "Read(docs/a b.md)", "Read(dir/)", "Read(/tmp/**)", "Read(it's)", "Read({x})", "Read(a{)",
		"Read(**)", "Grep(src/**)", "Glob(src/**)", "NotebookEdit(*.ipynb)", "Edit(/docs/**)", "MultiEdit(x)", "WebFetch(domain:go.dev)", "WebFetch(domain:*.go.dev)", "Skill(git:*)", "Skill(x)", "Agent(Explore)", "mcp__a", "mcp__a__*", "mcp__a__get_*",
	}
	for _, rule := range rules {
		for _, r := range []policy.Rules{{Deny: []string{rule, "Edit(x)"}}, {Ask: []string{rule}}, {Allow: []string{rule}}} {
			r.Cwd, r.Root, r.Home = "/work/repo", "/work/repo", "/home/u"
			p, err := policy.Compile(r)
			if rule == "Bash(* --version)" || rule == "Bash(*--force*)" {
				if r.Allow != nil {
					continue // they allow programs that they do not name
				}
			}
			if assert.NoError(t, err, rule) {
				assert.Empty(t, p.Warnings(), rule)
			}
		}
	}
}

// A deny rule about one tool that writes leaves the others open.
func TestWriteLeavesEditOpen(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"Write", "MultiEdit", "NotebookEdit"} {
		p := compile(t, policy.Rules{Deny: []string{"Bash(rm *)", tool + "(docs/**)"}})
		require.Len(t, p.Warnings(), 1)
		assert.EqualError(t, p.Warnings()[0], `policy: deny[1] "`+tool+`(docs/**)": is about the tool `+tool+` alone: Edit and the other tools that write files stay open; write Edit(docs/**), which is about all of them and about commands`)
		assert.Empty(t, compile(t, policy.Rules{Deny: []string{tool + "(docs/**)", "Edit(docs/**)"}}).Warnings())
		assert.Empty(t, compile(t, policy.Rules{Deny: []string{tool, "Bash"}, Allow: []string{tool + "(docs/**)"}}).Warnings())
	}
}

// The shell runs some words itself. The error names the word.
func TestRulesAboutWordsOfTheShell(t *testing.T) {
	t.Parallel()
	for rule, word := range map[string]string{"Bash(export:*)": "export", "Bash(export FOO=bar)": "export", "Bash(declare -x *)": "declare", "Bash(local:*)": "local", "Bash(readonly:*)": "readonly", "Bash(let:*)": "let", "Bash(time:*)": "time", "Bash(coproc x)": "coproc"} {
		_, err := policy.Compile(policy.Rules{Allow: []string{rule}})
		var wrong *policy.ParseError
		if assert.ErrorAs(t, err, &wrong, rule) {
			assert.Contains(t, wrong.Problem, word, rule)
		}
	}
}

package policy_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

const (
	allow = protocol.BehaviorAllow
	ask   = protocol.BehaviorAsk
	deny  = protocol.BehaviorDeny
)

func compile(tb testing.TB, r policy.Rules) *policy.Policy {
	tb.Helper()
	if r.Cwd == "" {
		r.Cwd = "/repo/sub"
	}
	if r.Root == "" {
		r.Root = "/repo"
	}
	if r.Home == "" {
		r.Home = "/home/u"
	}
	p, err := policy.Compile(r)
	require.NoError(tb, err)
	return p
}

func call(tool, input string) policy.Call {
	return policy.Call{Tool: tool, Input: json.RawMessage(input), Cwd: "/repo/sub"}
}

// decision is what one rule, in each of the lists, makes of a call. An allow
// rule that does not fit, and a deny rule that does not, leave the call to the
// rules that allow everything.
type decision struct {
	tool, input string
	allowed     protocol.PermissionBehavior // by the rule in Allow
	denied      protocol.PermissionBehavior // by the rule in Deny, with the bare tool in Allow
}

func checkRule(t *testing.T, rule string, cases []decision) {
	t.Helper()
	for _, c := range cases {
		p := compile(t, policy.Rules{Allow: []string{rule}})
		got := p.Explain(call(c.tool, c.input))
		assert.Equal(t, c.allowed, got.Behavior, "allow %s: %s %s\n%s", rule, c.tool, c.input, got)
		p = compile(t, policy.Rules{Allow: []string{c.tool}, Deny: []string{rule}})
		got = p.Explain(call(c.tool, c.input))
		assert.Equal(t, c.denied, got.Behavior, "deny %s: %s %s\n%s", rule, c.tool, c.input, got)
	}
}

func TestPaths(t *testing.T) {
	t.Parallel()
	file := func(path string) string {
		b, _ := json.Marshal(map[string]string{"file_path": path})
		return string(b)
	}
	for rule, cases := range map[string][]decision{
		"Read(src/**)": {
			{"Read", file("src/a"), allow, deny},
			{"Read", file("./src/x/../a"), allow, deny},
			{"Read", file("/repo/sub/src/a/b"), allow, deny},
			{"Read", file("src"), ask, allow},
			{"Read", file("src/../other"), ask, allow},
			{"Read", file("src/../../x"), ask, allow},
			{"Read", file("../src/a"), ask, allow},
			{"Read", file("srcs/a"), ask, allow},
			{"Read", file("SRC/a"), ask, deny},
			{"Read", file("/proc/self/cwd/src/a"), ask, ask},
			{"Read", file(`src\a`), ask, ask},
			{"Read", file("src/a\x00"), ask, deny},
			{"Read", file(""), ask, ask},
			{"Read", `{}`, ask, ask},
			{"Read", `{"file_path":7}`, ask, ask},
			{"Read", `{"file_path":null}`, ask, ask},
			{"Read", `{"File_Path":"src/a"}`, ask, ask},
			{"Read", `{"file_path":"/etc/x","FILE_PATH":"src/a"}`, ask, allow},
			{"Read", `{"file_path":"src/a","path":"/etc/x"}`, ask, deny},
			{"Read", `{"file_path":"src/a","file_path":"/etc/x"}`, ask, allow},
			{"Read", `[]`, ask, ask},
			{"Read", ``, ask, ask},
			{"Grep", `{"pattern":"x","path":"src"}`, allow, deny},
			{"Grep", `{"pattern":"x","path":"src/a"}`, allow, deny},
			{"Grep", `{"pattern":"x"}`, ask, ask},
			{"Grep", `{"pattern":"x","path":"/"}`, ask, ask},
			{"Grep", `{"pattern":"x","path":"/repo/other"}`, ask, allow},
			{"Glob", `{"pattern":"**/*.go","path":"src"}`, allow, deny},
			{"Glob", `{"pattern":"/etc/*","path":"src"}`, ask, deny},
			{"Glob", `{"pattern":"../*","path":"src"}`, ask, deny},
			{"Glob", `{"pattern":"../src/*","path":"other"}`, ask, ask},
			{"NotebookRead", `{"notebook_path":"src/a"}`, allow, deny},
			{"Write", file("src/a"), ask, deny},
		},
		"Read(.env)": {
			{"Read", file(".env"), allow, deny},
			{"Read", file("a/b/.env"), allow, deny},
			{"Read", file("/repo/.env"), ask, allow},
			{"Read", file(".env/x"), allow, deny},
			{"Read", file(".ENV"), ask, deny},
			{"Grep", `{"pattern":"x"}`, ask, ask},
			{"Grep", `{"pattern":"x","path":"/tmp"}`, ask, allow},
		},
		"Read(*.pem)":       {{"Read", file("a/x.pem"), allow, deny}, {"Read", file("x.pem.txt"), ask, allow}},
		"Read(./a)":         {{"Read", file("a"), allow, deny}, {"Read", file("b/a"), ask, allow}},
		"Read(a/)":          {{"Read", file("a"), ask, allow}, {"Read", file("x/a/b"), allow, deny}},
		"Read(/a/*)":        {{"Read", file("/repo/a/b"), allow, deny}, {"Read", file("a/b"), ask, allow}},
		"Read(//etc/**)":    {{"Read", file("/etc/passwd"), allow, deny}, {"Read", file("/etcx"), ask, allow}, {"Grep", `{"path":"/etc"}`, allow, deny}},
		"Read(//**/.env)":   {{"Read", file("/x/.env"), allow, deny}, {"Read", file(".env"), allow, deny}},
		"Read(//)":          nil,
		"Read(~/.ssh/**)":   {{"Read", file("~/.ssh/id"), allow, deny}, {"Read", file("/home/u/.ssh/id"), allow, deny}, {"Read", file("/home/v/.ssh/id"), ask, allow}, {"Read", file("/home/u/x/../.ssh/id"), allow, deny}},
		"Read(**/a/**/b)":   {{"Read", file("a/b"), allow, deny}, {"Read", file("x/a/y/z/b"), allow, deny}, {"Read", file("x/b"), ask, allow}},
		"Read([!a]?c)":      {{"Read", file("bbc"), allow, deny}, {"Read", file("abc"), ask, allow}},
		`Read(a\*\(1\))`:    {{"Read", file("a*(1)"), allow, deny}, {"Read", file("ax(1)"), ask, allow}},
		"Read(docs/a b.md)": {{"Read", file("docs/a b.md"), allow, deny}},
		"Edit(docs/**)":     {{"Edit", file("docs/a"), allow, deny}, {"Write", file("docs/a"), allow, deny}, {"NotebookEdit", `{"notebook_path":"docs/a"}`, allow, deny}, {"Read", file("docs/a"), ask, allow}},
		"Write(docs/**)":    {{"Write", file("docs/a"), allow, deny}, {"Edit", file("docs/a"), ask, allow}},
		"Read":              {{"Read", file("/any"), allow, deny}, {"Grep", `{}`, ask, allow}, {"Read", `[]`, ask, deny}},
		"Skill(commit)":     {{"Skill", `{"skill":"commit"}`, allow, deny}, {"Skill", `{"skill":"/commit","args":"x"}`, allow, deny}, {"Skill", `{"skill":"commits"}`, ask, allow}, {"Skill", `{"skill":"git:commit"}`, ask, ask}, {"Skill", `{}`, ask, ask}, {"Skill", `{"skill":"cоmmit"}`, ask, ask}, {"Skill", `{"skill":"commit","command":"other"}`, ask, deny}},
		"Skill(git:*)":      {{"Skill", `{"skill":"git"}`, allow, deny}, {"Skill", `{"skill":"git:commit"}`, allow, deny}},
		"Agent(Explore)":    {{"Agent", `{"subagent_type":"Explore"}`, allow, deny}, {"Task", `{"subagent_type":"Explore"}`, allow, deny}, {"Task", `{"agent":"Explore"}`, allow, deny}, {"Agent", `{"subagent_type":"Plan"}`, ask, allow}, {"Agent", `{}`, ask, ask}, {"Agent", `{"subagent_type":["Explore"]}`, ask, ask}},
		"Task":              {{"Agent", `{}`, allow, deny}},
		"WebSearch":         {{"WebSearch", `{"query":"x"}`, allow, deny}, {"websearch", `{}`, ask, deny}},
		"mcp__a":            {{"mcp__a__b", `{}`, allow, deny}, {"mcp__a__b__c", `{}`, ask, deny}, {"mcp__ab__c", `{}`, ask, allow}, {"mcp__a", `{}`, allow, deny}},
		"mcp__a__*":         {{"mcp__a__b", `{}`, allow, deny}, {"mcp__a__b__c", `{}`, ask, deny}},
		"mcp__a__get_*":     {{"mcp__a__get_x", `{}`, allow, deny}, {"mcp__a__set_x", `{}`, ask, allow}},
		"mcp__a__b":         {{"mcp__a__b", `{}`, allow, deny}, {"mcp__a__b__c", `{}`, ask, deny}, {"mcp__a__bc", `{}`, ask, allow}},
		"WebFetch(domain:a.de)": {
			{"WebFetch", `{"url":"https://a.de/x"}`, allow, deny},
			{"WebFetch", `{"url":"HTTPS://A.DE:443"}`, allow, deny},
			{"WebFetch", `{"url":"https://b.a.de"}`, ask, allow},
			{"WebFetch", `{"url":"https://a.de.evil"}`, ask, allow},
			{"WebFetch", `{"url":"https://a.de./"}`, ask, deny},
			{"WebFetch", `{"url":"https://a.de@evil/"}`, ask, ask},
			{"WebFetch", `{"url":"https://evil\\@a.de/"}`, ask, ask},
			{"WebFetch", `{"url":"https://ａ.de/"}`, ask, ask},
			{"WebFetch", `{"url":"https://a%2ede/"}`, ask, deny},
			{"WebFetch", `{"url":"https:a.de"}`, ask, ask},
			{"WebFetch", `{"url":"file://a.de/x"}`, ask, ask},
			{"WebFetch", `{"url":"//a.de/x"}`, ask, ask},
			{"WebFetch", `{"url":"https:// a.de"}`, ask, ask},
			{"WebFetch", `{"url":"https://0x7f.1/"}`, ask, ask},
			{"WebFetch", `{"url":"https://2130706433/"}`, ask, ask},
			{"WebFetch", `{"url":"https://127.0.0.01/"}`, ask, ask},
			{"WebFetch", `{"url":"https://127.0.0.1/"}`, ask, allow},
			{"WebFetch", `{}`, ask, ask},
		},
		"WebFetch(domain:*.a.de)":    {{"WebFetch", `{"url":"https://b.a.de"}`, allow, deny}, {"WebFetch", `{"url":"https://a.de"}`, ask, allow}},
		"WebFetch(domain:127.0.0.1)": {{"WebFetch", `{"url":"http://127.0.0.1:80/"}`, allow, deny}},
		"Bash(git *)":                {{"Bash", `{"command":"git log","dangerouslyDisableSandbox":true}`, ask, deny}, {"Bash", `{"command":"git log","dangerouslyDisableSandbox":false}`, allow, deny}, {"Bash", `{"Command":"git x"}`, ask, ask}, {"Bash", `{"command":["git"]}`, ask, ask}},
		"AskUserQuestion":            {{"AskUserQuestion", `{}`, allow, deny}},
	} {
		if cases == nil {
			continue
		}
		checkRule(t, rule, cases)
	}
}

func TestResolvedPaths(t *testing.T) {
	t.Parallel()
	links := map[string]string{"/repo/sub/src/link": "/etc/passwd", "/repo/sub/src/a": "/repo/sub/src/a", "/repo/sub/x": "/repo/sub/src/b"}
	p := compile(t, policy.Rules{
		Allow: []string{"Read(src/**)"}, Deny: []string{"Read(//etc/**)"},
		Resolve: func(path string) (string, error) {
			to, ok := links[path]
			if !ok {
				return "", errors.New("no such file")
			}
			return to, nil
		},
	})
	for path, want := range map[string]protocol.PermissionBehavior{
		"src/a": allow, "src/link": deny, "src/new": ask, "x": ask, "/etc/x": deny,
	} {
		assert.Equal(t, want, p.Decide(call("Read", `{"file_path":"`+path+`"}`)), path)
	}
}

func TestMCPServers(t *testing.T) {
	t.Parallel()
	p := compile(t, policy.Rules{Allow: []string{"mcp__a", "mcp__my_server__*"}})
	for _, c := range []struct {
		tool, server string
		want         protocol.PermissionBehavior
	}{
		{"mcp__a__b__c", "a", allow},
		{"mcp__a__b__c", "a__b", ask},
		{"mcp__a__b", "a", allow},
		{"mcp__a__b", "b", ask},
		{"mcp__my_server__x", "my server", allow},
		{"mcp__my_server__x", "my_server__x", ask},
	} {
		assert.Equal(t, c.want, p.Decide(policy.Call{Tool: c.tool, MCPServer: c.server}), "%s of %s", c.tool, c.server)
	}
}

// A rule may have a name as its server does; the agents write it otherwise.
func TestMCPServersByTheirOwnNames(t *testing.T) {
	t.Parallel()
	p := compile(t, policy.Rules{Deny: []string{"mcp__my.srv__drop", "mcp__other.srv", "mcp__third.srv__get.*"}, Allow: []string{"mcp__fourth.srv"}})
	for tool, want := range map[string]protocol.PermissionBehavior{
		"mcp__my_srv__drop": deny, "mcp__my.srv__drop": deny, "mcp__my_srv__keep": ask,
		"mcp__other_srv__x": deny, "mcp__third_srv__get_all": deny, "mcp__third_srv__set": ask,
		"mcp__fourth_srv__x": ask, // there may be a server of that name
	} {
		assert.Equal(t, want, p.Decide(policy.Call{Tool: tool}), tool)
	}
}

// qodercli writes names otherwise than Claude Code does.
func TestMCPServersAsQoderNamesThem(t *testing.T) {
	t.Parallel()
	p := compile(t, policy.Rules{
		Deny:  []string{"mcp__s__a__b", "mcp__x__y__drop", "mcp__my..srv__get.*"},
		Allow: []string{"mcp__s__keep_it", "mcp__s__keep__them"},
	})
	for tool, want := range map[string]protocol.PermissionBehavior{
		"mcp__s__a_b": deny, "mcp__s__a_c": ask,
		"mcp__x_y__drop": deny, "mcp__x__y_drop": deny, "mcp__my_srv__get_all": deny, "mcp__my_srv__set": ask,
		"mcp__s__keep_it": allow, "mcp__s__keep_them": ask,
	} {
		assert.Equal(t, want, p.Decide(policy.Call{Tool: tool}), tool)
	}
}

func TestDenyBeforeAskBeforeAllow(t *testing.T) {
	t.Parallel()
	p := compile(t, policy.Rules{
		Allow: []string{"Read(**)", "Bash", "Write"},
		Ask:   []string{"Read(b*)", "Write", "*"},
		Deny:  []string{"Read(a*)", "mcp__x"},
	})
	assert.Equal(t, deny, p.Decide(call("Read", `{"file_path":"a"}`)))
	assert.Equal(t, ask, p.Decide(call("Read", `{"file_path":"b"}`)))
	assert.Equal(t, ask, p.Decide(call("Read", `{"file_path":"c"}`)), "* is every tool")
	assert.Equal(t, deny, p.Decide(call("mcp__x__y", `{}`)))
	var zero policy.Rules
	assert.Equal(t, ask, compile(t, zero).Decide(call("Read", `{}`)))
	assert.Equal(t, deny, compile(t, policy.Rules{Deny: []string{"*"}, Allow: []string{"Read"}}).Decide(call("Read", `{}`)))
}

func TestExplain(t *testing.T) {
	t.Parallel()
	p := compile(t, policy.Rules{
		Allow: []string{"Bash(git:*)", "Bash(go test *)", "Read"},
		Ask:   []string{"Bash(git push:*)"},
		Deny:  []string{"Bash(rm *)"},
	})
	for _, c := range []struct {
		call policy.Call
		rule string
		want string
	}{
		{call("Read", `{"file_path":"a"}`), "Read", `allow: the allow rule Read is about every such call`},
		{bash("git log"), "Bash(git:*)", `allow: the allow rule Bash(git:*) is about "git log"`},
		{bash("git log; go test ./x"), "Bash(git:*)", `allow: Bash(git:*) is about "git log", Bash(go test *) is about "go test ./x"`},
		{bash("git log; rm -rf 'a b'"), "Bash(rm *)", `deny: the deny rule Bash(rm *) is about "rm -rf 'a b'"`},
		{bash("git push"), "Bash(git push:*)", `ask: the ask rule Bash(git push:*) is about "git push"`},
		{bash("sed 1e"), "Bash(git push:*)", `ask: the ask rule Bash(git push:*) cannot be ruled out ("sed 1e")`},
		{bash("git log > x"), "", `ask: "x": no rule is about it`},
		{bash("ls"), "", `ask: "ls": no rule is about it`},
		{bash("git --exec-path=x log"), "Bash(git push:*)", `ask: the ask rule Bash(git push:*) cannot be ruled out ("git --exec-path=x log")`},
		{call("Write", `{"file_path":"a"}`), "", `ask: "/repo/sub/a": no rule is about it`},
		{call("WebSearch", `{}`), "", `ask: no rule is about it`},
		{call("Bash", `7`), "Bash(git push:*)", `ask: the ask rule Bash(git push:*) cannot be ruled out: the input is not a JSON object`},
	} {
		got := p.Explain(c.call)
		assert.Equal(t, c.want, got.String())
		assert.Equal(t, c.rule, got.Rule.Text)
	}
	assert.Equal(t, `ask: "git --exec-path=x log": --exec-path=x may make git do more than the rule says`,
		compile(t, policy.Rules{Allow: []string{"Bash(git:*)"}}).Explain(bash("git --exec-path=x log")).String())
	got := p.Explain(bash("git log; go test ./x"))
	require.Len(t, got.Parts, 2)
	assert.Equal(t, policy.Rule{Behavior: allow, Index: 1, Text: "Bash(go test *)"}, got.Parts[1].Rule)
	assert.Equal(t, "go test ./x", got.Parts[1].About)
}

func TestMistakesInRules(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule   string
		offset int
		want   string
	}{
		{"", 0, `allow[0] "": names no tool`},
		{"(x)", 0, "names no tool"},
		{"Bash x", 4, `"Bash x" at byte 4: has a character that no tool's name has`},
		{"Bash(x", 6, "does not end with its closing parenthesis"},
		{"Bash(x)y", 8, "does not end with its closing parenthesis"},
		{`Bash(x\)`, 7, "has its closing parenthesis escaped"},
		{"Bash()", 4, "has nothing between its parentheses; leave them out"},
		{"Bash(\xff)", 5, "is not UTF-8"},
		{"*", 0, "allows every tool"},
		{"Re*", 2, "has a wildcard in the tool's name"},
		{"mcp__*", 5, "has a wildcard in the tool's name"},
		{"mcp__a__*b", 8, "has a wildcard in the tool's name"},
		{"mcp__a__b(x)", 9, "MCP tools and wildcards do not take"},
		{"WebSearch(x)", 9, "no specifier is known for WebSearch"},
		{"Bash(git status; rm)", 5, "is not one command"},
		{"Bash(git status && rm)", 5, "is not one simple command"},
		{"Bash(git status > x)", 5, "is not one simple command"},
		{"Bash(A=1 git)", 5, "is not one simple command"},
		{"Bash(git $x)", 9, "has a word that the shell expands"},
		{"Bash(git 'x)", 5, "is not a shell command"},
		{"Bash(* --version)", 5, "allows programs that it does not name"},
		{"Bash(:*)", 5, "is not one command"},
		{"Read(!a)", 5, "negates a pattern"},
		{"Read(a//b)", 7, "has an empty segment"},
		{"Read(a/../b)", 7, "leads out of its directory"},
		{"Read([a)", 5, "is not a pattern"},
		{"WebFetch(a.de)", 9, "is not a domain"},
		{"WebFetch(domain:a.de/x)", 20, "is not a host name"},
		{"WebFetch(domain:)", 16, "is not a host name"},
		{"Skill(a b)", 7, "is not a name"},
		{"Skill(:*)", 6, "is not a name"},
	} {
		_, err := policy.Compile(policy.Rules{Allow: []string{c.rule}, Cwd: "/"})
		var wrong *policy.ParseError
		if !assert.ErrorAs(t, err, &wrong, "%q", c.rule) {
			continue
		}
		assert.ErrorContains(t, err, c.want)
		assert.Equal(t, c.offset, wrong.Offset, "%v", err)
		assert.Equal(t, c.rule, wrong.Rule)
	}
}

func TestAllMistakesAreTold(t *testing.T) {
	t.Parallel()
	_, err := policy.Compile(policy.Rules{
		Allow: []string{"Read", "Bash("}, Ask: []string{"("}, Deny: []string{"Read(/x)", "Read(~/x)", "Read(x)"}, Root: "here",
	})
	assert.EqualError(t, err, `policy: Root "here": is not an absolute path; begin it with a slash
policy: deny[1] "Read(~/x)" at byte 5: needs Rules.Home; set it, or begin the pattern with // for the root of the file system
policy: deny[2] "Read(x)" at byte 5: needs Rules.Cwd; set it, or begin the pattern with // for the root of the file system
policy: ask[0] "(": names no tool; write it as Tool or Tool(specifier)
policy: allow[1] "Bash(" at byte 5: does not end with its closing parenthesis; write it as Tool(specifier)`)
}

func TestRulesAsTheAgentsExchangeThem(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]protocol.PermissionRule{
		"Read":           {ToolName: "Read"},
		"Bash(git:*)":    {ToolName: "Bash", RuleContent: "git:*"},
		`Bash(a\(b\)\\)`: {ToolName: "Bash", RuleContent: `a(b)\`},
	} {
		got, err := policy.ParseRule(text)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	_, err := policy.ParseRule("Bash(")
	assert.EqualError(t, err, `policy: "Bash(" at byte 5: does not end with its closing parenthesis; write it as Tool(specifier)`)
}

package policy_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/agent-troupe/troupe/policy"
	"github.com/agent-troupe/troupe/protocol"
)

// plainCommands is a second reader of shell commands, which knows much less
// than the first: literal words, quotes, backslashes and the four chains. ok is
// false for all else.
func plainCommands(text string) (commands [][]string, ok bool) {
	var (
		words []string
		word  strings.Builder
		in    bool // a word has begun
	)
	endWord := func() {
		if in {
			words = append(words, word.String())
		}
		word.Reset()
		in = false
	}
	chained := false // a command has to follow
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == ' ' || c == '\t':
			endWord()
		case c == '\n' || c == ';' || c == '|' || c == '&':
			endWord()
			double := i+1 < len(text) && text[i+1] == c
			if double && c != '\n' || strings.HasPrefix(text[i:], "|&") { // a pipe of both outputs
				i++
			}
			if c == '&' && !double || c == ';' && double {
				return nil, false
			}
			if len(words) == 0 {
				if c == '\n' {
					continue
				}
				return nil, false
			}
			commands, words = append(commands, bare(words)), nil
			chained = c == '&' || c == '|'
		case c == '\'':
			end := strings.IndexByte(text[i+1:], '\'')
			if end < 0 {
				return nil, false
			}
			word.WriteString(text[i+1 : i+1+end])
			in, i = true, i+1+end
		case c == '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '$' || text[i] == '`' {
					return nil, false
				}
				if text[i] == '\\' && i+1 < len(text) && strings.ContainsRune("\\\"$`\n", rune(text[i+1])) {
					i++
					if text[i] == '\n' {
						continue
					}
				}
				word.WriteByte(text[i])
			}
			if i == len(text) {
				return nil, false
			}
			in = true
		case c == '\\':
			i++
			if i == len(text) {
				return nil, false
			}
			if text[i] != '\n' {
				word.WriteByte(text[i])
				in = true
			}
		case strings.ContainsRune("$`*?[{()<>", rune(c)), c < ' ', c == 0x7f, c == '#' && !in, c == '~' && !in, c == '=' && !in:
			return nil, false
		default:
			word.WriteByte(c)
			in = true
		}
	}
	endWord()
	if len(words) > 0 {
		commands, chained = append(commands, bare(words)), false
	}
	return commands, len(commands) > 0 && !chained
}

// needNoRule are commands that need no rule beside one that a rule allows.
var needNoRule = strings.Fields("echo printf true false test [ pwd sleep which : cd cat head tail wc nl od strings cmp comm diff cut paste tr fold column rev base64 grep egrep fgrep jq sort uniq rg sed xargs fi done")

// bare takes the words off that say how a command is run: ! time if timeout 5.
func bare(words []string) []string {
	for len(words) > 1 && slices.Contains([]string{"!", "time", "-p", "if", "then", "elif", "else", "while", "do"}, words[0]) {
		words = words[1:]
	}
	if len(words) > 2 && words[0] == "timeout" {
		return words[2:]
	}
	return words
}

// shellRules are what the fuzzer tries to slip through, with the words that
// every allowed command has to begin with.
func shellRules() (policy.Rules, [][]string) {
	return policy.Rules{Allow: []string{"Bash(git:*)", "Bash(go test *)", "Bash(ls*)", "Bash(npm run test)"}, Deny: []string{"Bash(git push:*)"}},
		[][]string{{"git"}, {"go", "test"}, {"ls"}, {"npm", "run", "test"}}
}

// checkCommand holds a decision about a command against the second reader.
func checkCommand(tb testing.TB, p *policy.Policy, prefixes [][]string, command string) {
	tb.Helper()
	got := p.Explain(bash(command))
	commands, ok := plainCommands(command)
	commands = slices.DeleteFunc(commands, func(words []string) bool { return slices.Contains(needNoRule, words[0]) })
	if got.Behavior == protocol.BehaviorAllow && !ok {
		// Commands with more than words are compared with a real shell, in
		// TestAllowedCommandsInARealShell.
		require.True(tb, strings.ContainsAny(command, "#<>*?[$"), "%q is not made of literal words\n%s", command, got)
		return
	}
	if got.Behavior == protocol.BehaviorAllow {
		parts := got.Parts
		if parts == nil {
			parts = []policy.Explanation{got}
		}
		require.Len(tb, parts, len(commands), "%q\n%s", command, got)
	}
	for _, words := range commands {
		if !ok {
			break
		}
		if len(words) > 1 && words[0] == "git" && words[1] == "push" {
			require.NotEqual(tb, protocol.BehaviorAllow, got.Behavior, "%q", command)
		}
		if got.Behavior != protocol.BehaviorAllow {
			continue
		}
		fits := false
		for _, prefix := range prefixes {
			if len(words) < len(prefix) {
				continue
			}
			match := prefix[0] == words[0] || prefix[0] == "ls" && strings.HasPrefix(words[0], "ls")
			for i := 1; i < len(prefix); i++ {
				match = match && prefix[i] == words[i]
			}
			fits = fits || match
		}
		require.True(tb, fits, "%q allows %q", command, words)
	}
}

func FuzzCommand(f *testing.F) {
	for _, c := range readCommands(f) {
		f.Add(c.command)
	}
	rules, prefixes := shellRules()
	p := compile(f, rules)
	f.Fuzz(func(t *testing.T, command string) { checkCommand(t, p, prefixes, command) })
}

func FuzzRule(f *testing.F) {
	for _, c := range readCommands(f) {
		for _, rule := range c.rules.Allow {
			f.Add(rule, c.command)
		}
	}
	f.Add("Read(src/**)", `{"file_path":"src/a"}`)
	f.Add("WebFetch(domain:a.de)", `{"url":"https://a.de"}`)
	f.Fuzz(func(t *testing.T, rule, input string) {
		rules := policy.Rules{Allow: []string{rule}, Cwd: "/repo", Home: "/home"}
		p, err := policy.Compile(rules)
		if err != nil {
			return
		}
		denies, err := policy.Compile(policy.Rules{Deny: []string{rule}, Cwd: "/repo", Home: "/home"})
		if len(p.Warnings()) > 0 {
			require.Error(t, err, "what cannot match anything is no deny rule")
			return
		}
		require.NoError(t, err, "what can be allowed can be denied")
		parsed, err := policy.ParseRule(rule)
		require.NoError(t, err)
		for _, c := range []policy.Call{bash(input), call(parsed.ToolName, input), call("WebFetch", input), call("Read", input)} {
			if p.Decide(c) == protocol.BehaviorAllow {
				assert.Equal(t, protocol.BehaviorDeny, denies.Decide(c), "what a rule allows it also denies: %s %s %s", rule, c.Tool, c.Input)
			}
		}
	})
}

// Random commands out of the pieces that attacks are made of.
func TestNothingSlipsThroughAPrefixRule(t *testing.T) {
	t.Parallel()
	rules, prefixes := shellRules()
	p := compile(t, rules)
	piece := rapid.SampledFrom([]string{
		"git", "git ", "status", "push", "log", "rm", "-rf", "/", "ls", "go test ", "npm run test", "sh", "-c", "x",
		" ", " ", " ", "\n", "\t", "\r", ";", "&", "&&", "|", "||", "|&", "!", "#", "\\", "'", "\"", "`", "$", "$(", ")", "(", "{", "}",
		"<", ">", ">>", "<<", "<<<", "EOF", "=", "A=b ", "*", "?", "[", "~", "$x", "${", "$'", "eval ", "env ", "command ", "alias g=git", "и", "\u00a0", "\u200b",
	})
	rapid.Check(t, func(t *rapid.T) {
		command := strings.Join(rapid.SliceOfN(piece, 1, 12).Draw(t, "pieces"), "")
		got := p.Explain(bash(command))
		if got.Behavior != protocol.BehaviorAllow {
			return
		}
		commands, ok := plainCommands(command)
		if !ok && strings.ContainsAny(command, "#<>*?[$") {
			return // see TestAllowedCommandsInARealShell
		}
		if !ok {
			t.Fatalf("%q is not made of literal words: %s", command, got)
		}
		for _, words := range commands {
			fits := slices.Contains(needNoRule, words[0])
			for _, prefix := range prefixes {
				fits = fits || strings.HasPrefix(words[0], "ls") || len(words) >= len(prefix) && strings.Join(words[:len(prefix)], " ") == strings.Join(prefix, " ")
			}
			if !fits {
				t.Fatalf("%q allows %q", command, words)
			}
		}
	})
}

// The order of the lists holds for any rules: what a deny rule is about is
// denied whatever else is said, and adding deny or ask rules allows nothing.
func TestMoreRulesAllowLess(t *testing.T) {
	t.Parallel()
	rule := rapid.SampledFrom([]string{
		"Bash", "Bash(git:*)", "Bash(git push *)", "Bash(ls)", "Bash(rm *)", "Bash(sudo ls)", "Read", "Read(src/**)", "Read(.env)", "Edit(/docs/**)", "Write", "mcp__a", "mcp__a__b",
	})
	call := rapid.Custom(func(t *rapid.T) policy.Call {
		command := rapid.SampledFrom([]string{"git push", "git log", "ls", "ls; rm x", "sudo ls", "git $x", "git log > x"}).Draw(t, "command")
		path := rapid.SampledFrom([]string{"src/a", ".env", "/repo/docs/a", "src/../.env"}).Draw(t, "path")
		input, _ := json.Marshal(map[string]string{"command": command, "file_path": path})
		return policy.Call{Tool: rapid.SampledFrom([]string{"Bash", "Read", "Grep", "Edit", "Write", "mcp__a__b"}).Draw(t, "tool"), Input: input}
	})
	rapid.Check(t, func(t *rapid.T) {
		lists := rapid.SliceOfN(rule, 0, 3)
		rules := policy.Rules{
			Allow: lists.Draw(t, "allow"), Ask: lists.Draw(t, "ask"), Deny: lists.Draw(t, "deny"), Cwd: "/repo", Home: "/home/u",
		}
		c := call.Draw(t, "call")
		decide := func(r policy.Rules) protocol.PermissionBehavior {
			p, err := policy.Compile(r)
			if err != nil {
				t.Fatal(err)
			}
			return p.Decide(c)
		}
		rank := map[protocol.PermissionBehavior]int{allow: 0, ask: 1, deny: 2}
		before := decide(rules)
		more := rules
		more.Ask = append(lists.Draw(t, "more ask"), rules.Ask...)
		more.Deny = append(lists.Draw(t, "more deny"), rules.Deny...)
		if after := decide(more); rank[after] < rank[before] {
			t.Fatalf("%s became %s", before, after)
		}
		fewer := rules
		fewer.Allow = nil
		if after := decide(fewer); rank[after] < rank[before] || after == allow {
			t.Fatalf("without what is allowed: %s became %s", before, after)
		}
	})
}

package optionfile_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/agent-troupe/troupe/internal/optionfile"
)

func read(t *testing.T, doc string) ([]byte, []optionfile.Mistake) {
	t.Helper()
	raw, err := os.ReadFile("../../schema/options.schema.json")
	require.NoError(t, err)
	schema, err := optionfile.ParseSchema(raw)
	require.NoError(t, err)
	return schema.Read([]byte(doc), func(string) (string, bool) { return "", false })
}

// 400 KiB of any one byte are read or refused at once: the parser of YAML alone
// takes minutes for some, such as quotes, percent signs and <.
func TestReadIsQuickWithAnyByte(t *testing.T) {
	t.Parallel()
	took := func(c byte, before string) time.Duration {
		doc := before + strings.Repeat(string([]byte{c}), 400<<10)
		begin := time.Now()
		read(t, doc)
		return time.Since(begin)
	}
	limit := 100 * time.Millisecond
	for range 3 { // under the race detector, or on a busy machine, plain text takes long too
		limit = max(limit, 5*took('a', "model: "))
	}
	for _, c := range []byte("&*!|>%@`\"'#-?:,[]{}<=~. \n\r\ta0\x00\x07\x80\xff\\/$+_(;") {
		for _, before := range []string{"", "model: ", "a: ["} {
			best := time.Hour
			for try := 0; try < 10 && best > limit; try++ { // another process may have had the CPU
				if try > 0 {
					limit = max(limit, 5*took('a', "model: ")) // and has it still: plain text takes as long
				}
				best = min(best, took(c, before))
			}
			assert.Less(t, best, limit, "%q and %q", before, c)
		}
	}
}

func TestReadRefusesWhatAnOptionFileCannotHave(t *testing.T) {
	t.Parallel()
	many := func(format string) string {
		var b strings.Builder
		for i := range 10_000 {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	for doc, want := range map[string]optionfile.Mistake{
		"model: &x a":                             {Line: 1, Column: 8, Problem: "is an anchor,"},
		"env: {A: *x}":                            {Line: 1, Column: 10, Problem: "is an alias,"},
		"model: !!str a":                          {Line: 1, Column: 8, Problem: "is a tag,"},
		"env:\n  <<: {A: b}":                      {Line: 2, Column: 3, Problem: "is not a text,"},
		"? a\n: b":                                {Line: 1, Column: 1, Problem: "is not a text,"},
		"settings: {a: {b: 1, b: 2}}":             {Line: 1, Column: 22, Key: "settings.a.b", Problem: "is a duplicate key"},
		`{"settings": {"a": 1, "a": 2}}`:          {Line: 1, Column: 23, Key: "settings.a", Problem: "is a duplicate key"},
		"mcpServers: {a: {timeout: -1}}":          {Line: 1, Column: 27, Key: "mcpServers.a.timeout", Problem: "is -1, which is out of range"},
		"closeTimeoutMs: 1e300":                   {Line: 1, Column: 17, Key: "closeTimeoutMs", Problem: "is 1e300, which is out of range"},
		"systemPrompt: {type: file, path: ''}":    {Line: 1, Column: 34, Key: "systemPrompt.path", Problem: "is empty"},
		"a: " + strings.Repeat("[", 200):          {Line: 1, Column: 203, Problem: "sequence end token"},
		"- " + strings.Repeat("- ", 200):          {Line: 1, Column: 203, Problem: "is more than 100 deep"},
		strings.Repeat("- ", 1001):                {Problem: "has brackets or dashes more than 1000 deep"},
		"model: " + strings.Repeat("<", 1e4):      {Problem: "has more than 1000 times '<' in a row"},
		"env:\n" + many("  K%d: v\n"):             {Problem: "has more than 20000 words"},
		strings.Repeat(" ", optionfile.MaxSize+1): {Problem: "is longer than 4194304 bytes"},
	} {
		out, mistakes := read(t, doc)
		assert.Nil(t, out)
		found := false
		for _, m := range mistakes {
			same := m.Line == want.Line && m.Column == want.Column && m.Key == want.Key
			found = found || same && strings.HasPrefix(m.Problem, want.Problem) && m.Fix != ""
		}
		assert.True(t, found, "%.60s\nwant %v\ngot  %v", doc, want, mistakes)
	}
	_, mistakes := read(t, `{"env": {`+strings.TrimSuffix(many(`"K%d": "v",`), ",")+"}}")
	assert.Empty(t, mistakes, "JSON may have as many keys as it likes")
}

// What has several forms is written in one.
func TestReadWritesOneForm(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{
		"":                                           `{}`,
		"cliPath: /q\nmaxTurns: 3.0":                 `{"pathToExecutable":"/q","maxTurns":3}`,
		"closeTimeout: 1m30s":                        `{"closeTimeout":90000000000}`,
		"closeTimeoutMs: 1.5":                        `{"closeTimeout":1500000}`,
		"sandbox: {extra: {new: [1]}}":               `{"sandbox":{"new":[1]}}`,
		"env: {A: b, C: null}\nunsetEnv: [D]":        `{"env":{"A":"b"},"unsetEnv":["D","C"]}`,
		"settings: s.json\nmcpServers: m.json":       `{"settingsPath":"s.json","mcpConfigPath":"m.json"}`,
		"taskBudget: {total: 5}":                     `{"taskBudget":5}`,
		"auth: {type: accessToken, accessToken: {}}": `{"auth":{"type":"accessToken","accessToken":{"envVar":""}}}`,
		"agents: {a: {description: d, prompt: p, mcpServers: [x, {z: {command: c}, y: {command: d}}]}}": `{"agents":{"a":` +
			`{"description":"d","prompt":"p","mcpServers":["x",{"z":{"command":"c"}},{"y":{"command":"d"}}]}}}`,
	} {
		out, mistakes := read(t, doc)
		assert.Empty(t, mistakes, doc)
		assert.Equal(t, want, string(out), doc)
	}
}

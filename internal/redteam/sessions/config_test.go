package sessions_test

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/agent-troupe/troupe/sdk"
)

func TestConfigBombs(t *testing.T) {
	lol := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c <= 'i'; c++ {
		lol += fmt.Sprintf("%c: &%c [", c, c) + strings.Repeat(fmt.Sprintf("*%c,", c-1), 9) + "]\n"
	}
	cases := map[string]string{
		"billion laughs":   lol,
		"merge":            "env: &e {A: b}\nx:\n  <<: *e\n",
		"alias to itself":  "env: &e\n  A: *e\n",
		"anchor":           "model: &m x\n",
		"tag":              "model: !!binary aGk=\n",
		"tag python":       "model: !!python/object/apply:os.system ['id']\n",
		"deep flow":        strings.Repeat("[", 100000),
		"deep flow closed": "agents: " + strings.Repeat("[", 900) + strings.Repeat("]", 900),
		"deep block": func() string {
			b := ""
			for i := range 2000 {
				b += strings.Repeat(" ", i) + "a:\n"
			}
			return b
		}(),
		"deep seq": strings.Repeat("- ", 100000) + "x",
		"deep seq lines": func() string {
			b := ""
			for i := range 1500 {
				b += strings.Repeat("  ", i) + "-\n"
			}
			return b
		}(),
		"deep ?":           strings.Repeat("? ", 50000) + "x",
		"deep json":        `{"agents":` + strings.Repeat(`{"a":`, 200000) + `1` + strings.Repeat("}", 200000) + "}",
		"deep json arrays": `{"agents":` + strings.Repeat(`[`, 9000) + strings.Repeat("]", 9000) + "}",
		"4 MiB of keys yaml": func() string {
			var b strings.Builder
			b.WriteString("env:\n")
			for i := 0; b.Len() < 4<<20-100; i++ {
				fmt.Fprintf(&b, "  K%d: v\n", i)
			}
			return b.String()
		}(),
		"400 KiB of keys yaml": func() string {
			var b strings.Builder
			b.WriteString("env:\n")
			for i := 0; b.Len() < 400<<10; i++ {
				fmt.Fprintf(&b, "  K%d: v\n", i)
			}
			return b.String()
		}(),
		"4 MiB of keys json": func() string {
			var b strings.Builder
			b.WriteString(`{"env":{`)
			for i := 0; b.Len() < 4<<20-100; i++ {
				fmt.Fprintf(&b, `"K%d":"v",`, i)
			}
			b.WriteString(`"Z":"z"}}`)
			return b.String()
		}(),
		"4 MiB of commas":      "a: [" + strings.Repeat(",", 4<<20-100) + "]",
		"1 MiB of {":           "a: " + strings.Repeat("{},", 1<<18),
		"400 KiB of quotes":    "a: " + strings.Repeat("'", 400<<10),
		"400 KiB of dquotes":   "a: " + strings.Repeat("\"", 400<<10),
		"400 KiB of colons":    strings.Repeat(": ", 200<<10),
		"400 KiB of #":         strings.Repeat("#\n", 200<<10),
		"400 KiB of |":         strings.Repeat("a: |\n x\n", 50<<10),
		"400 KiB of &":         strings.Repeat("&", 400<<10),
		"400 KiB of *":         strings.Repeat("* ", 200<<10),
		"400 KiB of !":         strings.Repeat("! ", 200<<10),
		"400 KiB of ---":       strings.Repeat("---\n", 100<<10),
		"400 KiB of - (lines)": strings.Repeat("-\n", 200<<10),
		"400 KiB of tabs":      strings.Repeat("\t", 400<<10),
		"400 KiB spaces a":     strings.Repeat(" ", 400<<10) + "a: b",
		"huge number":          "maxTurns: 1" + strings.Repeat("0", 100000),
		"huge float":           "maxBudgetUsd: 1e999999999",
		"nan":                  "maxBudgetUsd: .nan",
		"duration":             "closeTimeout: 99999999999h",
		"env in env":           `env: {A: {"$env": "${A}${A}"}}`,
		"env recursion":        `model: {"$env": "${X:-${X:-${X}}}"}`,
		"env not asked":        "model: ${HOME}\nenv: {A: $HOME}\n",
		"include":              "include: /etc/passwd\n",
		"include tag":          "model: !include /etc/passwd\n",
		"settings path":        "settings: ../../../../etc/passwd\n",
		"policy key":           "policy: {allow: [Bash]}\n",
		"dup key":              "model: a\nmodel: b\n",
		"dup key json":         `{"model":"a","model":"b"}`,
		"case key":             "Model: a\n",
		"proto":                "__proto__: {}\nconstructor: {}\n",
		"bypass":               "permissionMode: bypassPermissions\n",
		"extraArgs":            `extraArgs: {"dangerously-skip-permissions": null, "permission-mode": bypassPermissions}`,
		"extraArgs allowed":    `extraArgs: {"allowedTools": "Bash", "mcp-config": "x", "settings": "{}", "permission-prompt-tool": "x", "setting-sources": "user"}`,
		"nul":                  "model: \"a\\0b\"\n",
		"newline in model":     "model: \"a\\n--dangerously-skip-permissions\"\n",
		"dash model":           "model: \"--dangerously-skip-permissions\"\n",
		"bidi":                 "model: \"\\u202e\"\n",
	}
	// A token of the environment is not to be in what a configuration did not ask it for.
	_ = os.Setenv("RT_SECRET", "SECRET-fromenv")
	for name, doc := range cases {
		type result struct {
			o   *sdk.Options
			err error
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		ch := make(chan result, 1)
		go func() {
			o, err := sdk.LoadOptions(strings.NewReader(doc))
			ch <- result{o, err}
		}()
		var r result
		select {
		case r = <-ch:
		case <-time.After(40 * time.Second):
			r.err = fmt.Errorf("GIVEN UP")
		}
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		out := fmt.Sprint(r.err)
		if r.err == nil {
			r.o.Backend = sdk.Claude(sdk.ClaudeConfig{Path: "/bin/x"})
			p, err := sdk.PreviewLaunch(r.o)
			out = "loaded; plan: "
			if err != nil {
				out += err.Error()
			} else {
				out += fmt.Sprint(p.Args, " settings ", r.o.SettingsPath, " policy ", r.o.Policy, " mode ", r.o.PermissionMode)
			}
		}
		mark := ""
		if took > 2*time.Second || after.TotalAlloc-before.TotalAlloc > 1<<30 {
			mark = "<<<<<<"
		}
		t.Logf("%-22s %8d bytes %8v %6d MiB allocated %s %.200q", name, len(doc), took.Round(time.Millisecond), (after.TotalAlloc-before.TotalAlloc)>>20, mark, out)
	}
}

package osproc

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestMaskArgs(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, in, want string }{
		{"plain", "node /x/cli.js --print --model=opus --verbose", "node /x/cli.js --print --model=opus --verbose"},
		{"settings", "--settings=/etc/s --verbose", "--settings=*** --verbose"},
		{"settings apart", "--settings /etc/s --verbose x", "--settings *** --verbose ***"},
		{"many values", "--mcp-config a b --x c", "--mcp-config *** *** --x ***"},
		{"known values", "--model opus --add-dir /a /b --resume=t", "--model opus --add-dir /a /b --resume=t"},
		{"after a known value", "--model=opus hello", "--model=opus ***"},
		{"unknown flags", "--acme-key=1 --acme 2 -H 3 -Htoken=4 -sk-5", "--acme-key=*** --acme *** -H *** *** ***"},
		{"after the flags", "--model x -- -a --b c", "--model x -- *** *** ***"},
		{"by name", "--api-key=1 --auth-token 2 --Header 3", "--api-key=*** --auth-token *** --Header ***"},
		{"json", `{"b":2} [1] --betas={"a":1} --agents={"a":1}`, "<json,7> <json,3> --betas=<json,7> --agents=***"},
		{"url", "https://me@h --debug-file=http://me:pw@host:1/x", "https://***@h --debug-file=http://***@host:1/x"},
		{"file token", "{{file:x}} --add-dir={{file:plan}}", "{{file:x}} --add-dir={{file:plan}}"},
		{"file token of a hidden flag", "--mcp-config={{file:mcp}}", "--mcp-config=***"},
		{"long", strings.Repeat("é", 150), strings.Repeat("é", 100) + "…(300)"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(MaskArgs(strings.Fields(tc.in)), " ")
			got = strings.NewReplacer("<json, ", "<json,", " bytes>", ">", "… (300 bytes)", "…(300)").Replace(got)
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestMaskArgsHidesSecretsAnywhere(t *testing.T) {
	t.Parallel()
	const secret = "s3cr3t"
	place := rapid.SampledFrom([][]string{
		{"--settings=" + secret}, {"--settings", secret}, {"--mcp-config", "a", secret},
		{`--x={"k":"` + secret + `"}`}, {` {"k":"` + secret + `"}`}, {"http://u:" + secret + "@h"},
		{"--oauth-token=" + secret}, {"--header", "Authorization: " + secret},
		{"--acme", secret}, {"--acme=" + secret}, {"--acme", "x", secret}, {"-" + secret}, {"-x" + secret + "=1"}, {"--acme " + secret},
	})
	noise := rapid.SliceOf(rapid.SampledFrom([]string{"-p", "--model=x", "word", "--verbose", "a=b", ""}))
	rapid.Check(t, func(t *rapid.T) {
		args := append(noise.Draw(t, "before"), place.Draw(t, "secret")...)
		args = append(args, noise.Draw(t, "after")...)
		out := MaskArgs(args)
		assert.Len(t, out, len(args))
		assert.NotContains(t, strings.Join(out, "\x00"), secret)
	})
}

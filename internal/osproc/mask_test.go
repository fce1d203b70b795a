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
		{"plain", "--print --model=opus hello", "--print --model=opus hello"},
		{"settings", "--settings=/etc/s --verbose", "--settings=*** --verbose"},
		{"settings apart", "--settings /etc/s --verbose x", "--settings *** --verbose x"},
		{"many values", "--mcp-config a b --x c", "--mcp-config *** *** --x c"},
		{"by name", "--api-key=1 --auth-token 2 --Header 3", "--api-key=*** --auth-token *** --Header ***"},
		{"json", `--agents={"a":1} {"b":2} [1]`, "--agents=<json,7> <json,7> <json,3>"},
		{"url", "--proxy=http://me:pw@host:1/x https://me@h", "--proxy=http://***@host:1/x https://***@h"},
		{"file token", "--plan={{file:plan}} {{file:x}}", "--plan={{file:plan}} {{file:x}}"},
		{"file token of a secret flag", "--mcp-config={{file:mcp}}", "--mcp-config=***"},
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

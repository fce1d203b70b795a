package command

import (
	"encoding/json"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	w := newWorld()
	require.Equal(t, exitOK, w.run("version"), w.err)
	first, rest, _ := strings.Cut(w.out.String(), "\n")
	assert.Regexp(t, `^troupe \S+ .*`+runtime.Version()+` `+runtime.GOOS+`/`, first)
	assert.Contains(t, rest, "Claude Code            2.1.")

	w = newWorld()
	require.Equal(t, exitOK, w.run("version", "--json"), w.err)
	var v versions
	require.NoError(t, json.Unmarshal([]byte(w.out.String()), &v))
	assert.Equal(t, testedAgents(), v.Agents)

	v = versions{Version: "v1.2.3", Commit: "0123456789abcdef", Time: "2026-12-01T08:00:00Z", Modified: true, Go: "go1.26", Platform: "linux/amd64"}
	assert.Equal(t, "troupe v1.2.3 0123456789ab (modified) go1.26 linux/amd64\n", v.line())
	assert.Contains(t, v.text(), "commit 0123456789abcdef of 2026-12-01T08:00:00Z\n")
}

// troupe version lists the releases that the conformance tests run.
func TestTheTestedAgentsAreThoseOfTheConformanceTests(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("../../conformance/agents.txt")
	require.NoError(t, err)
	var said []string
	for _, a := range testedAgents() {
		for _, r := range a.Releases {
			words := strings.Fields(r)
			said = append(said, words[len(words)-1])
		}
	}
	var run []string
	for line := range strings.Lines(string(raw)) {
		if name, release, ok := strings.Cut(strings.TrimSpace(line), " "); ok && name != "node" {
			run = append(run, strings.TrimSpace(release))
		}
	}
	assert.ElementsMatch(t, run, said)
	for name, file := range map[string]string{"sdkVersion = \"0.3.329\"": "../../dialect/claude/launch.go", `protocolVersion: "1.4.0"`: "../../agent/dialect.go"} {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Contains(t, string(source), name, file)
	}
}

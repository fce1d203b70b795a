package docs_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func source(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile("../" + name)
	require.NoError(t, err)
	return string(raw)
}

// TestReleaseFiles reads files that nothing here can run: they say so in their first line, are valid
// YAML, and name what exists.
func TestReleaseFiles(t *testing.T) {
	t.Parallel()
	var workflow struct {
		Jobs map[string]struct {
			Steps []struct {
				Run string `yaml:"run"`
			} `yaml:"steps"`
		} `yaml:"jobs"`
	}
	text := source(t, ".github/workflows/ci.yaml")
	assert.True(t, strings.HasPrefix(text, "# This workflow has not been run yet"))
	require.NoError(t, yaml.Unmarshal([]byte(text), &workflow))
	var runs []string
	for _, job := range workflow.Jobs {
		for _, step := range job.Steps {
			if step.Run != "" {
				runs = append(runs, step.Run)
			}
		}
	}
	assert.ElementsMatch(t, []string{".ci/run", "go vet ./...", "go test -short ./..."}, runs)

	var compose struct {
		Services map[string]struct {
			Command []string `yaml:"command"`
			Build   struct {
				Dockerfile string `yaml:"dockerfile"`
			} `yaml:"build"`
		} `yaml:"services"`
	}
	text = source(t, "scripts/docker/compose.yaml")
	assert.True(t, strings.HasPrefix(text, "# Not run: "))
	require.NoError(t, yaml.Unmarshal([]byte(text), &compose))
	workers, flags := 0, source(t, "internal/command/worker.go")
	for name, s := range compose.Services {
		if s.Build.Dockerfile != "" {
			source(t, s.Build.Dockerfile)
		}
		if !strings.HasPrefix(name, "worker-") {
			continue
		}
		workers++
		require.Equal(t, "worker", s.Command[0])
		for _, word := range s.Command {
			if flag, is := strings.CutPrefix(word, "--"); is {
				assert.Contains(t, flags, `name: "`+flag+`"`, name)
			}
		}
	}
	assert.Equal(t, 2, workers)

	text = source(t, "scripts/docker/Dockerfile")
	assert.True(t, strings.HasPrefix(text, "# Not run: "))
	for _, want := range []string{"\nUSER troupe\n", `ENTRYPOINT ["/usr/bin/tini", "--", "troupe"]`, `ARG CLAUDE_CODE=""`} {
		assert.Contains(t, text, want)
	}
	release := regexp.MustCompile(`CLAUDE_CODE=(\S+) `).FindStringSubmatch(text)
	require.NotNil(t, release)
	assert.Regexp(t, `(?m)^claude +`+regexp.QuoteMeta(release[1])+`$`, source(t, "conformance/agents.txt"), "the release that is tested")
	assert.Contains(t, text, "golang:"+regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(source(t, "go.mod"))[1]+"-", "the Go of go.mod")
}

// TestTemplates checks that the templates of issues are valid, and that their links and those of
// SECURITY.md name the same private place.
func TestTemplates(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"bug", "change", "config"} {
		var v map[string]any
		require.NoError(t, yaml.Unmarshal([]byte(source(t, ".github/ISSUE_TEMPLATE/"+name+".yml")), &v), name)
		assert.NotEmpty(t, v, name)
	}
	const private = "https://github.com/agent-troupe/troupe/security/advisories/new"
	assert.Contains(t, source(t, ".github/ISSUE_TEMPLATE/config.yml"), private)
	assert.Contains(t, source(t, "SECURITY.md"), private)
	assert.Contains(t, source(t, ".github/pull_request_template.md"), "CHANGELOG.md")
}

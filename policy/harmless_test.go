package policy

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
)

// Every line of the table can be read, and says each thing once.
func TestHarmlessIsATable(t *testing.T) {
	t.Parallel()
	option := regexp.MustCompile(`^[!>~%]?(-#|-[A-Za-z0-9#]|--?[A-Za-z0-9][A-Za-z0-9.=-]*|--)[=?]?$`)
	kinds := []string{"*", "plain", "value", "arg", "below", "package", "source", "fetched", "peer", "repo", "said", "script", "run", "shell", "bundle", "rest", "tool", "module", "sedscript", "awkscript"}
	lines := map[string]bool{}
	for line := range strings.Lines(strings.ReplaceAll(harmless, "\n\t", " ")) {
		head, _, found := strings.Cut(line, ":")
		if strings.TrimSpace(line) == "" {
			continue
		}
		assert.True(t, found && head != "" && !strings.HasPrefix(line, " "), line)
		paths := [][]string{{}}
		for _, names := range strings.Fields(head) {
			var longer [][]string
			for _, path := range paths {
				for name := range strings.SplitSeq(names, "|") {
					longer = append(longer, append(slices.Clone(path), name))
				}
			}
			paths = longer
		}
		for _, path := range paths {
			at := strings.Join(path, " ")
			assert.False(t, lines[at], "%s is there twice", at)
			lines[at] = true
			u := &usage{inner: programs()}
			for _, name := range path {
				u = u.inner[name]
				if !assert.NotNil(t, u, at) {
					return
				}
			}
			for i, o := range u.options {
				assert.Regexp(t, option, o, at)
				assert.NotContains(t, u.options[:i], o, at)
			}
			for i, kind := range u.operands {
				assert.Contains(t, kinds, kind, at)
				assert.True(t, i == len(u.operands)-1 || kind != "run" && kind != "shell" && kind != "rest", at)
			}
		}
	}
	assert.Greater(t, len(lines), 300)
}

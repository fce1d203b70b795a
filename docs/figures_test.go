package docs_test

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestFiguresNameTheirBenchmark checks that a section with measured figures names a program or a test that
// prints them. benchmarks.md is made by its program.
func TestFiguresNameTheirBenchmark(t *testing.T) {
	t.Parallel()
	files, err := fs.Glob(os.DirFS("."), "*.md")
	require.NoError(t, err)
	heading := regexp.MustCompile(`(?m)^#+ `)
	measured := regexp.MustCompile(`(?i)\bmeasured\b|\bon (two|2)( idle)? cores\b|\bmedians? of\b`)
	figure := regexp.MustCompile(`[0-9] ?(s|ms|µs|KB|MB|GB|KiB|MiB|GiB|%)\b`)
	program := regexp.MustCompile("`bench/|`go run \\./|`go -C |`(TROUPE_\\w+=\\S+ )?go test |`\\.ci/full|`go tool ")
	found := 0
	for _, file := range files {
		if file == "benchmarks.md" {
			continue
		}
		for _, section := range heading.Split(source(t, "docs/"+file), -1) {
			if !measured.MatchString(section) || !figure.MatchString(section) {
				continue
			}
			found++
			title, _, _ := strings.Cut(section, "\n")
			assert.Regexp(t, program, section, "%s, %s: which program prints the figures?", file, title)
		}
	}
	assert.Greater(t, found, 5, "sections with figures")
}

package docs_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTestsOfOneSystemSaySo checks that a test file which starts a shell or reads /proc has a build
// constraint, in its name or with a reason below it, or looks at the system when it runs.
func TestTestsOfOneSystemSaySo(t *testing.T) {
	t.Parallel()
	assumes := regexp.MustCompile("exec\\.Command(?:Context)?\\((?:\\w+(?:\\.\\w+\\(\\))?, )?\"(?:/bin/)?(?:ba)?sh\"|[\"`]#!/bin/sh|[\"`]/proc/self/(?:exe|environ|stat)|</proc/")
	constrained := regexp.MustCompile(`_(?:linux|unix|darwin|windows)_test\.go$`)
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			name := d.Name()
			if strings.HasPrefix(name, ".") && name != ".." || name == "testdata" || name == "dist" {
				return fs.SkipDir
			}
			if _, err := os.Stat(filepath.Join(path, "go.mod")); err == nil && path != ".." {
				return fs.SkipDir // another module
			}
			return nil
		}
		if !strings.HasSuffix(path, "_test.go") || constrained.MatchString(path) {
			return nil
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		text := string(raw)
		if what := assumes.FindString(text); what != "" && path != "../docs/systems_test.go" {
			tag, _, _ := strings.Cut(text, "\npackage ")
			has := regexp.MustCompile(`(?m)^//go:build .+\n\n// \S+`).MatchString(tag+"\n") || strings.Contains(text, ".GOOS") || strings.Contains(text, `os.Stat("/proc/`)
			assert.True(t, has, "%s has %s: give it a build constraint and a line that says why, or look at runtime.GOOS", path, what)
		}
		return nil
	}))
}

package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func contributing(t *testing.T) string {
	t.Helper()
	raw, err := os.ReadFile("../CONTRIBUTING.md")
	require.NoError(t, err)
	return string(raw)
}

func exists(path string) bool {
	_, err := os.Stat(filepath.Join("..", path))
	return err == nil
}

// layerRows returns the rows of the variable layers in tools/lint/policy.go, without
// packages that do not exist.
func layerRows(t *testing.T) (rows []string) {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../tools/lint/policy.go", nil, 0)
	require.NoError(t, err)
	ast.Inspect(file, func(n ast.Node) bool {
		spec, ok := n.(*ast.ValueSpec)
		if !ok || spec.Names[0].Name != "layers" {
			return true
		}
		for _, row := range spec.Values[0].(*ast.CompositeLit).Elts {
			var names []string
			for _, e := range row.(*ast.CompositeLit).Elts {
				name, err := strconv.Unquote(e.(*ast.BasicLit).Value)
				require.NoError(t, err)
				if exists(name) {
					names = append(names, name)
				}
			}
			if len(names) > 0 {
				rows = append(rows, strings.Join(names, ", "))
			}
		}
		return false
	})
	return rows
}

// TestContributingListsTheLayers compares the list of packages with the linter's.
func TestContributingListsTheLayers(t *testing.T) {
	t.Parallel()
	var list []string
	for _, line := range regexp.MustCompile(`(?m)^> (.*)$`).FindAllStringSubmatch(contributing(t), -1) {
		list = append(list, strings.TrimSuffix(line[1], " ·"))
	}
	rows := strings.Split(strings.Join(list, " · "), " · ")
	for _, row := range rows {
		for name := range strings.SplitSeq(row, ", ") {
			assert.True(t, exists(name), "package %s does not exist", name)
		}
	}
	assert.Equal(t, layerRows(t), rows, "the list in tools/lint/policy.go")
}

// TestContributingNamesStepsAndCommands checks that the table has the steps of .ci/run,
// and that the files and directories in the commands exist.
func TestContributingNamesStepsAndCommands(t *testing.T) {
	t.Parallel()
	document := contributing(t)
	script, err := os.ReadFile("../.ci/run")
	require.NoError(t, err)
	all := regexp.MustCompile(`(?m)^all_steps=\((.*)\)$`).FindStringSubmatch(string(script))
	require.Len(t, all, 2)
	steps := strings.Fields(all[1])
	_, table, _ := strings.Cut(document, "| step | what it checks |\n|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var listed []string
	for row := range strings.Lines(table) {
		listed = append(listed, strings.Split(strings.Trim(strings.Split(row, "|")[1], " "), ", ")...)
	}
	assert.Equal(t, steps, listed, "the steps of .ci/run")

	commands := regexp.MustCompile("(?m)^((?:go|\\.ci)[ /].*?)(?: +#.*)?$|`((?:go (?:test|run|vet)|\\.ci/)[^`]*)`").FindAllStringSubmatch(document, -1)
	require.NotEmpty(t, commands)
	for _, found := range commands {
		words := strings.Fields(found[1] + found[2])
		if strings.HasPrefix(words[0], ".ci/") {
			assert.True(t, exists(words[0]), "%s does not exist", words[0])
			if words[0] == ".ci/run" {
				assert.Subset(t, steps, words[1:], found[0])
			}
			continue
		}
		for _, word := range words {
			if dir, ok := strings.CutPrefix(word, "./"); ok {
				dir = strings.TrimSuffix(strings.TrimSuffix(dir, "..."), "/")
				assert.True(t, exists(dir), "%s: %s does not exist", found[0], word)
			}
		}
	}
}

// TestEachProofOfFullRunsOnce checks that .ci/full has one function for each of its proofs: the
// shell takes the last of two with the same name, and says nothing.
func TestEachProofOfFullRunsOnce(t *testing.T) {
	t.Parallel()
	script, err := os.ReadFile("../.ci/full")
	require.NoError(t, err)
	all := regexp.MustCompile(`(?m)^all_proofs=\((.*)\)$`).FindStringSubmatch(string(script))
	require.Len(t, all, 2)
	var functions []string
	for _, f := range regexp.MustCompile(`(?m)^proof_(\w+)\(\)`).FindAllStringSubmatch(string(script), -1) {
		functions = append(functions, f[1])
	}
	assert.Equal(t, functions, strings.Fields(all[1]))
}

// TestContributingNamesWhatExists checks that the files, directories and tests that the
// document names exist.
func TestContributingNamesWhatExists(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{}
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		raw, err := os.ReadFile(path)
		for _, name := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(raw, -1) {
			tests[string(name[1])] = true
		}
		return err
	}))
	for _, quoted := range regexp.MustCompile("`([^`\n]+)`").FindAllStringSubmatch(contributing(t), -1) {
		switch name := quoted[1]; {
		case regexp.MustCompile(`^Test[A-Z]\w*$`).MatchString(name):
			assert.True(t, tests[name], "there is no %s", name)
		case regexp.MustCompile(`^[\w.-]+(/[\w.-]+)*/?$`).MatchString(name) && strings.ContainsAny(name, "/") || regexp.MustCompile(`^\S+\.(go|md|yml|yaml|json|txt)$`).MatchString(name):
			found := exists(name)
			if matches, _ := filepath.Glob("../dialect/*/" + name); len(matches) > 0 {
				found = true // launch.go, initialize.go: in each dialect
			}
			assert.True(t, found, "%s does not exist", name)
		}
	}
}

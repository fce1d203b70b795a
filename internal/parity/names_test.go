package parity

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// notNamed begins the source of a row that no document names, and says why it
// is there.
const notNamed = "none: "

// nameList is a file of testdata/names: what one source calls things.
//
//	# source: what it is, with its version
//	# key: how the ledger refers to it
//	# vendor: claude or qoder
//	[kind] section
//	name
//	name = the name in the ledger, where it is another
type nameList struct {
	file, source, key, vendor string
	names                     []named
}

type named struct{ kind, section, name, row string }

func nameLists(t *testing.T) []nameList {
	t.Helper()
	files, err := filepath.Glob("testdata/names/*.txt")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	var lists []nameList
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		l := nameList{file: file}
		var kind, section string
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			switch {
			case line == "":
			case strings.HasPrefix(line, "# "):
				key, value, _ := strings.Cut(line[2:], ": ")
				switch key {
				case "source":
					l.source = value
				case "key":
					l.key = value
				case "vendor":
					l.vendor = value
				default:
					require.Failf(t, "what is that?", "%s: %s", file, line)
				}
			case strings.HasPrefix(line, "["):
				kind, section, _ = strings.Cut(line[1:], "] ")
			default:
				name, row, renamed := strings.Cut(line, " = ")
				if !renamed {
					row = name
				}
				l.names = append(l.names, named{kind, section, name, strings.ReplaceAll(row, " ", "-")})
			}
		}
		require.NotEmpty(t, l.names, file)
		lists = append(lists, l)
	}
	return lists
}

func ledger(t *testing.T) *Ledger {
	t.Helper()
	l, err := Read("../..")
	require.NoError(t, err)
	return l
}

// Every name of the documents and of the wire has its row, and every row has a
// name there, or says why it has none.
func TestEveryNameHasARow(t *testing.T) {
	t.Parallel()
	l := ledger(t)
	document, err := os.ReadFile("testdata/parity.md")
	require.NoError(t, err)
	var keys []string // the lines of its table of sources
	for line := range strings.Lines(string(document)) {
		if strings.Count(line, "|") == 3 {
			keys = append(keys, strings.TrimSpace(line))
		}
	}
	used := map[string]bool{}
	for _, list := range nameLists(t) {
		key := "| " + list.key + " | " + list.source + " |"
		assert.Contains(t, keys, key, "the key of %s", list.file)
		for _, n := range list.names {
			row := l.Row("both/" + n.kind + "/" + n.row)
			if row == nil {
				row = l.Row(list.vendor + "/" + n.kind + "/" + n.row)
			}
			if !assert.NotNil(t, row, "%s: no row for %s %q (%s)", list.file, n.kind, n.name, n.section) {
				continue
			}
			used[row.ID] = true
			assert.Contains(t, row.Source, list.key+" "+n.section, "%s: the source of %s", list.file, row.ID)
		}
	}
	for _, r := range l.Rows {
		if used[r.ID] {
			assert.NotContains(t, r.Source, notNamed, r.ID)
			continue
		}
		assert.True(t, strings.HasPrefix(r.Source, notNamed), "no list has the name of %s; say why in its source, after %q", r.ID, notNamed)
	}
}

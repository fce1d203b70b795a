package main

import (
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// checked is a package of this module, made from its source.
func checked(t *testing.T, path, source string) *types.Package {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path+".go", source, 0)
	require.NoError(t, err)
	p, err := (&types.Config{Importer: importer.Default()}).Check(modulePath+"/"+path, fset, []*ast.File{file}, nil)
	require.NoError(t, err)
	return p
}

const before = `package fleet
type T struct { A int; B string }
func (*T) M() {}
type I interface { Do(int) error }
func F[V any](V) V { panic(0) }
const C = 1
type hidden struct{ a int }
`

func TestWhatIsIncompatible(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ what, after, symbol string }{
		{"nothing", before, ""},
		{"a name, a field and a method more, and another hidden type", `package fleet
type T struct { A int; B string; C int }
func (*T) M() {}
func (*T) N() {}
type I interface { Do(int) error }
func F[V any](V) V { panic(0) }
func G() {}
const C = 1
`, ""},
		{"a field less", `package fleet
type T struct { A int }
func (*T) M() {}
type I interface { Do(int) error }
func F[V any](V) V { panic(0) }
const C = 1
`, "fleet.T.B"},
		{"a method less", `package fleet
type T struct { A int; B string }
type I interface { Do(int) error }
func F[V any](V) V { panic(0) }
const C = 1
`, "fleet.T.M"},
		{"an interface with one method more", `package fleet
type T struct { A int; B string }
func (*T) M() {}
type I interface { Do(int) error; More() }
func F[V any](V) V { panic(0) }
const C = 1
`, "fleet.I.More"},
		{"another constraint", `package fleet
type T struct { A int; B string }
func (*T) M() {}
type I interface { Do(int) error }
func F[V comparable](V) V { panic(0) }
const C = 1
`, "fleet.F"},
		{"another value", `package fleet
type T struct { A int; B string }
func (*T) M() {}
type I interface { Do(int) error }
func F[V any](V) V { panic(0) }
const C = 2
`, "fleet.C"},
	} {
		t.Run(c.what, func(t *testing.T) {
			t.Parallel()
			name := filepath.Join(t.TempDir(), "record.zip")
			require.NoError(t, write(name, packageSet{"fleet": checked(t, "fleet", before)}))
			old, err := read(name)
			require.NoError(t, err)
			found := changes(old, packageSet{"fleet": checked(t, "fleet", c.after)})
			if c.symbol == "" {
				assert.Empty(t, found)
				return
			}
			require.Len(t, found, 1)
			assert.Equal(t, c.symbol, found[0].symbol, found[0].message)
			assert.Len(t, unnamed(found, "- `fleet.Other`, and fleet.T.B, without the quotes"), 1)
			assert.Empty(t, unnamed(found, "- `"+c.symbol+"` is another one"))
			assert.Empty(t, unnamed(found, "- all of `fleet`"))
		})
	}
}

func TestNamesOfSymbols(t *testing.T) {
	t.Parallel()
	for message, want := range map[string]string{
		"F: removed": "fleet.F", "(*T).M: removed": "fleet.T.M", "T.M: added": "fleet.T.M", "T, method set of *U: removed": "fleet.T",
		modulePath + "/fleet/queue.Queue.Extend: changed": "fleet/queue.Queue.Extend", "package removed": "fleet.package",
	} {
		assert.Equal(t, want, symbolOf("fleet", message), message)
	}
}

func TestAPackageThatIsGone(t *testing.T) {
	t.Parallel()
	found := changes(packageSet{"fleet/queue": checked(t, "fleet/queue", "package queue")}, packageSet{})
	require.Len(t, found, 1)
	assert.Equal(t, "fleet/queue", found[0].symbol)
}

func TestTheSectionOfTheNextRelease(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "\n- `a`\n", unreleased("# Changelog\n\n## [Unreleased]\n\n- `a`\n\n## [0.1.0]\n\n- `b`\n"))
	assert.Empty(t, unreleased("# Changelog\n\n## [0.1.0]\n\n- `b`\n"))
	assert.Equal(t, []string{"sdk", "contrib/otel"}, promises("| `sdk` | stable | a |\n| `actors` | none | b |\n| `contrib/otel` | stable | c |\n"))
}

func TestATypeOfAPackageWithoutAPromise(t *testing.T) {
	t.Parallel()
	inner := types.NewPackage(modulePath+"/actors", "actors")
	secret := types.NewNamed(types.NewTypeName(token.NoPos, inner, "Secret", nil), types.NewStruct(nil, nil), nil)
	outer := types.NewPackage(modulePath+"/sdk", "sdk")
	list := types.NewField(token.NoPos, outer, "List", types.NewSlice(types.NewPointer(secret)), false)
	hidden := types.NewField(token.NoPos, outer, "hidden", secret, false)
	define := func(name string, fields ...*types.Var) {
		obj := types.NewTypeName(token.NoPos, outer, name, nil)
		types.NewNamed(obj, types.NewStruct(fields, nil), nil)
		outer.Scope().Insert(obj)
	}
	define("Closed", hidden)
	set := packageSet{"sdk": outer}
	assert.Empty(t, strangers(set, []string{"sdk"}))
	define("Open", list)
	require.Len(t, strangers(set, []string{"sdk"}), 1)
	assert.Contains(t, strangers(set, []string{"sdk"})[0], "sdk.Open has a type of package actors")
	assert.Empty(t, strangers(set, []string{"sdk", "actors"}))
}

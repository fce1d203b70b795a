package parity

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// directories are the packages that rows name symbols of.
func directories() map[string]string {
	return map[string]string{
		"protocol": "../../protocol", "tools": "../../protocol/tools", "view": "../../protocol/view",
		"dialect": "../../dialect", "claude": "../../dialect/claude", "qoder": "../../dialect/qoder",
		"policy": "../../policy", "transcript": "../../transcript", "user": "../../actors/user", "transport": "../../actors/transport",
		"callback": "../../actors/callback", "session": "../../session", "actors": "../../actors",
		"kernel": "../../internal/kernel", "runtime": "../../runtime", "sdk": "../../sdk",
	}
}

// symbols are the exported declarations of those packages, by package.Name and
// package.Type.Member.
type symbols map[string]ast.Node

func declared(t *testing.T) symbols {
	t.Helper()
	s := symbols{}
	for pkg, dir := range directories() {
		files, err := fs.Glob(os.DirFS(dir), "*.go")
		require.NoError(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), dir+"/"+file, nil, 0)
			require.NoError(t, err)
			for _, d := range f.Decls {
				s.add(pkg, d)
			}
		}
	}
	return s
}

func (s symbols) add(pkg string, d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := pkg + "." + d.Name.Name
		if d.Recv != nil {
			name = pkg + "." + receiver(d.Recv.List[0].Type) + "." + d.Name.Name
		}
		s[name] = d.Type
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				s[pkg+"."+spec.Name.Name] = spec
				if st, ok := spec.Type.(*ast.StructType); ok {
					for _, f := range st.Fields.List {
						for _, n := range f.Names {
							s[pkg+"."+spec.Name.Name+"."+n.Name] = f.Type
						}
					}
				}
			case *ast.ValueSpec:
				for _, n := range spec.Names {
					s[pkg+"."+n.Name] = spec
				}
			}
		}
	}
}

func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// untyped finds what in a symbol, or in a type of the project that it is made
// of, is any: a name without a type.
func (s symbols) untyped(pkg string, n ast.Node, seen map[ast.Node]bool) string {
	if n == nil || seen[n] {
		return ""
	}
	seen[n] = true
	found := ""
	ast.Inspect(n, func(n ast.Node) bool {
		if found != "" {
			return false
		}
		switch n := n.(type) {
		case *ast.TypeSpec:
			// The parameters of a type are no part of its shape.
			found = s.untyped(pkg, n.Type, seen)
			return false
		case *ast.FuncType:
			for _, list := range []*ast.FieldList{n.Params, n.Results} {
				if list != nil {
					for _, f := range list.List {
						if found == "" {
							found = s.untyped(pkg, f.Type, seen)
						}
					}
				}
			}
			return false
		case *ast.InterfaceType:
			if n.Methods == nil || len(n.Methods.List) == 0 {
				found = "interface{}"
			}
			return false
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok {
				found = s.untyped(x.Name, s[x.Name+"."+n.Sel.Name], seen)
			}
			return false
		case *ast.Field:
			if exported(n) {
				found = s.untyped(pkg, n.Type, seen)
			}
			return false
		case *ast.Ident:
			if n.Name == "any" {
				found = "any"
			} else {
				found = s.untyped(pkg, s[pkg+"."+n.Name], seen)
			}
		}
		return true
	})
	return found
}

func exported(f *ast.Field) bool {
	for _, n := range f.Names {
		if !n.IsExported() {
			return false
		}
	}
	return true
}

// What a row says is here is here, and has a type.
func TestSymbolsExist(t *testing.T) {
	t.Parallel()
	all := declared(t)
	for _, r := range ledger(t).Rows {
		for _, name := range r.Symbols {
			n := all[name]
			if alias, ok := n.(*ast.TypeSpec); ok && alias.Assign.IsValid() {
				n = alias.Type
			}
			if !assert.NotNil(t, n, "%s: no %s", r.ID, name) {
				continue
			}
			pkg, _, _ := strings.Cut(name, ".")
			if r.Test != "" {
				assert.Empty(t, all.untyped(pkg, n, map[ast.Node]bool{}), "%s: %s is not typed", r.ID, name)
			}
		}
	}
}

func TestUntypedIsFound(t *testing.T) {
	t.Parallel()
	f, err := parser.ParseFile(token.NewFileSet(), "x.go", `package x
type Deep struct { In []Inner }
type Inner struct { hidden any; Values map[string]any }
type Fine[T any] struct { V T; hidden any }
func Odd(v *Deep) {}
`, 0)
	require.NoError(t, err)
	s := symbols{}
	for _, d := range f.Decls {
		s.add("x", d)
	}
	for name, want := range map[string]string{"Deep": "any", "Inner.Values": "any", "Odd": "any", "Fine": ""} {
		assert.Equal(t, want, s.untyped("x", s["x."+name], map[ast.Node]bool{}), name)
	}
}

// What the protocol has a type for has a row.
func TestEveryTypeHasARow(t *testing.T) {
	t.Parallel()
	l := ledger(t)
	has := func(what string, ids ...string) {
		for _, id := range ids {
			for _, vendor := range []string{"both/", "claude/", "qoder/"} {
				if l.Row(vendor+id) != nil {
					return
				}
			}
		}
		assert.Fail(t, "no row", "for %s", what)
	}
	files, err := fs.Glob(os.DirFS("../../protocol"), "*.go")
	require.NoError(t, err)
	ofTools, err := fs.Glob(os.DirFS("../../protocol"), "tools/*.go")
	require.NoError(t, err)
	files = append(files, ofTools...)
	n := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), "../../protocol/"+file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(f, func(node ast.Node) bool {
			switch d := node.(type) {
			case *ast.FuncDecl:
				values := returned(d)
				switch {
				case d.Name.Name == "Subtype" && len(values) == 1:
					has("request "+values[0], "request/"+values[0], "ask/"+values[0])
					n++
				case d.Name.Name == "Tool" && len(values) == 1:
					has("tool "+values[0], "tool/"+values[0])
					n++
				case d.Name.Name == "wire" && len(values) == 2 && values[1] != "":
					has("message "+values[1], "message/"+values[0]+"/"+values[1])
					n++
				case d.Name.Name == "wire" && len(values) == 2:
					has("message "+values[0], "message/"+values[0], "frame/"+values[0])
					n++
				}
			case *ast.KeyValueExpr: // of the table of outputs
				if lit, ok := d.Key.(*ast.BasicLit); ok && file == "tools/registry.go" {
					value := strings.Trim(lit.Value, `"`)
					has("tool "+value, "tool/"+value)
					n++
				}
			case *ast.ValueSpec:
				typ, _ := d.Type.(*ast.Ident)
				for _, v := range d.Values {
					lit, ok := v.(*ast.BasicLit)
					if !ok || lit.Kind != token.STRING {
						continue
					}
					value := strings.Trim(lit.Value, `"`)
					switch {
					case typ != nil && typ.Name == "HookEvent":
						has("hook "+value, "hook/"+value)
						n++
					case typ != nil && typ.Name == "PermissionMode":
						has("mode "+value, "mode/"+value)
						n++
					}
				}
			}
			return true
		})
	}
	assert.Greater(t, n, 200)
}

// returned are the string literals of a function that does nothing but return them.
func returned(d *ast.FuncDecl) []string {
	if d.Body == nil || len(d.Body.List) != 1 {
		return nil
	}
	r, ok := d.Body.List[0].(*ast.ReturnStmt)
	if !ok {
		return nil
	}
	var out []string
	for _, e := range r.Results {
		lit, ok := e.(*ast.BasicLit)
		if !ok {
			return nil
		}
		out = append(out, strings.Trim(lit.Value, `"`))
	}
	return out
}

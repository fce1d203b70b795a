package lint_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/tools/go/packages"
)

// publicPackages are the packages with their types, by import path.
func publicPackages(t *testing.T, paths ...string) map[string]*types.Package {
	t.Helper()
	loaded, err := packages.Load(&packages.Config{Mode: packages.NeedName | packages.NeedTypes | packages.NeedImports, Dir: "../.."}, paths...)
	require.NoError(t, err)
	all := map[string]*types.Package{}
	for _, p := range loaded {
		require.Empty(t, p.Errors)
		all[p.PkgPath] = p.Types
	}
	return all
}

type loadedPackages map[string]*types.Package

func (l loadedPackages) Import(path string) (*types.Package, error) { return l[path], nil }

// TestVariantsArePointers is about the interfaces that users switch over, such as
// protocol.Message and session.Event: only pointers to structs implement them, so
// that the compiler refuses the case of a value, which would never match.
func TestVariantsArePointers(t *testing.T) {
	t.Parallel()

	all := loadedPackages(publicPackages(t, "./protocol", "./protocol/tools", "./session", "./supervisor", "./policy", "./agent/...", "./dialect", "./sdk"))

	t.Run("every interface", func(t *testing.T) {
		t.Parallel()
		var found []string
		for _, p := range all {
			for _, name := range p.Scope().Names() {
				declared, ok := p.Scope().Lookup(name).(*types.TypeName)
				if !ok || !declared.Exported() || declared.IsAlias() {
					continue
				}
				variants, ok := declared.Type().Underlying().(*types.Interface)
				if !ok || !sealed(variants) {
					continue
				}
				found = append(found, p.Name()+"."+name)
				for _, value := range structsOf(p) {
					assert.False(t, types.Implements(value, variants), "the value %v implements %v: give it a pointer receiver", value, declared.Type())
				}
			}
		}
		assert.Subset(t, found, []string{
			"protocol.Message", "protocol.ContentBlock", "protocol.StreamEvent", "protocol.AgentRequest",
			"tools.Input", "tools.Output", "session.Event", "supervisor.Event", "supervisor.Action",
		})
	})

	for _, test := range []struct{ of, variant string }{
		{"session.Event", "session.Ended"},
		{"session.Event", "session.StateChanged"},
		{"supervisor.Event", "supervisor.RestartScheduled"},
		{"supervisor.Action", "supervisor.StartChild"},
		{"sdk.Message", "sdk.ResultMessage"},
		{"protocol.ContentBlock", "sdk.TextBlock"},
		{"protocol.HookInput", "protocol.PreToolUseInput"},
		{"tools.Input", "tools.BashInput"},
	} {
		t.Run(test.variant, func(t *testing.T) {
			t.Parallel()
			check := func(variant string) error {
				fset := token.NewFileSet()
				file, err := parser.ParseFile(fset, "user.go", `package user
import (
	"`+module+`protocol"
	"`+module+`protocol/tools"
	"`+module+`sdk"
	"`+module+`session"
	"`+module+`supervisor"
)
var (
	_ protocol.Message
	_ tools.Input
	_ sdk.Message
	_ session.Event
	_ supervisor.Event
)
func matches(v `+test.of+`) bool {
	switch v.(type) {
	case `+variant+`:
		return true
	}
	return false
}`, 0)
				require.NoError(t, err)
				_, err = (&types.Config{Importer: all}).Check("user", fset, []*ast.File{file}, nil)
				return err
			}
			require.NoError(t, check("*"+test.variant))
			require.ErrorContains(t, check(test.variant), "impossible type switch case")
		})
	}
}

// sealed reports whether other packages cannot implement an interface.
func sealed(i *types.Interface) bool {
	for m := range i.Methods() {
		if !m.Exported() {
			return true
		}
	}
	return false
}

func structsOf(p *types.Package) (all []types.Type) {
	for _, name := range p.Scope().Names() {
		declared, ok := p.Scope().Lookup(name).(*types.TypeName)
		if !ok || declared.IsAlias() {
			continue
		}
		if _, ok := declared.Type().Underlying().(*types.Struct); ok {
			all = append(all, declared.Type())
		}
	}
	return all
}

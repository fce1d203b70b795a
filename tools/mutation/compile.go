package mutation

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/types"
	"os"
	"path"
	"path/filepath"
	"slices"

	"golang.org/x/tools/go/packages"
)

// Compile returns an error for each mutation after which the types of its package are wrong, or which
// does not fit its file. root is the directory of the module. Nothing is built, so that hundreds take
// seconds.
func Compile(root string, all []Mutation) error {
	var dirs []string
	for _, m := range all {
		if dir := "./" + path.Dir(m.File); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	const mode = packages.NeedName | packages.NeedCompiledGoFiles | packages.NeedImports | packages.NeedTypes | packages.NeedSyntax | packages.NeedTypesInfo | packages.NeedTypesSizes | packages.NeedModule
	loaded, err := packages.Load(&packages.Config{Mode: mode, Dir: root, Env: append(os.Environ(), "GOWORK=off")}, dirs...)
	if err != nil {
		return err
	}
	var problems []error
	for _, m := range all {
		if err := m.compile(root, loaded); err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", m.ID, err))
		}
	}
	return errors.Join(problems...)
}

func (m Mutation) compile(root string, loaded []*packages.Package) error {
	file := filepath.Join(root, m.File)
	content, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	broken, err := m.Apply(string(content))
	if err != nil {
		return err
	}
	for _, p := range loaded {
		i := slices.Index(p.CompiledGoFiles, file)
		if i < 0 {
			continue
		}
		if len(p.Errors) > 0 {
			return p.Errors[0]
		}
		parsed, err := parser.ParseFile(p.Fset, file, broken, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		files := slices.Clone(p.Syntax)
		at := slices.IndexFunc(files, func(f *ast.File) bool { return p.Fset.File(f.FileStart).Name() == file })
		if at < 0 {
			return fmt.Errorf("%s has no syntax", m.File)
		}
		files[at] = parsed
		check := types.Config{Importer: importer(p.Imports), Sizes: p.TypesSizes, GoVersion: "go" + p.Module.GoVersion}
		_, err = check.Check(p.PkgPath, p.Fset, files, nil)
		return err
	}
	return fmt.Errorf("%s is in no package for this system", m.File)
}

// importer finds what a package has imported already.
type importer map[string]*packages.Package

// Import implements [types.Importer].
func (i importer) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	p := i[path]
	if p == nil || p.Types == nil {
		return nil, fmt.Errorf("the package imports %q with the mutation alone", path)
	}
	return p.Types, nil
}

package lint

import (
	"go/ast"
	"go/token"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Layers reports imports of layers that come later in the list, or stand
// beside the importing one.
func Layers() *analysis.Analyzer {
	return inspecting("layers", "report imports that do not point up the list of layers", func(pass *analysis.Pass) {
		path, ours := rel(pass)
		if !ours {
			return
		}
		from, row := layerOf(path)
		for _, file := range pass.Files {
			if isTest(pass, file) {
				continue
			}
			if from == "" {
				pass.Reportf(file.Name.Pos(), "package %s has no place in the list of layers; add it to layers in tools/lint/policy.go", path)
				return
			}
			for _, spec := range file.Imports {
				checkImport(pass, spec, from, row)
			}
		}
	})
}

func checkImport(pass *analysis.Pass, spec *ast.ImportSpec, from string, row int) {
	imported, err := strconv.Unquote(spec.Path.Value)
	if err != nil {
		return // the compiler has said so already
	}
	for module, only := range confined {
		if within(imported, module) && !within(from, only) {
			pass.Reportf(spec.Pos(), "%s stays behind %s; use what that offers", module, only)
		}
	}
	path, ours := strings.CutPrefix(imported, modulePath+"/")
	if !ours {
		return
	}
	to, toRow := layerOf(path)
	if to == "" || to == from {
		return // an unknown package is reported at itself
	}
	report := func(pos token.Pos, why string) {
		pass.Reportf(pos, "%s may not import %s: %s", from, to, why)
	}
	only, narrowed := alone[from]
	switch {
	case narrowed && !slices.Contains(only, to):
		report(spec.Pos(), from+" stands on "+listed(only)+" alone")
	case toRow == row:
		report(spec.Pos(), "they stand side by side in the list of layers")
	case toRow > row:
		report(spec.Pos(), "it comes later in the list of layers")
	}
}

func listed(paths []string) string {
	if len(paths) == 0 {
		return "the standard library and other modules"
	}
	return strings.Join(paths, " and ")
}

// layerOf finds the entry the package belongs to, or "".
func layerOf(path string) (entry string, row int) {
	for i, entries := range layers {
		for _, e := range entries {
			if within(path, e) && len(e) > len(entry) {
				entry, row = e, i
			}
		}
	}
	if path != entry && divided(entry) {
		return "", 0
	}
	return entry, row
}

// divided says whether another entry lies below this one.
func divided(entry string) bool {
	for _, entries := range layers {
		for _, e := range entries {
			if e != entry && within(e, entry) {
				return true
			}
		}
	}
	return false
}

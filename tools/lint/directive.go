package lint

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// The rules an allowance can name.
const (
	allowSeam     = "seam"
	allowSelect   = "select"
	allowMapOrder = "maporder"
)

const directivePrefix = "//troupe:"

// parseDirective splits a comment "//troupe:RULE REASON".
func parseDirective(c *ast.Comment) (rule, reason string, ok bool) {
	text, ok := strings.CutPrefix(c.Text, directivePrefix)
	if !ok {
		return "", "", false
	}
	// analysistest writes its expectations into the same comment.
	text, _, _ = strings.Cut(text, "// want")
	rule, reason, _ = strings.Cut(text, " ")
	return rule, strings.TrimSpace(reason), true
}

// Directives reports allowances that no rule reads.
func Directives() *analysis.Analyzer {
	known := []string{allowSeam, allowSelect, allowMapOrder}
	return inspecting("directives", "report //troupe: comments that name no rule", func(pass *analysis.Pass) {
		for _, file := range pass.Files {
			for _, group := range file.Comments {
				for _, c := range group.List {
					if rule, _, ok := parseDirective(c); ok && !slices.Contains(known, rule) {
						pass.Reportf(c.Pos(), "no rule is called %q; the rules are %s", rule, strings.Join(known, ", "))
					}
				}
			}
		}
	})
}

// allowances are the comments of one package that allow one rule to be broken.
type allowances struct {
	pass *analysis.Pass
	rule string
	all  []*allowance
}

type allowance struct {
	comment *ast.Comment
	file    string
	first   int // the comment's own line
	last    int // the line below the comment's group
	used    bool
}

// allowed collects the package's allowances of one rule.
func allowed(pass *analysis.Pass, rule string) *allowances {
	a := &allowances{pass: pass, rule: rule}
	for _, file := range pass.Files {
		if isTest(pass, file) {
			continue
		}
		for _, group := range file.Comments {
			for _, c := range group.List {
				got, reason, ok := parseDirective(c)
				if !ok || got != rule {
					continue
				}
				if reason == "" {
					pass.Reportf(c.Pos(), "%s%s needs a reason behind it", directivePrefix, rule)
				}
				at := pass.Fset.Position(c.Pos())
				a.all = append(a.all, &allowance{
					comment: c, file: at.Filename,
					first: at.Line, last: pass.Fset.Position(group.End()).Line + 1,
				})
			}
		}
	}
	return a
}

// at says whether the place is allowed, and remembers that it was asked.
func (a *allowances) at(pos token.Pos) bool {
	place := a.pass.Fset.Position(pos)
	for _, one := range a.all {
		if one.file == place.Filename && one.first <= place.Line && place.Line <= one.last {
			one.used = true
			return true
		}
	}
	return false
}

// report reports the place unless it is allowed.
func (a *allowances) report(pos token.Pos, format string, args ...any) {
	if !a.at(pos) {
		a.pass.Reportf(pos, format, args...)
	}
}

// done reports the allowances that allowed nothing.
func (a *allowances) done() {
	for _, one := range a.all {
		if !one.used {
			a.pass.Reportf(one.comment.Pos(), "this %s%s allows nothing; remove it", directivePrefix, a.rule)
		}
	}
}

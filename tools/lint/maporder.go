package lint

import (
	"go/ast"
	"go/token"
	"go/types"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/ast/edge"
	"golang.org/x/tools/go/ast/inspector"
)

// MapOrder reports iterations over a map whose order could be seen outside: the
// body sends, writes, calls, returns an element or keeps the last one, or fills
// a slice that nothing sorts afterwards. Filling another map, counting, and the
// like are fine. It is a heuristic: of the functions called it knows the pure
// ones of the standard library and those of the same package.
func MapOrder() *analysis.Analyzer {
	return inspecting("maporder", "report map iterations whose order can be seen outside", func(pass *analysis.Pass) {
		if !library(pass) {
			return
		}
		m := &mapOrder{pass: pass, allow: allowed(pass, allowMapOrder), pure: newPurity(pass)}
		defer m.allow.done()
		for _, file := range pass.Files {
			if isTest(pass, file) {
				continue
			}
			at, _ := root(pass).FindNode(file)
			for c := range at.Preorder((*ast.RangeStmt)(nil)) {
				m.loop(c)
			}
			for c := range at.Preorder((*ast.CallExpr)(nil)) {
				m.iterator(c)
			}
		}
	})
}

type mapOrder struct {
	pass  *analysis.Pass
	allow *allowances
	pure  *purity
}

const mapOrderAdvice = "; range over slices.Sorted(maps.Keys(m)), or say why it cannot matter with //troupe:maporder"

func (m *mapOrder) loop(c inspector.Cursor) {
	loop := c.Node().(*ast.RangeStmt)
	if !m.unordered(loop.X) {
		return
	}
	if effect := m.effect(c, loop); effect != "" {
		m.allow.report(loop.Pos(), "the order of this map iteration can be seen: it %s%s", effect, mapOrderAdvice)
	}
}

// unordered says whether ranging over the expression follows a map's order.
func (m *mapOrder) unordered(x ast.Expr) bool {
	if t := m.pass.TypesInfo.TypeOf(x); t != nil {
		if _, ok := t.Underlying().(*types.Map); ok {
			return true
		}
	}
	call, ok := ast.Unparen(x).(*ast.CallExpr)
	return ok && isFunc(callee(m.pass, call), "maps", "Keys", "Values", "All")
}

// iterator checks maps.Keys and related functions where they are not ranged over, and the
// callback of sync.Map.Range.
func (m *mapOrder) iterator(c inspector.Cursor) {
	call := c.Node().(*ast.CallExpr)
	f := callee(m.pass, call)
	if f != nil && f.FullName() == "(*sync.Map).Range" {
		m.allow.report(call.Pos(), "sync.Map.Range has no order%s", mapOrderAdvice)
		return
	}
	if !isFunc(f, "maps", "Keys", "Values", "All") || c.ParentEdgeKind() == edge.RangeStmt_X {
		return
	}
	if outer, ok := c.Parent().Node().(*ast.CallExpr); ok {
		into := callee(m.pass, outer)
		if isFunc(into, "slices", "Sorted", "SortedFunc", "SortedStableFunc") || isFunc(into, "maps", "Collect", "Insert") {
			return
		}
		if isFunc(into, "slices", "Collect", "AppendSeq") && m.collectsForGood(c.Parent()) {
			return
		}
	}
	m.allow.report(call.Pos(), "maps.%s has no order%s", f.Name(), mapOrderAdvice)
}

// collectsForGood says whether the slice that the call collects is sorted, or
// only searched.
func (m *mapOrder) collectsForGood(call inspector.Cursor) bool {
	switch user := call.Parent().Node().(type) {
	case *ast.AssignStmt:
		return len(user.Lhs) == 1 && m.sortedAfter(call, user.Lhs[0], user.End())
	case *ast.CallExpr:
		return isFunc(callee(m.pass, user), "slices", "Contains", "ContainsFunc", "Max", "Min")
	}
	return false
}

// effect describes the first thing in the loop that shows its order, or is
// empty.
func (m *mapOrder) effect(c inspector.Cursor, loop *ast.RangeStmt) string {
	found := ""
	see := func(what string) {
		if found == "" {
			found = what
		}
	}
	body, _ := c.FindNode(loop.Body)
	for n := range body.Preorder() {
		switch s := n.Node().(type) {
		case *ast.SendStmt:
			see("sends on a channel")
		case *ast.GoStmt:
			see("starts goroutines")
		case *ast.DeferStmt:
			see("defers calls")
		case *ast.AssignStmt:
			see(m.assignment(n, loop, s))
		case *ast.IncDecStmt:
			if !m.inside(loop, s.X) && !m.keyed(loop, s.X) {
				see(accumulates(m.pass.TypesInfo.TypeOf(s.X)))
			}
		case *ast.ReturnStmt:
			if m.leavesWithElement(n, loop, s) {
				see("returns the first element it meets")
			}
		case *ast.CallExpr:
			if name, ok := m.pure.impure(s); ok {
				see("calls " + name)
			}
		}
	}
	return found
}

// assignment says how an assignment to something outside the loop shows the
// order, if it does.
func (m *mapOrder) assignment(c inspector.Cursor, loop *ast.RangeStmt, s *ast.AssignStmt) string {
	if s.Tok == token.DEFINE {
		return ""
	}
	for i, lhs := range s.Lhs {
		if isBlank(lhs) || m.inside(loop, lhs) || m.keyed(loop, lhs) {
			continue
		}
		if s.Tok != token.ASSIGN {
			if what := accumulates(m.pass.TypesInfo.TypeOf(lhs)); what != "" {
				return what
			}
			continue
		}
		if len(s.Lhs) != len(s.Rhs) {
			return "keeps the last element in " + types.ExprString(lhs)
		}
		rhs := s.Rhs[i]
		switch {
		case m.constant(rhs), folds(lhs, rhs), m.extremum(c, lhs, rhs):
		case m.appends(lhs, rhs):
			if !m.sortedAfter(c, lhs, loop.End()) {
				return "appends to " + types.ExprString(lhs) + ", which nothing sorts afterwards"
			}
		default:
			return "keeps the last element in " + types.ExprString(lhs)
		}
	}
	return ""
}

// accumulates says how an assignment like += to a variable of that type depends
// on the order; sums of integers do not.
func accumulates(t types.Type) string {
	basic, ok := t.Underlying().(*types.Basic)
	switch {
	case ok && basic.Info()&types.IsString != 0:
		return "joins strings"
	case ok && basic.Info()&(types.IsFloat|types.IsComplex) != 0:
		return "adds up floating-point numbers"
	}
	return ""
}

// inside says whether what the expression stands for belongs to one iteration:
// it is reached through a variable declared by the loop or in it.
func (m *mapOrder) inside(loop *ast.RangeStmt, e ast.Expr) bool {
	id := base(e)
	if id == nil {
		return false
	}
	obj := m.pass.TypesInfo.ObjectOf(id)
	return obj != nil && loop.Pos() <= obj.Pos() && obj.Pos() < loop.End()
}

// keyed says whether the expression is an element of a map, or an element of
// something else whose index belongs to the iteration.
func (m *mapOrder) keyed(loop *ast.RangeStmt, e ast.Expr) bool {
	index, ok := ast.Unparen(e).(*ast.IndexExpr)
	if !ok {
		return false
	}
	if t := m.pass.TypesInfo.TypeOf(index.X); t != nil {
		if _, isMap := t.Underlying().(*types.Map); isMap {
			return true
		}
	}
	return m.inside(loop, index.Index)
}

// base is the variable at the start of x.f[i].g, or nil.
func base(e ast.Expr) *ast.Ident {
	for {
		switch x := ast.Unparen(e).(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		default:
			return nil
		}
	}
}

func isBlank(e ast.Expr) bool {
	id, ok := e.(*ast.Ident)
	return ok && id.Name == "_"
}

func (m *mapOrder) constant(e ast.Expr) bool {
	tv := m.pass.TypesInfo.Types[e]
	return tv.Value != nil || tv.IsNil()
}

// folds recognizes x = x || v and x = x && v.
func folds(lhs, rhs ast.Expr) bool {
	op, ok := ast.Unparen(rhs).(*ast.BinaryExpr)
	return ok && (op.Op == token.LOR || op.Op == token.LAND) && types.ExprString(op.X) == types.ExprString(lhs)
}

// extremum recognizes the largest and the smallest: x = max(x, v),
// if v > x { x = v }, and if x.IsZero() || v.Before(x) { x = v }.
func (m *mapOrder) extremum(c inspector.Cursor, lhs, rhs ast.Expr) bool {
	if call, ok := ast.Unparen(rhs).(*ast.CallExpr); ok {
		if name := m.pure.builtin(call); name == "max" || name == "min" {
			return true
		}
	}
	block := c.Parent()
	if block.ParentEdgeKind() != edge.IfStmt_Body {
		return false
	}
	l, r := types.ExprString(lhs), types.ExprString(rhs)
	compares := false
	ast.Inspect(block.Parent().Node().(*ast.IfStmt).Cond, func(n ast.Node) bool {
		if x, y, ok := comparison(n); ok && (x == l && y == r || x == r && y == l) {
			compares = true
		}
		return !compares
	})
	return compares
}

// comparison is what stands on both sides of x < y or x.Before(y).
func comparison(n ast.Node) (x, y string, ok bool) {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		switch n.Op {
		case token.LSS, token.LEQ, token.GTR, token.GEQ:
			return types.ExprString(n.X), types.ExprString(n.Y), true
		}
	case *ast.CallExpr:
		if sel, isMethod := n.Fun.(*ast.SelectorExpr); isMethod && len(n.Args) == 1 {
			switch sel.Sel.Name {
			case "Before", "After", "Less":
				return types.ExprString(sel.X), types.ExprString(n.Args[0]), true
			}
		}
	}
	return "", "", false
}

// appends recognizes lhs = append(lhs, …).
func (m *mapOrder) appends(lhs, rhs ast.Expr) bool {
	call, ok := ast.Unparen(rhs).(*ast.CallExpr)
	return ok && m.pure.builtin(call) == "append" && types.ExprString(call.Args[0]) == types.ExprString(lhs)
}

// sortedAfter says whether the enclosing function sorts the slice behind pos.
func (m *mapOrder) sortedAfter(c inspector.Cursor, slice ast.Expr, pos token.Pos) bool {
	want := types.ExprString(slice)
	for f := range c.Enclosing((*ast.FuncDecl)(nil), (*ast.FuncLit)(nil)) {
		for n := range f.Preorder((*ast.CallExpr)(nil)) {
			call := n.Node().(*ast.CallExpr)
			if call.Pos() < pos || len(call.Args) == 0 {
				continue
			}
			sorts := callee(m.pass, call)
			if (isFunc(sorts, "slices", "Sort", "SortFunc", "SortStableFunc") ||
				isFunc(sorts, "sort", "Slice", "SliceStable", "Strings", "Ints", "Sort", "Stable")) &&
				types.ExprString(call.Args[0]) == want {
				return true
			}
		}
		return false // a sort outside the innermost function comes too late or too early
	}
	return false
}

// leavesWithElement says whether the statement returns from inside the loop
// with something of the iteration, other than after a search for equality,
// which has one answer.
func (m *mapOrder) leavesWithElement(c inspector.Cursor, loop *ast.RangeStmt, s *ast.ReturnStmt) bool {
	for f := range c.Enclosing((*ast.FuncLit)(nil)) {
		if f.Node().Pos() > loop.Pos() {
			return false // it leaves a closure, not the loop
		}
		break
	}
	shows := false
	for _, result := range s.Results {
		ast.Inspect(result, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok && m.inside(loop, id) {
				shows = true
			}
			return true
		})
	}
	return shows && !searched(c)
}

func searched(c inspector.Cursor) bool {
	block := c.Parent()
	if block.ParentEdgeKind() != edge.IfStmt_Body {
		return false
	}
	cond, ok := ast.Unparen(block.Parent().Node().(*ast.IfStmt).Cond).(*ast.BinaryExpr)
	return ok && cond.Op == token.EQL
}

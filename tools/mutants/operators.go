package main

import (
	"fmt"
	"go/ast"
	"go/constant"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// node notes the sites of a node.
func (f *finder) node(n ast.Node) {
	switch n := n.(type) {
	case *ast.BlockStmt:
		f.pairs(n.List)
	case *ast.IfStmt:
		f.condition(n.Cond, n.Cond)
	case *ast.ForStmt:
		if n.Cond != nil {
			f.condition(n.Cond, n.Cond)
		}
	case *ast.CaseClause:
		f.pairs(n.Body)
		f.clause(n)
	case *ast.CommClause:
		f.pairs(n.Body)
		if n.Comm != nil && len(n.Body) > 0 {
			f.skipped(n, n.Body)
		}
	case *ast.BinaryExpr:
		f.binary(n)
	case *ast.IncDecStmt:
		if f.listed(n) {
			f.add(offByOne, n, n, f.wrap(n, "if mutant.N != %d { ", " }"))
		}
	case *ast.ReturnStmt:
		f.returned(n)
	case *ast.AssignStmt:
		f.assigned(n)
	case *ast.KeyValueExpr:
		f.errorValue(n.Value)
	case *ast.CallExpr:
		f.call(n)
	case *ast.CompositeLit:
		f.list(n)
	case *ast.ExprStmt, *ast.DeferStmt, *ast.SendStmt:
		f.synchronizes(n.(ast.Stmt))
	}
}

// condition is negated where it stands. An error that is compared with nil is lost instead.
func (f *finder) condition(cond ast.Expr, covers ast.Node) {
	if t := f.info.Types[cond]; t.Value != nil || t.Type == nil || f.nilError(cond) {
		return
	}
	f.add(negated, cond, covers, f.wrap(cond, "((", ") != (mutant.N == %d))"))
}

// clause drops a case: none of its conditions holds, or nothing happens in it.
func (f *finder) clause(c *ast.CaseClause) {
	sw, tagless := f.parent(2).(*ast.SwitchStmt)
	tagless = tagless && sw.Tag == nil
	if tagless {
		for _, cond := range c.List {
			f.condition(cond, f.parent(2))
		}
	}
	if len(c.List) == 0 || len(c.Body) == 0 {
		return
	}
	if !tagless {
		f.skipped(c, c.Body)
		return
	}
	s := f.add(droppedCase, c.List[0], c.Body[0], nil)
	s.edits = func(k int) (all []edit) {
		for _, cond := range c.List {
			all = append(all, f.wrap(cond, "((", ") && mutant.N != %d)")(k)...)
		}
		return all
	}
}

// skipped leaves the body of a clause out. The code after the switch may be the end of a
// function with results, which then returns zero values.
func (f *finder) skipped(c ast.Node, body []ast.Stmt) {
	if b, ok := body[len(body)-1].(*ast.BranchStmt); ok && b.Tok == token.FALLTHROUGH {
		return
	}
	var typ *ast.FuncType
	var block *ast.BlockStmt
	for i := len(f.stack) - 1; i >= 0 && typ == nil; i-- {
		switch fn := f.stack[i].(type) {
		case *ast.FuncDecl:
			typ, block = fn.Type, fn.Body
		case *ast.FuncLit:
			typ, block = fn.Type, fn.Body
		}
	}
	s := f.add(droppedCase, c, body[0], nil)
	first := body[0]
	end := zeros(f, typ)
	at, rbrace := f.at(first.Pos()), f.at(block.Rbrace)
	s.from, s.to = at, f.at(body[len(body)-1].End())
	s.Text, _, _ = strings.Cut(s.Text, ":")
	s.edits = func(k int) []edit {
		all := []edit{opener(at, fmt.Sprintf("if mutant.N == %d { break }; ", k))}
		if end != "" {
			e := opener(rbrace, end)
			e.once = true
			all = append(all, e)
		}
		return all
	}
}

// zeros is a statement that returns the zero values of a function; "": it has no results.
func zeros(f *finder, typ *ast.FuncType) string {
	if typ.Results == nil {
		return ""
	}
	var values []string
	for _, r := range typ.Results.List {
		if len(r.Names) > 0 {
			return "; return "
		}
		values = append(values, "*new("+f.src(r.Type)+")")
	}
	return "; return " + strings.Join(values, ", ") + " "
}

func (f *finder) binary(n *ast.BinaryExpr) {
	switch n.Op {
	case token.LAND, token.LOR:
		f.condition(n.X, n.X)
		f.condition(n.Y, n.Y)
	case token.EQL, token.NEQ:
		if f.nilError(n) {
			after := " && mutant.N != %d)"
			if n.Op == token.EQL {
				after = " || mutant.N == %d)"
			}
			f.add(lostError, n, n, f.wrap(n, "(", after))
		}
	case token.LSS, token.LEQ, token.GTR, token.GEQ:
		if !f.integer(n.X) && !f.integer(n.Y) || f.constant(n.X) && f.constant(n.Y) {
			return
		}
		name := map[token.Token]string{token.LSS: "Lt", token.LEQ: "Le", token.GTR: "Gt", token.GEQ: "Ge"}[n.Op]
		op, length := f.at(n.OpPos), len(n.Op.String())
		around := f.wrap(n, "mutant."+name+"(%d, ", ")")
		f.add(offByOne, n, n, func(k int) []edit { return append(around(k), closer(op, op+length, ",")) })
	case token.ADD, token.SUB:
		one, ok := n.Y.(*ast.BasicLit)
		if !ok || one.Value != "1" || !f.integer(n.X) || f.constant(n.X) {
			return
		}
		name := map[token.Token]string{token.ADD: "Plus1", token.SUB: "Minus1"}[n.Op]
		from, x, to := f.at(n.Pos()), f.at(n.X.End()), f.at(n.End())
		f.add(offByOne, n, n, func(k int) []edit {
			return []edit{opener(from, fmt.Sprintf("mutant.%s(%d, ", name, k)), closer(x, to, ")")}
		})
	}
}

func (f *finder) constant(e ast.Expr) bool { return f.info.Types[e].Value != nil }

func (f *finder) integer(e ast.Expr) bool {
	t := f.info.Types[e]
	if t.Type == nil {
		return false
	}
	b, ok := t.Type.Underlying().(*types.Basic)
	return ok && b.Info()&types.IsInteger != 0 && (t.Value == nil || t.Value.Kind() == constant.Int)
}

// nilError reports whether a condition compares an error with nil.
func (f *finder) nilError(cond ast.Expr) bool {
	n, ok := ast.Unparen(cond).(*ast.BinaryExpr)
	return ok && (n.Op == token.EQL || n.Op == token.NEQ) && f.info.Types[n.Y].IsNil() && f.isError(n.X)
}

func (f *finder) isError(e ast.Expr) bool {
	t := f.info.Types[e]
	return t.Type != nil && !t.IsNil() && types.Identical(t.Type, types.Universe.Lookup("error").Type())
}

// returned loses the error that is returned, and negates a condition that is.
func (f *finder) returned(n *ast.ReturnStmt) {
	if len(n.Results) == 0 {
		return
	}
	f.errorValue(n.Results[len(n.Results)-1])
	for _, r := range n.Results {
		switch e := ast.Unparen(r).(type) {
		case *ast.Ident:
		default:
			if b, ok := f.info.Types[e].Type.(*types.Basic); ok && b.Info()&types.IsBoolean != 0 {
				f.condition(r, n)
			}
		}
	}
}

// assigned loses an error that is kept in a field.
func (f *finder) assigned(n *ast.AssignStmt) {
	if n.Tok != token.ASSIGN || len(n.Lhs) != len(n.Rhs) {
		return
	}
	for i, l := range n.Lhs {
		if _, field := l.(*ast.SelectorExpr); field {
			f.errorValue(n.Rhs[i])
		}
	}
}

func (f *finder) errorValue(e ast.Expr) {
	if !f.isError(e) || f.syncCall(e) {
		return
	}
	f.add(lostError, e, e, f.wrap(e, "mutant.Err(%d, ", ")"))
}

// call loses errors that are passed on, and swaps what is appended.
func (f *finder) call(n *ast.CallExpr) {
	if f.syncCall(n) {
		fun := n.Fun
		to, end := f.at(fun.End()), f.at(n.End())
		from := f.at(n.Pos())
		if _, alone := f.parent(1).(*ast.ExprStmt); !alone {
			f.add(missingSync, n, n, func(k int) []edit {
				return []edit{opener(from, fmt.Sprintf("mutant.Sync(%d, ", k)), closer(to, end, ")")}
			})
		}
		return
	}
	if id, ok := n.Fun.(*ast.Ident); ok && id.Name == "append" && len(n.Args) == 3 && !n.Ellipsis.IsValid() {
		switch n.Args[0].(type) {
		case *ast.Ident, *ast.SelectorExpr: // it is evaluated twice
			if !f.ofEffects(n) {
				return
			}
			from, to := f.at(n.Args[1].Pos()), f.at(n.Args[2].End())
			like := f.src(n.Args[0])
			f.add(swapped, n, n, func(k int) []edit {
				return []edit{opener(from, fmt.Sprintf("mutant.Like(%d, %s)(", k, like)), closer(to, to, ")...")}
			})
		}
		return
	}
	sig, ok := f.info.Types[n.Fun].Type.(*types.Signature)
	if !ok || f.ofErrors(n.Fun) || sig.Variadic() {
		return
	}
	for i, arg := range n.Args {
		switch arg.(type) {
		case *ast.Ident, *ast.SelectorExpr, *ast.CallExpr:
			if i < sig.Params().Len() && types.Identical(sig.Params().At(i).Type(), types.Universe.Lookup("error").Type()) {
				f.errorValue(arg)
			}
		}
	}
}

// listed reports whether a statement, the present node, is one of a block or of a clause's body.
func (f *finder) listed(s ast.Stmt) bool {
	switch p := f.parent(1).(type) {
	case *ast.BlockStmt, *ast.CaseClause:
		return true
	case *ast.CommClause:
		return p.Comm != s
	}
	return false
}

// ofErrors reports whether a function looks at an error without passing it on.
func (f *finder) ofErrors(fun ast.Expr) bool {
	s, ok := fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "errors"
}

// syncCall reports whether a call writes to the disk what was written before.
func (f *finder) syncCall(e ast.Expr) bool {
	n, ok := e.(*ast.CallExpr)
	if !ok || len(n.Args) > 0 || !f.isError(n) {
		return false
	}
	s, ok := n.Fun.(*ast.SelectorExpr)
	return ok && (s.Sel.Name == "Sync" || s.Sel.Name == "Flush")
}

// list swaps the first two elements of a list of effects.
func (f *finder) list(n *ast.CompositeLit) {
	if len(n.Elts) < 2 || n.Type == nil || !f.ofEffects(n) {
		return
	}
	if _, keyed := n.Elts[0].(*ast.KeyValueExpr); !keyed {
		f.add(swapped, n, n, f.wrap(n, "mutant.Swap(%d, 0, ", ")"))
	}
}

// ofEffects reports whether the elements of a slice are of an interface, as effects are.
func (f *finder) ofEffects(e ast.Expr) bool {
	t := f.info.Types[e].Type
	if t == nil {
		return false
	}
	s, ok := t.Underlying().(*types.Slice)
	return ok && types.IsInterface(s.Elem()) && s.Elem().Underlying().(*types.Interface).NumMethods() > 0
}

// pairs swaps statements that follow each other and both have effects.
func (f *finder) pairs(list []ast.Stmt) {
	for i := range len(list) - 1 {
		a, b := list[i], list[i+1]
		if !f.effect(a) || !f.effect(b) || f.src(a) == f.src(b) {
			continue
		}
		from, to := f.at(a.Pos()), f.at(b.End())
		text := fmt.Sprintf("%s; %s } else { ", f.src(b), f.src(a))
		s := f.add(swapped, a, a, func(k int) []edit {
			return []edit{opener(from, fmt.Sprintf("if mutant.N == %d { %s", k, text)), closer(to, to, " }")}
		})
		s.to = to
		s.Text += " <-> " + strings.Join(strings.Fields(f.src(b)), " ")
		if r := []rune(s.Text); len(r) > 160 {
			s.Text = string(r[:160]) + "…"
		}
	}
}

// effect reports whether a statement has an effect beyond variables: a call, or a send.
func (f *finder) effect(s ast.Stmt) bool {
	switch s := s.(type) {
	case *ast.SendStmt:
		return true
	case *ast.ExprStmt:
		c, ok := s.X.(*ast.CallExpr)
		return ok && !slices.Contains([]string{"panic", "delete", "clear", "Lock", "Unlock", "RLock", "RUnlock"}, called(c))
	}
	return false
}

func called(c *ast.CallExpr) string {
	switch fun := c.Fun.(type) {
	case *ast.Ident:
		return fun.Name
	case *ast.SelectorExpr:
		return fun.Sel.Name
	}
	return ""
}

// synchronizes leaves out what wakes, closes, or stores for other goroutines, and a lock
// with its unlocks.
func (f *finder) synchronizes(s ast.Stmt) {
	if !f.listed(s) {
		return
	}
	without := f.wrap(s, "if mutant.N != %d { ", " }")
	var call *ast.CallExpr
	switch s := s.(type) {
	case *ast.SendStmt:
		f.add(missingSync, s, s, without)
		return
	case *ast.DeferStmt:
		call = s.Call
	case *ast.ExprStmt:
		call, _ = s.X.(*ast.CallExpr)
	}
	if call == nil {
		return
	}
	name := called(call)
	sel, method := call.Fun.(*ast.SelectorExpr)
	switch {
	case name == "close" && !method:
		f.add(missingSync, s, s, without)
	case !method:
	case name == "Lock" || name == "RLock":
		f.locks(s, sel, name)
	case slices.Contains([]string{"Sync", "SyncDir", "Flush", "Broadcast", "Signal", "Wait"}, name):
		f.add(missingSync, s, s, without)
	case slices.Contains([]string{"Store", "Add", "Done", "CompareAndSwap"}, name) && f.ofSync(sel):
		f.add(missingSync, s, s, without)
	}
}

// ofSync reports whether a method is one of package sync or sync/atomic.
func (f *finder) ofSync(sel *ast.SelectorExpr) bool {
	fn, ok := f.info.Uses[sel.Sel].(*types.Func)
	return ok && fn.Pkg() != nil && strings.HasPrefix(fn.Pkg().Path(), "sync")
}

// locks leaves out a lock, and all unlocks of it in the function.
func (f *finder) locks(s ast.Stmt, sel *ast.SelectorExpr, name string) {
	if !f.ofSync(sel) {
		return
	}
	mutex := f.src(sel.X)
	locks := 0
	var all []ast.Stmt
	ast.Inspect(f.stack[0], func(n ast.Node) bool {
		var call *ast.CallExpr
		switch n := n.(type) {
		case *ast.DeferStmt:
			call = n.Call
		case *ast.ExprStmt:
			call, _ = n.X.(*ast.CallExpr)
		}
		if call == nil {
			return true
		}
		x, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || f.src(x.X) != mutex {
			return true
		}
		switch x.Sel.Name {
		case name:
			locks++
			all = append(all, n.(ast.Stmt))
		case strings.Replace(name, "Lock", "Unlock", 1):
			all = append(all, n.(ast.Stmt))
		}
		return true
	})
	if locks != 1 || len(all) < 2 {
		return
	}
	f.add(missingSync, s, s, func(k int) (edits []edit) {
		for _, s := range all {
			edits = append(edits, f.wrap(s, "if mutant.N != %d { ", " }")(k)...)
		}
		return edits
	})
}

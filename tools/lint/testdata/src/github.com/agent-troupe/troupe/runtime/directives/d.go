package directives

//troupe:selekt a typo // want `no rule is called "selekt"; the rules are seam, select, maporder`
func f() {}

//troupe:select known to its own rule
func g() {}

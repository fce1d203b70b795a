// Package routertest joins the user's side and its routing without the actors between them:
// whatever is told to the routing is handled at once. It is for the tests of the
// packages around them.
//
// Not in this package: anything that another package than a test imports.
package routertest

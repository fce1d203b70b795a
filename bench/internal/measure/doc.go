// Package measure holds what every bench program shares: the modes, how an
// agent learns what is asked of it, the line of figures, and memory as the
// system sees it.
//
// In this package: names, figures and readings. Not in this package: sessions.
package measure

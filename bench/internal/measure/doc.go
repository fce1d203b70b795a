// Package measure holds what every bench program shares: the modes, how an
// agent learns what is asked of it, the line of figures, and memory as the
// system sees it.
//
// What lives here: names, figures and readings. What must not: sessions.
package measure

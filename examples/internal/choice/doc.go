// Package choice is what the example programs have in common: the choice of an agent, and a
// main function.
package choice
